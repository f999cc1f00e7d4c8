//! The line of those that wait for a commit: acknowledgements, and sessions that have more to send.

use std::collections::VecDeque;

use crate::Answer;
use crate::keys::SessionKey;

#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    position: u64,
    pub(crate) session: SessionKey,
    pub(crate) connection: u32,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Answer(Answer),
    /// The session's next message was not committed.
    Send,
}

impl Line {
    pub(crate) fn push(&mut self, position: u64, session: SessionKey, connection: u32, what: What) {
        // A message that was recorded earlier waits for those in front of it, so that the line is in order.
        let last = self.waiting.back().map_or(0, |last| last.position);
        self.waiting.push_back(Waiting {
            position: position.max(last),
            session,
            connection,
            what,
        });
    }

    pub(crate) fn take_due(&mut self, committed: u64) -> Option<Waiting> {
        let is_due = self.waiting.front()?.position <= committed;
        if !is_due {
            return None;
        }
        let waiting = self.waiting.pop_front();
        if self.waiting.is_empty() && self.waiting.capacity() > WAITING_KEPT {
            self.waiting = VecDeque::new();
        }
        waiting
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// An empty line with more places frees them.
const WAITING_KEPT: usize = 1024;
