//! Cleaning: the oldest live records are written again, and the entries before them are purged.
//!
//! What is live follows from all batches, also from those in flight. A batch in flight may never come into the log, if
//! another node claims the vhost. So the log is purged only once it has everything that was in flight when the purge
//! was found to be possible: a message that the batch moves to another queue is in the log at any time.
//!
//! The messages of a deep queue are read from the log before they are written again, an extent at a time. Of what was
//! read, what is live then counts ([`crate::repeating`]).

use crosstie_queues::{Record, Time};

use crate::broken::Broken;
use crate::entry::Kind;
use crate::ledger::{Effect, Ledger, Role, Sequence};
use crate::live::Oldest;
use crate::purging::Purging;
use crate::repeating::Repeating;

impl Ledger {
    /// Writes some of the oldest live records again if the log is long, or finds a purge; called between batches of new
    /// records. While records wait, the log may become twice as long.
    pub(crate) fn clean(&mut self, now: Time) {
        let of_cleaning = |kind| matches!(kind, Kind::Kept | Kind::Recovered);
        let mut in_flight = self.in_flight.iter();
        let is_busy = self.purging.is_some() || self.fetching.is_some();
        if is_busy || in_flight.any(|entry| of_cleaning(entry.kind)) {
            return;
        }
        if self.filling.is_some() {
            // The extent keeps what was not written again.
            self.repeating = None;
        }
        if let Some(repeating) = &mut self.repeating {
            if !repeating.take_turn() || self.waiting.is_empty() {
                self.repeat(Vec::new());
            }
            return;
        }
        let is_long = self.is_long(if self.waiting.is_empty() { 1 } else { 2 });
        let live = &mut self.history.live;
        // The last entry stays, even without live records: an empty log would look like one that lost its entries.
        let idle = live.extents.idle_front(self.acknowledged.saturating_sub(1));
        match idle {
            Some((to, bytes)) if bytes >= self.config.purge_bytes_min => self.purge_idle(to),
            _ if !is_long || self.filling.is_some() => {}
            _ => {
                let bytes_max = self.config.batch_bytes_max as u64;
                match (live.oldest(bytes_max, self.acknowledged), idle) {
                    (Oldest::InLog(..), _) if now < self.fetches_at => {}
                    (Oldest::InLog(extent, (first, last)), _) => {
                        self.fetching = Some(extent);
                        let (first, last) = (Sequence(first), Sequence(last));
                        self.effects.push_back(Effect::Fetch { first, last });
                    }
                    (Oldest::Records(records), _) if !records.is_empty() => {
                        self.append_batch(Kind::Kept, records, None);
                    }
                    (Oldest::Records(_), Some((to, _))) => self.purge_idle(to),
                    (Oldest::Records(_), None) => {}
                }
            }
        }
    }

    /// Whether the log has so many times the size from which on it is cleaned.
    pub(crate) fn is_long(&self, times: u64) -> bool {
        let live = &self.history.live;
        live.extents.log_bytes() > times * self.config.log_bytes_min.max(2 * live.bytes())
    }

    /// Handles the entries that [`Effect::Fetch`] requested: all of them, in their order. An error means that they are not
    /// what the node has read or written before; nothing is written again then.
    pub fn handle_fetched<'e>(
        &mut self,
        now: Time,
        entries: impl IntoIterator<Item = (Sequence, &'e [u8])>,
    ) -> Result<(), Broken> {
        let Some(extent) = self.fetching else {
            return Ok(());
        };
        if self.role != Role::Owning || self.filling.is_some() {
            self.fetching = None;
            return Ok(());
        }
        match self.live_messages(extent, entries) {
            Ok(messages) => {
                self.fetching = None;
                self.repeating = Some(Repeating::new(extent, messages));
                self.repeat(self.history.live.declarations(extent));
                self.proceed(now);
                Ok(())
            }
            Err(broken) => {
                self.handle_not_fetched(now);
                Err(broken)
            }
        }
    }

    /// Handles that the entries could not be read; they are requested again later.
    pub fn handle_not_fetched(&mut self, now: Time) {
        self.fetching = None;
        self.fetches_at = Time(now.0 + self.config.retry_ms);
    }

    /// Handles that the log was purged up to and including that entry.
    pub fn handle_purged(&mut self, now: Time, Sequence(to): Sequence) {
        self.purging = None;
        self.history.live.extents.purged(to);
        self.proceed(now);
    }

    /// Handles a failed purge; the next acknowledged entry triggers another.
    pub fn handle_not_purged(&mut self) {
        self.purging = None;
    }

    /// Notes an acknowledged entry, and requests the purge that waits for it.
    pub(crate) fn note_for_purge(&mut self) {
        let Some(Purging { to, behind }) = &mut self.purging else {
            return;
        };
        if let Some(left) = behind {
            *left = left.saturating_sub(1);
            if *left == 0 {
                *behind = None;
                let to = Sequence(*to);
                self.effects.push_back(Effect::Purge { to });
            }
        }
    }

    /// Writes the next batch of an extent that was read, behind these records.
    fn repeat(&mut self, mut records: Vec<Record>) {
        let Some(repeating) = &mut self.repeating else {
            return;
        };
        let bytes_max = self.config.batch_bytes_max;
        repeating.fill(&mut records, bytes_max, &self.history.live);
        if repeating.is_empty() {
            self.repeating = None;
        }
        if !records.is_empty() {
            self.append_batch(Kind::Kept, records, None);
        }
    }

    fn purge_idle(&mut self, to: u64) {
        if self.repeat_recovery(Sequence(to)) {
            return;
        }
        let behind = Some(self.in_flight.len()).filter(|behind| *behind > 0);
        self.purging = Some(Purging { to, behind });
        if behind.is_none() {
            let to = Sequence(to);
            self.effects.push_back(Effect::Purge { to });
        }
    }
}
