//! The node's events in its management realm.

use crosstie_config::Json;
use serde_json::json;

use super::publication::Publication;
use crate::node::Node;
use crate::workers::Worker;

impl Node {
    /// Publishes an event; without a management realm it has no subscribers.
    pub(crate) fn tell(&self, topic: &str, details: Json) {
        let Some(management) = &self.management else {
            return;
        };
        let publication = Publication {
            topic: topic.to_owned(),
            details,
        };
        // At the bound, events are dropped that subscribers could not follow anyway.
        let _ = management.publications.try_send(publication);
    }

    /// `crossbar.node.<node>.on_worker_<what>`
    pub(crate) fn tell_about_worker(&self, what: &str, worker: &Worker, pid: Option<u32>) {
        let topic = format!("crossbar.node.{}.on_worker_{what}", self.id);
        let details = json!({
            "id": worker.id(),
            "type": worker.kind(),
            "pid": pid,
        });
        self.tell(&topic, details);
    }

    /// `crossbar.worker.<worker>.on_router_<what>`
    pub(crate) fn tell_of_router(&self, worker: &str, what: &str, details: Json) {
        self.tell(
            &format!("crossbar.worker.{worker}.on_router_{what}"),
            details,
        );
    }
}
