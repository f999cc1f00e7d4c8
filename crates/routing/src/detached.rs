//! Sessions that wait for their clients.

use std::collections::BTreeSet;

use crate::Time;
use crate::identity::SessionIndex;

/// What a client has to show.
pub(crate) type ResumeBytes = [u8; 32];

/// How often the memory is looked at while sessions are detached.
pub(crate) const LOOK_US: u64 = 1_000_000;

/// Of a session that may be resumed.
#[derive(Debug)]
pub(crate) struct Resumable {
    pub(crate) token: ResumeBytes,
    /// When it is given up, while nobody is connected to it.
    pub(crate) until: Option<Time>,
    /// It has been.
    pub(crate) is_resumed: bool,
}

/// Sessions without a connection, those that are given up first in front.
#[derive(Debug, Default)]
pub(crate) struct Detached {
    pub(crate) line: BTreeSet<(Time, SessionIndex)>,
    pub(crate) next_look: Time,
}

impl Detached {
    /// When somebody is given up, or the memory is looked at.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let (until, _) = self.line.first()?;
        Some(self.next_look.min(*until))
    }

    /// A session leaves that was waiting until then.
    pub(crate) fn forget(&mut self, until: Time, index: SessionIndex) {
        self.line.remove(&(until, index));
    }
}
