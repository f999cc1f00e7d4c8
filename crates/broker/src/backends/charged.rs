//! The size of a client's rights, on the account of its connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crosstie_transport::Connection;

/// Bytes that are charged to a connection. What is left at its end is released with it.
#[derive(Debug, Default)]
pub(super) struct Charged(AtomicUsize);

impl Charged {
    pub(super) fn set(&self, bytes: usize, connection: &Arc<Connection>) {
        let before = self.0.swap(bytes, Ordering::Relaxed);
        if before != bytes {
            connection.hold(bytes as isize - before as isize);
        }
    }
}
