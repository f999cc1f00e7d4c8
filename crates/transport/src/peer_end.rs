//! The end of a peer whose bytes are not read.

use crate::{Connection, Socket};

impl Connection {
    /// Whether the peer has closed its side, whatever it sent before that was not read.
    pub fn has_peer_closed(&self) -> bool {
        self.socket().is_ok_and(Socket::is_closed_by_peer)
    }
}
