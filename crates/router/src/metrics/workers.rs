//! Metrics of the node's workers and their components, as known to the controller.

use std::time::UNIX_EPOCH;

use crosstie_site::overview::{COMPONENT_STATES, LastReload, WorkerOverview};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

type ByWorker<M> = Family<[(&'static str, String); 1], M>;
type ByTwo<M> = Family<[(&'static str, String); 2], M>;

pub(super) fn register(registry: &mut Registry, workers: &[WorkerOverview]) {
    let running: ByTwo<Gauge> = Family::default();
    let components: ByTwo<Gauge> = Family::default();
    let failures: ByWorker<Counter> = Family::default();
    for worker in workers {
        let id = ("worker", worker.id.clone());
        let labels = [id.clone(), ("type", worker.kind.to_owned())];
        running
            .get_or_create(&labels)
            .set(i64::from(worker.is_running));
        if !matches!(worker.kind, "container" | "router") {
            continue;
        }
        for state in COMPONENT_STATES {
            let all = worker.components.iter();
            let count = all.filter(|own| own.state == state).count();
            let labels = [id.clone(), ("state", state.to_owned())];
            components.get_or_create(&labels).set(count as i64);
        }
        let count = failures.get_or_create(&[id]);
        count.inc_by(worker.component_failures);
    }
    registry.register(
        "worker_running",
        "1 while a worker of the node runs, 0 while it starts, stops or waits for its next start",
        running,
    );
    registry.register("components", "Components, by state", components);
    registry.register(
        "component_failures",
        "Components that could not be loaded, or that an exception ended",
        failures,
    );
}

/// The start counts as the first reload.
pub(super) fn register_reload(registry: &mut Registry, reload: LastReload) {
    registry.register(
        "config_last_reload_successful",
        "1 if the last reload was applied, or there was none; 0 if it was refused",
        ConstGauge::new(i64::from(reload.is_applied)),
    );
    let applied_s = reload.applied.duration_since(UNIX_EPOCH);
    registry.register(
        "config_last_reload_success_timestamp_seconds",
        "When the configuration in force was read, in seconds since 1970",
        ConstGauge::new(applied_s.map_or(0.0, |since| since.as_secs_f64())),
    );
}
