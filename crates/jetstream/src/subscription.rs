//! What comes under a subscription, or as answers to a question.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::message::Message;
use crate::shared::Held;

/// Messages in the order in which they came. To drop it ends it.
pub struct Subscription {
    /// The connection is kept for it.
    pub(crate) held: Arc<Held>,
    pub(crate) key: u64,
    /// It is one of the server's, and not of the connection's inbox.
    pub(crate) is_servers: bool,
    pub(crate) queue: mpsc::UnboundedReceiver<Message>,
    pub(crate) waiting_bytes: Arc<AtomicUsize>,
    pub(crate) is_denied: Arc<AtomicBool>,
}

impl Subscription {
    /// The next message; `None` at the end: the connection has ended, or more waited than may.
    pub async fn next(&mut self) -> Option<Message> {
        let message = self.queue.recv().await?;
        self.waiting_bytes
            .fetch_sub(message.bytes(), Ordering::Relaxed);
        Some(message)
    }

    /// The same, and `None` where none came in time.
    pub async fn next_within(&mut self, time: Duration) -> Option<Message> {
        tokio::time::timeout(time, self.next()).await.ok().flatten()
    }

    /// One that has come already.
    pub fn next_waiting(&mut self) -> Option<Message> {
        let message = self.queue.try_recv().ok()?;
        self.waiting_bytes
            .fetch_sub(message.bytes(), Ordering::Relaxed);
        Some(message)
    }

    /// The server has said that the user may not have it: nothing will come. It has where something that was asked later is
    /// answered.
    pub fn is_denied(&self) -> bool {
        self.is_denied.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.held.0.forget(self.key, self.is_servers);
    }
}
