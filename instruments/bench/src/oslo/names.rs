//! The names of a round's exchanges and queues: like the document's, with the round's own mark, so that rounds and runs
//! at one broker do not collide.

use serde::{Deserialize, Serialize};

/// One round's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(super) exchange: String,
    pub(super) topic: String,
    pub(super) server: String,
    pub(super) reply_queue: String,
}

impl Names {
    pub(super) fn of(mark: &str) -> Self {
        Self {
            exchange: format!("my-exchange-{mark}"),
            topic: format!("my-topic-{mark}"),
            server: "myserver".to_owned(),
            reply_queue: format!("reply_{mark}"),
        }
    }

    /// The queue of requests for this server.
    pub(super) fn server_queue(&self) -> String {
        format!("{}.{}", self.topic, self.server)
    }

    pub(super) fn fanout(&self) -> String {
        format!("{}_fanout", self.topic)
    }
}
