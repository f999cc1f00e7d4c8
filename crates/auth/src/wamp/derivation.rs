//! Work that takes milliseconds or more.

use super::ticket::TicketWork;
use super::wampcra::{Key, KeyDerivation};

/// Work for a thread that may block; its result is handed to the handshake.
#[derive(Debug)]
pub enum Derivation {
    Key(KeyDerivation),
    Ticket(TicketWork),
}

impl Derivation {
    /// Does the work.
    pub fn derive(&self) -> Key {
        match self {
            Self::Key(derivation) => derivation.derive(),
            Self::Ticket(work) => work.derive(),
        }
    }
}
