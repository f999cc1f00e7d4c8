//! The metrics of MQTT: packets of the process, and the contents of each realm's topic space and each vhost's fleet.

use std::sync::Arc;

use crosstie_spaces::{Counts, Dropped, Figures, PacketType};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::registry::Registry as Router;

/// Worker, and realm or vhost.
type Labels = [(&'static str, String); 2];

/// A name, a help text, and the number.
type Held = (&'static str, &'static str, fn(&Counts) -> usize);

#[rustfmt::skip]
const HELD: [Held; 6] = [
    ("mqtt_connections", "Connected MQTT clients", |counts| counts.connected),
    ("mqtt_sessions", "MQTT sessions, with those whose client is away", |counts| counts.sessions),
    ("mqtt_subscriptions", "MQTT subscriptions", |counts| counts.subscriptions),
    ("mqtt_retained_messages", "Retained MQTT messages", |counts| counts.retained),
    ("mqtt_retained_bytes", "Bytes of the retained MQTT messages, with their topics", |counts| counts.retained_bytes),
    (
        "mqtt_queued_messages",
        "Messages that wait for MQTT sessions, unacknowledged ones included",
        |counts| counts.queued,
    ),
];

/// A number of dropped messages.
type Count = fn(&Counts) -> u64;

/// Counters, by the value of a label.
const DROPPED: [(&str, Count); 8] = [
    ("full", |counts| counts.dropped_full),
    ("oldest", |counts| counts.dropped_oldest),
    ("large", |counts| counts.dropped_large),
    ("expired", |counts| counts.expired_messages),
    ("refused_by_receiver", |counts| counts.refused_by_receiver),
    ("retained_max", |counts| counts.refused_retained),
    ("topic", |counts| counts.refused_topics),
    ("unmatched", |counts| counts.unmatched),
];

pub(super) fn register(registry: &mut Registry, routers: &[Arc<Router>]) {
    let families: [Family<Labels, Gauge>; HELD.len()] = Default::default();
    let dropped = Family::<[(&'static str, &'static str); 1], Counter>::default();
    let add_dropped = |reason: &'static str, count: u64| {
        dropped.get_or_create(&[("reason", reason)]).inc_by(count);
    };
    for reason in Dropped::ALL {
        add_dropped(reason.name(), Figures::get().dropped(reason));
    }
    for router in routers {
        for (realm, counts) in router.spaces.counts() {
            let labels = [("worker", router.id().to_owned()), ("realm", realm)];
            for (family, (_, _, count)) in families.iter().zip(HELD) {
                family.get_or_create(&labels).set(count(&counts) as i64);
            }
            for (reason, count) in DROPPED {
                add_dropped(reason, count(&counts));
            }
        }
        add_fleets(router, &families);
    }
    for (family, (name, help, _)) in families.into_iter().zip(HELD) {
        registry.register(name, help, family);
    }
    let (waiting_bytes, failing) = <(Family<Labels, Gauge>, Family<Labels, Gauge>)>::default();
    for router in routers {
        for (realm, status) in router.spaces.stores() {
            let labels = [("worker", router.id().to_owned()), ("realm", realm)];
            let bytes = waiting_bytes.get_or_create(&labels);
            bytes.set(status.waiting_bytes as i64);
            let failing = failing.get_or_create(&labels);
            failing.set(status.failure.is_some().into());
        }
    }
    registry.register(
        "mqtt_store_waiting_bytes",
        "Bytes of MQTT records that wait to be written to the realm's store",
        waiting_bytes,
    );
    registry.register(
        "mqtt_store_failing",
        "1 if the last write to the realm's MQTT store failed",
        failing,
    );
    registry.register(
        "mqtt_messages_dropped",
        "MQTT messages that a receiver was not sent, or that did not cross between MQTT and WAMP",
        dropped,
    );
    let packets = Family::<[(&'static str, &'static str); 2], Counter>::default();
    for packet_type in PacketType::ALL {
        let name = packet_type.name();
        for (direction, count) in [
            ("received", Figures::get().received(packet_type)),
            ("sent", Figures::get().sent(packet_type)),
        ] {
            let labels = [("direction", direction), ("type", name)];
            packets.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register("mqtt_packets", "MQTT packets by type", packets);
}

/// Adds the numbers of vhosts; their queues have those of sessions and messages.
fn add_fleets(router: &Router, families: &[Family<Labels, Gauge>]) {
    for (vhost, fleet) in router.fleets.counts() {
        let labels = [("worker", router.id().to_owned()), ("vhost", vhost)];
        for (family, (name, ..)) in families.iter().zip(HELD) {
            let count = match name {
                "mqtt_connections" => fleet.connections,
                "mqtt_retained_messages" => fleet.retained_messages,
                "mqtt_retained_bytes" => fleet.retained_bytes,
                _ => continue,
            };
            family.get_or_create(&labels).set(count as i64);
        }
    }
}
