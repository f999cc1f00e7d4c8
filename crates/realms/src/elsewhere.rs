//! Outcomes that a handshake waits for: an authenticator's answer, a key, the end of a delay.

use std::sync::{Arc, Weak};

use crosstie_auth::wamp::jwt::Jwks;
use crosstie_auth::wamp::{Answer, Key};
use crosstie_transport::Connection;
use parking_lot::Mutex;

/// A place for one outcome. Reading from the connection is paused until the outcome arrives.
pub(crate) struct Slot {
    connection: Weak<Connection>,
    outcome: Mutex<Option<Outcome>>,
}

/// The outcome.
pub enum Outcome {
    Answer(Answer),
    Key(Key),
    /// Keys of an issuer.
    Keys(Arc<Jwks>),
    /// The time has elapsed.
    Elapsed,
}

impl Slot {
    /// Pauses reading from the connection.
    pub(crate) fn new(connection: &Arc<Connection>) -> Arc<Self> {
        connection.pause_reading();
        Arc::new(Self {
            connection: Arc::downgrade(connection),
            outcome: Mutex::new(None),
        })
    }

    /// A slot without a connection.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Arc<Self> {
        Arc::new(Self {
            connection: Weak::new(),
            outcome: Mutex::new(None),
        })
    }

    /// Stores the outcome, unless one is present, and resumes reading.
    pub(crate) fn fill(&self, outcome: Outcome) {
        let mut place = self.outcome.lock();
        if place.is_some() {
            return;
        }
        *place = Some(outcome);
        drop(place);
        if let Some(connection) = self.connection.upgrade() {
            connection.resume_reading();
        }
    }

    pub(crate) fn take(&self) -> Option<Outcome> {
        self.outcome.lock().take()
    }
}
