//! The messages of a subscription, or the answers to a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::message::Message;
use crate::shared::Held;

/// Messages in the order of arrival. Dropping it unsubscribes.
pub struct Subscription {
    /// Keeps the connection open.
    pub(crate) held: Arc<Held>,
    pub(crate) key: u64,
    /// A subscription at the server, not part of the connection's inbox.
    pub(crate) is_servers: bool,
    pub(crate) queue: mpsc::UnboundedReceiver<Message>,
    pub(crate) waiting_bytes: Arc<AtomicUsize>,
    pub(crate) is_denied: Arc<AtomicBool>,
}

impl Subscription {
    /// The next message; `None` at the end: the connection has ended, or too many bytes waited.
    pub async fn next(&mut self) -> Option<Message> {
        let message = self.queue.recv().await?;
        self.waiting_bytes
            .fetch_sub(message.bytes(), Ordering::Relaxed);
        Some(message)
    }

    /// The same; `None` also after the timeout.
    pub async fn next_within(&mut self, time: Duration) -> Option<Message> {
        tokio::time::timeout(time, self.next()).await.ok().flatten()
    }

    /// A message that has arrived already.
    pub fn next_waiting(&mut self) -> Option<Message> {
        let message = self.queue.try_recv().ok()?;
        self.waiting_bytes
            .fetch_sub(message.bytes(), Ordering::Relaxed);
        Some(message)
    }

    /// Whether the server has denied the subscription: no message will arrive. Reliable once a later request is
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
