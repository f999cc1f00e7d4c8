//! A copy of all that a connection sends and receives, for an operator who traces it.

use crate::queue::Queue;

/// Takes copies of a connection's bytes. It works on the threads that send and receive them, and must be quick.
pub trait Tap: Send + Sync {
    /// Whole appended items, before any filter and stage.
    fn sent(&self, bytes: &[u8]);

    /// Received items, as the protocol passes them.
    fn received(&self, bytes: &[u8]);
}

/// Passes the bytes of a queue that was taken whole to its tap.
#[cold]
pub(crate) fn tap_sent(tap: &dyn Tap, queue: &Queue) {
    match queue.single() {
        Some(bytes) => tap.sent(bytes),
        None => {
            let mut bytes = Vec::new();
            queue.copy_to(queue.len(), &mut bytes);
            tap.sent(&bytes);
        }
    }
}
