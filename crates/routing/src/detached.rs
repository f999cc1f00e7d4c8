//! Detached sessions: those that wait for their clients.

use std::collections::BTreeSet;

use crate::Time;
use crate::identity::SessionIndex;

/// The token by which a client resumes its session.
pub(crate) type ResumeBytes = [u8; 32];

/// How often memory pressure is checked while sessions are detached.
pub(crate) const LOOK_US: u64 = 1_000_000;

/// The state of a resumable session.
#[derive(Debug)]
pub(crate) struct Resumable {
    pub(crate) token: ResumeBytes,
    /// When it is ended, while no connection has it.
    pub(crate) until: Option<Time>,
    /// It has been resumed at least once.
    pub(crate) is_resumed: bool,
}

/// Sessions without a connection, in the order in which they expire.
#[derive(Debug, Default)]
pub(crate) struct Detached {
    pub(crate) line: BTreeSet<(Time, SessionIndex)>,
    pub(crate) next_look: Time,
}

impl Detached {
    /// When a session expires, or memory pressure is to be checked.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let (until, _) = self.line.first()?;
        Some(self.next_look.min(*until))
    }

    /// Removes a session that would have expired at `until`.
    pub(crate) fn forget(&mut self, until: Time, index: SessionIndex) {
        self.line.remove(&(until, index));
    }
}
