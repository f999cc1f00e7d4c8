//! Work that takes its time.

use super::ticket::TicketWork;
use super::wampcra::{Key, KeyDerivation};

/// What is to be done on a thread that may take its time, with what comes of it given to the handshake.
#[derive(Debug)]
pub enum Derivation {
    Key(KeyDerivation),
    Ticket(TicketWork),
}

impl Derivation {
    /// Does it.
    pub fn derive(&self) -> Key {
        match self {
            Self::Key(derivation) => derivation.derive(),
            Self::Ticket(work) => work.derive(),
        }
    }
}
