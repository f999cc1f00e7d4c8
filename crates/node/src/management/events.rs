//! The node's events in its management realm.

use crosstie_client::{Client, args};
use crosstie_config::Json;
use serde_json::json;
use tokio::sync::mpsc;

use crate::node::Node;
use crate::workers::Worker;

/// An event to be published.
pub(super) struct Publication {
    topic: String,
    details: Json,
}

/// Publishes events in their order, while the node lives.
pub(super) async fn publish(client: Client, mut publications: mpsc::Receiver<Publication>) {
    while let Some(Publication { topic, details }) = publications.recv().await {
        // Between two sessions no subscriber exists.
        let _ = client.publish(&topic, args![details]).await;
    }
}

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
