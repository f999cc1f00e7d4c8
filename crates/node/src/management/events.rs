//! What the node tells everybody in its management realm.

use crosstie_client::{Client, args};
use crosstie_config::Json;
use serde_json::json;
use tokio::sync::mpsc;

use crate::node::Node;
use crate::workers::Worker;

/// An event on its way.
pub(super) struct Publication {
    topic: String,
    details: Json,
}

/// Publishes in the order of what happened, for as long as the node is there.
pub(super) async fn publish(client: Client, mut publications: mpsc::Receiver<Publication>) {
    while let Some(Publication { topic, details }) = publications.recv().await {
        // Between two sessions nobody is listening.
        let _ = client.publish(&topic, args![details]).await;
    }
}

impl Node {
    /// Publishes an event; without a management realm nobody is there to receive it.
    pub(crate) fn tell(&self, topic: &str, details: Json) {
        let Some(management) = &self.management else {
            return;
        };
        let publication = Publication {
            topic: topic.to_owned(),
            details,
        };
        // At the bound, listeners lose what they could not follow anyway.
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
