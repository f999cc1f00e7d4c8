//! Memory held for a client beside its output queue.

use std::sync::Arc;

use crosstie_transport::Connection;

/// Bytes on the account of a connection, while this lives.
pub(crate) struct Held {
    connection: Arc<Connection>,
    bytes: isize,
}

impl Held {
    pub(crate) fn of(connection: &Arc<Connection>, bytes: isize) -> Self {
        connection.hold(bytes);
        Self {
            connection: Arc::clone(connection),
            bytes,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connection.hold(-self.bytes);
    }
}
