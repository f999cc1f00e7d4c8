//! The times for which messages waited in queues until they were sent.

use crosstie_collections::Histogram;

/// The waits of a vhost's messages, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    known: Histogram,
    /// Messages whose arrival is not known: sent again, from before a restart, or of a queue with priorities.
    unknown: u64,
}

impl Waits {
    #[inline]
    pub(crate) fn note(&mut self, waited_ms: Option<u64>) {
        match waited_ms {
            Some(waited_ms) => self.known.note(waited_ms),
            None => self.unknown += 1,
        }
    }

    /// The waits of all messages that were sent, so many. One that a consumer was sent on its arrival has waited 0 ms, and
    /// was not noted.
    pub(crate) fn of_sent(&self, sent: u64) -> Histogram {
        let mut waits = self.known;
        let noted = waits.count() + self.unknown;
        waits.note_zeros(sent.saturating_sub(noted));
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_sent_on_arrival_have_not_waited() {
        let mut waits = Waits::default();
        waits.note(Some(5));
        waits.note(None);
        let all = waits.of_sent(10);
        assert_eq!((all.count(), all.classes()[0], all.sum()), (9, 8, 5));
        assert_eq!(waits.of_sent(1).count(), 1);
    }
}
