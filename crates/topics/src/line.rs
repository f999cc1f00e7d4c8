//! The line of those that wait for a commit: acknowledgements, and sessions that have more to send.

use std::collections::VecDeque;

use crate::keys::SessionKey;
use crate::{Answer, Reply};

#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Waiting {
    position: u64,
    pub(crate) session: SessionKey,
    pub(crate) connection: u32,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Answer(Answer),
    Reply(Reply),
    /// The session's next message was not committed.
    Send,
}

impl Line {
    pub(crate) fn push(&mut self, position: u64, session: SessionKey, connection: u32, what: What) {
        // A message that was recorded earlier waits for those in front of it, so that the line is in order.
        let last = self.waiting.back().map_or(0, |last| last.position);
        let waiting = Waiting {
            position: position.max(last),
            session,
            connection,
            what,
        };
        self.bytes += waiting.bytes();
        self.waiting.push_back(waiting);
    }

    pub(crate) fn take_due(&mut self, committed: u64) -> Option<Waiting> {
        if !self.is_due(committed) {
            return None;
        }
        let waiting = self.waiting.pop_front();
        self.bytes -= waiting.as_ref().map_or(0, Waiting::bytes);
        if self.waiting.is_empty() && self.waiting.capacity() > WAITING_KEPT {
            self.waiting = VecDeque::new();
        }
        waiting
    }

    /// Whether the first one is due.
    pub(crate) fn is_due(&self, committed: u64) -> bool {
        let first = self.waiting.front();
        first.is_some_and(|first| first.position <= committed)
    }

    /// Those that wait for a position or an earlier one.
    pub(crate) fn up_to(&self, position: u64) -> impl Iterator<Item = &Waiting> {
        let waiting = self.waiting.iter();
        waiting.take_while(move |waiting| waiting.position <= position)
    }

    /// Removes those that wait for a position or an earlier one, except for the given ones.
    pub(crate) fn forget(&mut self, position: u64, stays: impl Fn(&Waiting) -> bool) {
        self.waiting
            .retain(|waiting| waiting.position > position || stays(waiting));
        self.bytes = self.waiting.iter().map(Waiting::bytes).sum();
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

impl Waiting {
    fn bytes(&self) -> usize {
        let codes = match &self.what {
            What::Reply(Reply::SubAck(_, codes) | Reply::UnsubAck(_, codes)) => codes.len(),
            _ => 0,
        };
        size_of::<Self>() + codes
    }
}

/// An empty line with more places frees them.
const WAITING_KEPT: usize = 1024;
