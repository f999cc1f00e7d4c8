//! The parts that nearly every change writes to: the journal, the counters, the bytes of messages.

use std::sync::Arc;

use crate::{Content, Counts, Journal, Message, MessageNumber, Record, SessionNumber, Time};

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) is_stored: bool,
    pub(crate) journal: Journal,
    pub(crate) counts: Counts,
    /// The store has committed everything up to here.
    pub(crate) committed: u64,
    /// Bytes of messages, and of sessions without a connection.
    pub(crate) kept_bytes: usize,
    pub(crate) messages_made: u64,
    pub(crate) sessions_made: u64,
    /// The first place of messages in sessions of this run.
    pub(crate) first_place: u64,
}

impl Ledger {
    pub(crate) fn message(&mut self, content: &Content<'_>, now: Time) -> Arc<Message> {
        let number = self.message_number();
        Arc::new(Message::new(content, number, now))
    }

    /// Begins a run: numbers and places of earlier ones are not used again, whatever the store has dropped. A run has
    /// fewer than 65,536 of each in a millisecond. None is below the greatest ones that the store has, either.
    pub(crate) fn begin_run(&mut self, now: Time, [session, message, place]: [u64; 3]) {
        let first = now.0 << 16;
        self.sessions_made = self.sessions_made.max(first).max(session);
        self.messages_made = self.messages_made.max(first).max(message);
        self.first_place = self.first_place.max(first).max(place.saturating_add(1));
    }

    pub(crate) fn message_number(&mut self) -> MessageNumber {
        self.messages_made += 1;
        MessageNumber(self.messages_made)
    }

    pub(crate) fn session_number(&mut self) -> SessionNumber {
        self.sessions_made += 1;
        SessionNumber(self.sessions_made)
    }

    #[inline]
    pub(crate) fn record(&mut self, record: Record) {
        self.journal.record(record);
    }

    /// Whether a record with that position is committed; 0 is none.
    #[inline]
    pub(crate) fn is_committed(&self, position: u64) -> bool {
        position <= self.committed
    }

    /// Adds a holder of a message: its bytes count with the first one.
    pub(crate) fn hold(&mut self, message: &Message) {
        if message.holders.add() {
            self.kept_bytes += message.bytes();
        }
    }

    pub(crate) fn release(&mut self, message: &Message) {
        if message.holders.remove() {
            self.kept_bytes = self.kept_bytes.saturating_sub(message.bytes());
        }
    }

    /// Adds the topic as holder of a retained message.
    pub(crate) fn hold_retained(&mut self, message: &Message) {
        self.hold(message);
        self.keep(retained_bytes(message));
    }

    pub(crate) fn release_retained(&mut self, message: &Message) {
        self.release(message);
        self.keep(-retained_bytes(message));
    }

    /// Removes an entry of a kept session: the message's record goes with the last one.
    pub(crate) fn release_stored(&mut self, message: &Message) {
        if message.holders.remove_stored() {
            self.record(Record::MessageGone {
                message: message.number,
            });
        }
    }

    /// Moves bytes of a session between the account of its connection and that of the space.
    pub(crate) fn keep(&mut self, delta: isize) {
        self.kept_bytes = self.kept_bytes.saturating_add_signed(delta);
    }
}

/// Bytes of a retained message's topic and its timer.
fn retained_bytes(message: &Message) -> isize {
    (message.topic().len() + RETAINED_BYTES) as isize
}

/// Without the text.
const RETAINED_BYTES: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_come_again_if_the_clock_steps_back() {
        let mut ledger = Ledger::default();
        ledger.begin_run(Time(1_000), [0; 3]);
        let (session, message) = (ledger.session_number(), ledger.message_number());
        let place = ledger.first_place + 7;
        let mut next = Ledger::default();
        next.begin_run(Time(1), [session.0, message.0, place]);
        assert!(next.session_number() > session && next.message_number() > message);
        assert!(next.first_place > place);
    }
}
