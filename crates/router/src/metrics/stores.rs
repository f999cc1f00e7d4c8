//! The metrics of realms' stores.

use crosstie_realms::event_store::StoreStatus;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Registers them, by worker and realm.
pub(super) fn register(
    registry: &mut Registry,
    stores: impl Iterator<Item = (String, String, StoreStatus)>,
) {
    type ByRealm = Family<[(&'static str, String); 2], Gauge>;
    let (waiting_bytes, failing) = (ByRealm::default(), ByRealm::default());
    for (worker, realm, status) in stores {
        let labels = [("worker", worker), ("realm", realm)];
        let bytes = waiting_bytes.get_or_create(&labels);
        bytes.set(status.waiting_bytes as i64);
        let failing = failing.get_or_create(&labels);
        failing.set(status.is_failing.into());
    }
    registry.register(
        "realm_store_waiting_bytes",
        "Bytes of events that wait to be written to the realm's store",
        waiting_bytes,
    );
    registry.register(
        "realm_store_failing",
        "1 if the last write to the realm's store failed",
        failing,
    );
}
