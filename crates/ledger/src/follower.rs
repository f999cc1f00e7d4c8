//! A ledger that follows: takes entries, returns records for the vhost to restore.

use std::cmp::Ordering;

use crosstie_queues::{Record, Time};

use crate::broken::Broken;
use crate::entry::Owner;
use crate::history::Whole;
use crate::ledger::{Ledger, Role, Sequence};
use crate::record::Release;

/// The meaning of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A part of a batch, or a repetition.
    Nothing,
    /// Another node owns the vhost now.
    Owned(Owner),
    /// New records for the vhost to restore.
    Records(Vec<Record>),
    /// The owner has written its last entry, and names the next owner.
    Released(Release),
    /// The records read so far are replaced by [`Ledger::records`].
    Recovered,
}

impl Ledger {
    /// Handles the log's next entry, or the first one available.
    pub fn handle_entry(
        &mut self,
        Sequence(sequence): Sequence,
        entry: &[u8],
    ) -> Result<News, Broken> {
        // Read twice: a consumer restarted.
        if sequence <= self.history.end.sequence {
            return Ok(News::Nothing);
        }
        Ok(match self.history.take(sequence, entry)? {
            None | Some(Whole::Kept) => News::Nothing,
            Some(Whole::Owned(owner)) => News::Owned(owner),
            Some(Whole::Fresh(records)) => News::Records(records),
            Some(Whole::Released(release)) => News::Released(release),
            Some(Whole::Recovered) => News::Recovered,
        })
    }

    /// All live records of the entries read, in an order that a vhost can restore.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.history.live.records()
    }

    /// The messages that were never delivered, if the previous owner ended in order. The vhost reads these after
    /// [`Self::records`].
    pub fn rested(&self) -> impl Iterator<Item = Record> {
        self.history.rested()
    }

    /// Checks that all entries were read: the log's last entry has the number `last`, and `known` is the log's name and
    /// an acknowledged entry that the node has seen before. Call it before [`Self::claim`].
    ///
    /// A log that has a last number but no entries is [`Broken::Missing`]: no owner purges the last entry.
    pub fn check_end(&self, last: Sequence, known: Option<(u64, Sequence)>) -> Result<(), Broken> {
        let end = &self.history.end;
        if let Some((log, sequence)) = known
            && (end.log == log || !self.replaces(log))
        {
            if last < sequence {
                return Err(Broken::Shorter);
            }
            if end.log != log {
                return Err(Broken::Foreign);
            }
        }
        if self.history.is_unfinished() {
            return Err(Broken::Unfinished);
        }
        match last.0.cmp(&end.sequence) {
            Ordering::Less => Err(Broken::Shorter),
            Ordering::Equal => Ok(()),
            Ordering::Greater => Err(Broken::Missing),
        }
    }

    /// Claims the vhost, after the log was read to its end, as far as known. `log` is the name for an empty log, and
    /// not 0.
    pub fn claim(&mut self, now: Time, owner: &Owner, log: u64) {
        if self.role != Role::Following || self.history.is_unfinished() {
            return;
        }
        self.role = Role::Claiming;
        self.history.change_hands();
        if self.history.end.log == 0 {
            self.history.end.log = log.max(1);
        }
        self.history.end.epoch += 1;
        self.append_owned(now, owner);
    }
}
