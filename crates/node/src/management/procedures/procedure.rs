//! One procedure: its URI and its handler.

use crate::management::errors::Refusal;
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;

/// One procedure. A `..` in the URI stands for a worker's id.
pub(in crate::management) struct Procedure {
    pub(in crate::management) uri: &'static str,
    pub(in crate::management) handler: Handler,
}

/// How the node's loop answers a procedure.
pub(in crate::management) enum Handler {
    Now(fn(&mut Node, &Call) -> Answer),
    /// The answer follows when the action is complete. An error returns with the reply that must get it.
    Later(fn(&mut Node, &Call, Reply) -> Deferred),
}

/// The reply is kept, or returned with the reason of the refusal.
pub(super) type Deferred = Result<(), (Reply, Refusal)>;

impl Procedure {
    /// Whether it may be called during an upgrade: it only reads, or ends the node.
    pub(in crate::management) fn is_harmless(&self) -> bool {
        let name = self.uri.rsplit('.').next().unwrap_or_default();
        name.starts_with("get_")
            || matches!(
                self.uri,
                "crossbar.shutdown" | "crossbar.read_trace" | "crossbar.end_trace"
            )
    }

    /// Whether the URI has a placeholder for a worker's id.
    pub(in crate::management) fn is_of_workers(&self) -> bool {
        self.uri.contains("..")
    }
}

pub(super) const fn now(uri: &'static str, handle: fn(&mut Node, &Call) -> Answer) -> Procedure {
    Procedure {
        uri,
        handler: Handler::Now(handle),
    }
}

pub(super) const fn later(
    uri: &'static str,
    handle: fn(&mut Node, &Call, Reply) -> Deferred,
) -> Procedure {
    Procedure {
        uri,
        handler: Handler::Later(handle),
    }
}

/// The worker in a URI: `crossbar.worker.<id>.<what>`.
pub(in crate::management) fn worker_of(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix("crossbar.worker.")?;
    rest.rsplit_once('.').map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_read_from_uris() {
        let check = |uri, expected| assert_eq!(worker_of(uri), expected, "{uri}");
        check("crossbar.worker.worker1.on_worker_ready", Some("worker1"));
        check("crossbar.worker.a.b.get_router_realms", Some("a.b"));
        check("crossbar.worker.worker1", None);
        check("crossbar.get_status", None);
    }
}
