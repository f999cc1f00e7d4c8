//! What a handshake waits for that happens elsewhere: an authenticator, a key, the end of a delay.

use std::sync::{Arc, Weak};

use crosstie_auth::wamp::jwt::Jwks;
use crosstie_auth::wamp::{Answer, Key};
use crosstie_transport::Connection;
use parking_lot::Mutex;

/// A place for one outcome. The connection is not read from before it is there, and goes on then.
pub(crate) struct Slot {
    connection: Weak<Connection>,
    outcome: Mutex<Option<Outcome>>,
}

/// What has come of it.
pub(crate) enum Outcome {
    Answer(Answer),
    Key(Key),
    /// An issuer's.
    Keys(Arc<Jwks>),
    /// So much time has passed.
    Elapsed,
}

impl Slot {
    /// Has the connection wait.
    pub(crate) fn new(connection: &Arc<Connection>) -> Arc<Self> {
        connection.pause_reading();
        Arc::new(Self {
            connection: Arc::downgrade(connection),
            outcome: Mutex::new(None),
        })
    }

    /// One that no connection waits for.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Arc<Self> {
        Arc::new(Self {
            connection: Weak::new(),
            outcome: Mutex::new(None),
        })
    }

    /// Puts the outcome there, unless there was one, and has the connection go on.
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
