//! Procedures of host monitors.

use serde_json::json;

use super::workers::no_such_worker;
use super::{Procedure, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call};
use crate::node::Node;
use crate::workers::host_monitor::HostMonitor;

pub(super) static PROCEDURES: [Procedure; 3] = [
    now("crossbar.worker..get_monitoring", monitoring),
    now("crossbar.worker..start_monitoring", start_monitoring),
    now("crossbar.worker..stop_monitoring", stop_monitoring),
];

fn monitoring(node: &mut Node, call: &Call) -> Answer {
    let monitor = monitor(node, call)?;
    let last = monitor.last.lock().clone();
    Ok(json!({
        "is_monitoring": monitor.is_monitoring(),
        "interval_ms": u64::try_from(monitor.interval.as_millis()).unwrap_or(u64::MAX),
        "last": last,
    }))
}

fn start_monitoring(node: &mut Node, call: &Call) -> Answer {
    let client = node.management.as_ref().map(|realm| realm.client.clone());
    match monitor(node, call)?.resume(&call.worker, client) {
        true => Ok(json!({"id": call.worker})),
        false => Err(errors::already_running("it monitors already")),
    }
}

fn stop_monitoring(node: &mut Node, call: &Call) -> Answer {
    match monitor(node, call)?.pause() {
        true => Ok(json!({"id": call.worker})),
        false => Err(errors::not_running("it does not monitor")),
    }
}

fn monitor<'a>(node: &'a mut Node, call: &Call) -> Result<&'a mut HostMonitor, Refusal> {
    let id = call.worker.as_str();
    let worker = node.worker_mut(id).ok_or_else(|| no_such_worker(id))?;
    let kind = worker.kind();
    worker.monitor.as_mut().ok_or_else(|| {
        errors::no_such_object(&format!(
            "worker '{id}' is no host monitor, but of type '{kind}'"
        ))
    })
}
