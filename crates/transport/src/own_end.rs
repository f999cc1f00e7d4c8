//! This end of a connection, for listings.

use std::net::SocketAddr;

use crate::Connection;

impl Connection {
    /// The address of this end, if it is TCP.
    pub fn own_address(&self) -> Option<SocketAddr> {
        self.socket().ok()?.own_address()
    }

    pub fn is_tls(&self) -> bool {
        self.stage().is_some()
    }
}
