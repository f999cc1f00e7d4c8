//! Cleaning: the oldest live records are written again, and the entries before them are purged.

use crosstie_queues::Time;

use crate::entry::Kind;
use crate::ledger::{Effect, Ledger, Sequence};

impl Ledger {
    /// Writes some of the oldest live records again if the log is long; called between batches of new records.
    pub(crate) fn clean(&mut self) {
        if self.keeping.is_some() || self.purging.is_some() {
            return;
        }
        let live = &self.history.live;
        let is_long = live.log_bytes() > self.config.log_bytes_min.max(2 * live.bytes());
        // The last entry stays, even without live records: an empty log would look like one that lost its entries.
        let idle = live.idle_front(self.acknowledged.saturating_sub(1));
        match idle {
            Some((to, bytes)) if bytes >= self.config.purge_bytes_min => self.purge_idle(to),
            _ if !is_long => {}
            _ => {
                let bytes_max = self.config.batch_bytes_max as u64;
                let records = live.oldest(bytes_max, self.acknowledged);
                match (records.is_empty(), idle) {
                    (false, _) => {
                        self.append_batch(Kind::Kept, records, None);
                        self.keeping = Some(self.history.end.sequence);
                    }
                    (true, Some((to, _))) => self.purge_idle(to),
                    (true, None) => {}
                }
            }
        }
    }

    /// Handles that the log was purged up to and including that entry.
    pub fn handle_purged(&mut self, now: Time, Sequence(to): Sequence) {
        self.purging = None;
        self.history.live.purged(to);
        self.proceed(now);
    }

    /// Handles a failed purge; the next acknowledged entry triggers another.
    pub fn handle_not_purged(&mut self) {
        self.purging = None;
    }

    fn purge_idle(&mut self, to: u64) {
        if self.repeat_recovery(Sequence(to)) {
            return;
        }
        self.purging = Some(to);
        let to = Sequence(to);
        self.effects.push_back(Effect::Purge { to });
    }
}
