//! The management procedures: one table per subject, one row per procedure.

mod amqp;
mod components;
mod host_monitor;
mod node;
mod replicated;
mod router;
mod sessions;
mod workers;

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

use super::errors::Refusal;
use super::request::{Answer, Call, Reply};
use crate::node::Node;

/// One procedure. A `..` in the URI stands for a worker's id.
pub(super) struct Procedure {
    pub(super) uri: &'static str,
    pub(super) handler: Handler,
}

/// How the node's loop answers a procedure.
pub(super) enum Handler {
    Now(fn(&mut Node, &Call) -> Answer),
    /// The answer follows when the action is complete. An error returns with the reply that must get it.
    Later(fn(&mut Node, &Call, Reply) -> Deferred),
}

/// The reply is kept, or returned with the reason of the refusal.
type Deferred = Result<(), (Reply, Refusal)>;

/// All procedures.
pub(super) static PROCEDURES: [&[Procedure]; 7] = [
    &node::PROCEDURES,
    &workers::PROCEDURES,
    &router::PROCEDURES,
    &sessions::PROCEDURES,
    &amqp::PROCEDURES,
    &components::PROCEDURES,
    &host_monitor::PROCEDURES,
];

const fn now(uri: &'static str, handle: fn(&mut Node, &Call) -> Answer) -> Procedure {
    Procedure {
        uri,
        handler: Handler::Now(handle),
    }
}

const fn later(uri: &'static str, handle: fn(&mut Node, &Call, Reply) -> Deferred) -> Procedure {
    Procedure {
        uri,
        handler: Handler::Later(handle),
    }
}

/// The worker in a URI: `crossbar.worker.<id>.<what>`.
pub(super) fn worker_of(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix("crossbar.worker.")?;
    rest.rsplit_once('.').map(|(id, _)| id)
}

/// A time in text form.
fn date(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Seconds since that time.
fn seconds_since(time: SystemTime) -> f64 {
    time.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn workers_are_read_from_uris() {
        let check = |uri, expected| assert_eq!(worker_of(uri), expected, "{uri}");
        check("crossbar.worker.worker1.on_worker_ready", Some("worker1"));
        check("crossbar.worker.a.b.get_router_realms", Some("a.b"));
        check("crossbar.worker.worker1", None);
        check("crossbar.get_status", None);
    }

    #[test]
    fn each_procedure_is_there_once_and_described() {
        let text = include_str!("../../../../../docs/management.md");
        let mut seen = BTreeSet::new();
        for procedure in PROCEDURES.iter().flat_map(|table| *table) {
            assert!(
                seen.insert(procedure.uri),
                "{} is there twice",
                procedure.uri
            );
            let shown = procedure.uri.replace("..", ".<worker>.");
            assert!(
                text.contains(&format!("`{shown}`")),
                "docs/management.md does not describe {shown}"
            );
        }
    }
}
