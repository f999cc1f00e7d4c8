//! The node's log lines, in one place and in Crossbar.io's words.

use crosstie_router::descriptors;
use tracing::{error, info, warn};

use crate::process::{Level, Line};

/// The target of children's lines: their events have the fields `role` and `pid`, which replace the node's own in the
/// log.
pub const CHILD_LINES: &str = "crosstie_node::child";

/// A line of a child process.
pub(crate) fn child_line(role: &'static str, pid: u32, line: &Line) {
    let text = line.text.as_str();
    match line.level {
        Level::Error => error!(target: CHILD_LINES, role, pid, "{text}"),
        Level::Warn => warn!(target: CHILD_LINES, role, pid, "{text}"),
        Level::Info => info!(target: CHILD_LINES, role, pid, "{text}"),
        Level::Debug => tracing::debug!(target: CHILD_LINES, role, pid, "{text}"),
    }
}

/// A worker kind's name in the log.
pub(crate) fn title(kind: &str) -> &'static str {
    match kind {
        "router" => "Router",
        "container" => "Container",
        "guest" => "Guest",
        "websocket-testee" => "WebSocketTestee",
        "hostmonitor" => "HostMonitor",
        _ => "Worker",
    }
}

pub(crate) fn starting(kind: &str, id: &str) {
    info!("Starting {} with ID '{id}'...", title(kind));
}

pub(crate) fn started(kind: &str, id: &str, pid: u32) {
    info!("{} with ID '{id}' and PID {pid} started", title(kind));
}

/// The node's variables that a worker's process does not get; only their names.
pub(crate) fn withheld(worker: &str, names: &[String]) {
    if !names.is_empty() {
        let names = names.join(", ");
        info!(
            "Worker '{worker}' does not see these variables, which the configuration takes secrets \
             from: {names} (`env` in its options passes them on)"
        );
    }
}

/// The maximum number of connections that the descriptor limit allows, whatever the configuration says.
pub(crate) fn descriptors() {
    let (limit, reserve) = (descriptors::limit(), descriptors::reserve());
    info!(
        "File descriptors: {limit} may be open, of which the last {reserve} are not for connections"
    );
}

/// Names in Python's notation, as in Crossbar.io.
pub(crate) fn list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}
