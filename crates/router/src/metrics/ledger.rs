//! The metrics of replicated vhosts.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crosstie_broker::replicated::{Role, Seen};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels<const N: usize> = [(&'static str, String); N];

/// A metric's name, its help text, and the function that reads it.
type Metric = (&'static str, &'static str, fn(&Seen) -> u64);

#[rustfmt::skip]
const GAUGES: [Metric; 7] = [
    (
        "ledger_alarm",
        "1 if the vhost has no owner and is not opened, or its local copy is not written",
        |seen| seen.alarm.is_some().into(),
    ),
    ("ledger_epoch", "Number of owners of the vhost so far", |seen| seen.epoch),
    ("ledger_log_bytes", "Bytes of the log, as far as this node has read it", |seen| seen.log_bytes),
    ("ledger_live_bytes", "Bytes of the log's valid content", |seen| seen.live_bytes),
    ("ledger_memory_bytes", "Bytes in memory for the log beside its messages", |seen| seen.memory_bytes),
    (
        "ledger_lag_entries",
        "Entries that the owner has written and this node has not read",
        |seen| seen.end.saturating_sub(seen.sequence),
    ),
    ("ledger_waiting_bytes", "Bytes that the log has not acknowledged", |seen| seen.waiting_bytes),
];

const COUNTS: [Metric; 3] = [
    (
        "ledger_takeovers",
        "Times that this node became the owner",
        |seen| seen.takeovers,
    ),
    (
        "ledger_appends",
        "Entries that the log has acknowledged",
        |seen| seen.appends,
    ),
    (
        "ledger_resynchronizations",
        "Times in this term that the log's end was read because an acknowledgement was missing",
        |seen| seen.resynchronizations,
    ),
];

/// Registers the metrics of replicated vhosts, by worker.
pub(crate) fn register<'w>(
    registry: &mut Registry,
    vhosts: impl Iterator<Item = (&'w str, Arc<str>, Seen)>,
) {
    let vhosts: Vec<_> = vhosts
        .map(|(worker, vhost, seen)| {
            let labels = [("worker", worker.to_owned()), ("vhost", vhost.to_string())];
            (labels, seen)
        })
        .collect();
    if vhosts.is_empty() {
        return;
    }
    let roles = Family::<Labels<3>, Gauge>::default();
    for ([worker, vhost], seen) in &vhosts {
        for role in Role::ALL {
            let role_label = ("role", role.name().to_owned());
            let labels = [worker.clone(), vhost.clone(), role_label];
            let is_so = i64::from(role == seen.role);
            roles.get_or_create(&labels).set(is_so);
        }
    }
    let help = "1 for the node's role for the vhost, by role";
    registry.register("ledger_role", help, roles);
    for (name, help, read) in GAUGES {
        let family = Family::<Labels<2>, Gauge>::default();
        for (labels, seen) in &vhosts {
            family.get_or_create(labels).set(read(seen).cast_signed());
        }
        registry.register(name, help, family);
    }
    for (name, help, read) in COUNTS {
        let family = Family::<Labels<2>, Counter>::default();
        for (labels, seen) in &vhosts {
            family.get_or_create(labels).inc_by(read(seen));
        }
        registry.register(name, help, family);
    }
    let family = Family::<Labels<2>, Counter<f64, AtomicU64>>::default();
    for (labels, seen) in &vhosts {
        let seconds = seen.append_us as f64 / 1e6;
        family.get_or_create(labels).inc_by(seconds);
    }
    let help = "Total time until the log acknowledged its entries";
    registry.register("ledger_append_seconds", help, family);
}
