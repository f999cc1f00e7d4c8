//! A connection's entries on the account, and the judgement whether its peer is too slow.

use crate::ConnectionLimits;

/// All except the state of other layers, which idle connections have too.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Its own bytes that wait behind a full socket, with their buffers.
    pub(crate) queued_bytes: usize,
    /// Shared bytes that wait there; on the account for all their senders.
    pub(crate) shared_bytes: usize,
    /// Those of them that are being sent.
    pub(crate) shared_in_flight_bytes: usize,
    /// Input that the reader keeps.
    pub(crate) input: Coming,
    /// Input of an incomplete message that the protocol has consumed and keeps.
    pub(crate) partial: Coming,
    /// Since when the socket has been full, or when that was judged last, and the bytes taken since.
    full_at_s: u32,
    pub(crate) taken_bytes: usize,
    /// The account has registered the connection as a debtor.
    pub(crate) is_debtor: bool,
}

/// An incomplete message that is arriving.
#[derive(Clone, Copy, Default)]
pub(crate) struct Coming {
    pub(crate) bytes: usize,
    pub(crate) since_s: u32,
}

/// A slow peer is tolerated if it will take all waiting bytes in this many times the time in which it has to take
/// something.
const PATIENCE: usize = 10;

impl Ledger {
    /// The socket has become full.
    pub(crate) fn begin_full(&mut self, now_s: u32) {
        self.full_at_s = now_s;
        self.taken_bytes = 0;
    }

    /// Whether the peer took too little of `waiting` bytes during the time in which it has to take something. Each
    /// judgement starts that time anew.
    pub(crate) fn judge_full(
        &mut self,
        queued_bytes: usize,
        now_s: u32,
        limits: &ConnectionLimits,
    ) -> bool {
        let full_for_s = u64::from(now_s.saturating_sub(self.full_at_s));
        if full_for_s <= limits.stall_max.as_secs() {
            return false;
        }
        let taken = self.taken_bytes;
        self.begin_full(now_s);
        is_slow(taken, full_for_s, limits) && queued_bytes > taken.saturating_mul(PATIENCE)
    }

    /// Whether an incomplete message has waited too long for its rest.
    pub(crate) fn is_input_overdue(&self, now_s: u32, limits: &ConnectionLimits) -> bool {
        self.input.is_overdue(now_s, limits) || self.partial.is_overdue(now_s, limits)
    }

    /// Restarts the time of incomplete messages, because the peer could not send.
    pub(crate) fn renew_input(&mut self, now_s: u32) {
        self.input.since_s = now_s;
        self.partial.since_s = now_s;
    }

    /// Whether all entries are zero.
    pub(crate) fn is_even(&self) -> bool {
        let input = self.input.bytes + self.partial.bytes;
        self.queued_bytes + self.shared_bytes + input == 0 && !self.is_debtor
    }
}

impl Coming {
    fn is_overdue(self, now_s: u32, limits: &ConnectionLimits) -> bool {
        let age_s = u64::from(now_s.saturating_sub(self.since_s));
        let is_late = self.bytes > 0 && age_s > limits.message_max.as_secs();
        is_late && is_slow(self.bytes, age_s, limits)
    }
}

fn is_slow(bytes: usize, within_s: u64, limits: &ConnectionLimits) -> bool {
    (bytes as u64) < within_s.saturating_mul(limits.bytes_per_second_min as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::Account;

    fn limits() -> ConnectionLimits {
        ConnectionLimits {
            queue_bytes_max: 1 << 30,
            stall_max: Duration::from_secs(30),
            message_max: Duration::from_secs(60),
            bytes_per_second_min: 1000,
            account: Arc::new(Account::new(1 << 30)),
        }
    }

    #[test]
    fn a_peer_that_takes_next_to_nothing_of_much_is_too_slow() {
        for (seconds, taken, queued, is_too_slow) in [
            (30, 0, 1_000_000, false),
            (31, 0, 1_000_000, true),
            (31, 30_999, 1_000_000, true),
            (31, 31_000, 1_000_000_000, false),
            // At this rate all will be taken in ten times the time.
            (31, 5000, 50_000, false),
            (31, 5000, 50_001, true),
        ] {
            let mut ledger = Ledger::default();
            ledger.begin_full(100);
            ledger.taken_bytes = taken;
            let judged = ledger.judge_full(queued, 100 + seconds, &limits());
            assert_eq!(judged, is_too_slow, "{taken} of {queued} in {seconds} s");
        }
    }

    #[test]
    fn each_judgement_is_of_its_own_time() {
        let mut ledger = Ledger::default();
        ledger.begin_full(0);
        ledger.taken_bytes = 1_000_000;
        assert!(!ledger.judge_full(usize::MAX, 31, &limits()));
        assert!(!ledger.judge_full(usize::MAX, 61, &limits()));
        assert!(ledger.judge_full(usize::MAX, 62, &limits()));
    }

    #[test]
    fn a_message_arrives_in_time_or_at_the_minimum_rate() {
        for (seconds, bytes, is_overdue) in [
            (60, 1, false),
            (61, 0, false),
            (61, 1, true),
            (61, 60_999, true),
            (61, 61_000, false),
            (1000, 999_999, true),
            (1000, 1_000_000, false),
        ] {
            let coming = Coming { bytes, since_s: 7 };
            for (input, partial) in [(coming, Coming::default()), (Coming::default(), coming)] {
                let ledger = Ledger {
                    input,
                    partial,
                    ..Ledger::default()
                };
                let judged = ledger.is_input_overdue(7 + seconds, &limits());
                assert_eq!(judged, is_overdue, "{bytes} in {seconds} s");
            }
        }
    }
}
