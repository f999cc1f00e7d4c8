//! The metrics of each realm's contents.

use crosstie_routing::RealmCounts;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Worker and realm: routers are isolated from one another, and two may have a realm of the same name.
pub(super) type Labels = [(&'static str, String); 2];

type ByRealm = Family<Labels, Gauge>;

/// A name, a help text, and the count.
type Held = (&'static str, &'static str, fn(&RealmCounts) -> usize);

#[rustfmt::skip]
const HELD: [Held; 11] = [
    ("realm_sessions", "Sessions in the realm", |counts| counts.sessions),
    ("realm_subscriptions", "Subscriptions in the realm", |counts| counts.subscriptions),
    ("realm_registrations", "Registrations in the realm", |counts| counts.registrations),
    ("realm_definitions", "Definitions of procedures, topics and errors in the realm", |counts| counts.definitions),
    ("realm_calls_open", "Calls without a final result", |counts| counts.calls),
    ("realm_retained_events", "Retained events in the realm", |counts| counts.retained_events),
    (
        "realm_retained_bytes",
        "Bytes of the retained events, with their topics and lists",
        |counts| counts.retained_bytes,
    ),
    ("realm_recorded_events", "Events in the realm's histories", |counts| counts.recorded_events),
    ("realm_recorded_bytes", "Bytes of the events in the realm's histories", |counts| counts.recorded_bytes),
    ("realm_calls_waiting", "Calls that wait for a free callee", |counts| counts.calls_waiting),
    ("realm_kept_call_bytes", "Bytes of calls that wait or may be re-routed", |counts| counts.kept_bytes),
];

pub(super) fn register(
    registry: &mut Registry,
    realms: impl Iterator<Item = (Labels, RealmCounts)>,
) {
    let families: [ByRealm; HELD.len()] = Default::default();
    for (labels, counts) in realms {
        for (family, (_, _, count)) in families.iter().zip(HELD) {
            family.get_or_create(&labels).set(count(&counts) as i64);
        }
    }
    for (family, (name, help, _)) in families.into_iter().zip(HELD) {
        registry.register(name, help, family);
    }
}
