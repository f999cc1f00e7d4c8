//! A ledger that follows: entries in, what the vhost is to restore out.

use std::cmp::Ordering;

use crosstie_queues::{Record, Time};

use crate::broken::Broken;
use crate::entry::Owner;
use crate::handed::Handed;
use crate::history::Whole;
use crate::ledger::{Ledger, Role, Sequence};

/// What an entry has brought.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// It is a part, or says again what was said before.
    Nothing,
    /// Another node owns the vhost now.
    Owned(Owner),
    /// What happened, for the vhost to restore.
    Records(Vec<Record>),
    /// Its owner writes no more, and says who is to own it.
    Handed(Handed),
    /// What counts is not what was read, but what [`Ledger::records`] says.
    Recovered,
}

impl Ledger {
    /// Takes the log's next entry, or the first that is there.
    pub fn handle_entry(
        &mut self,
        Sequence(sequence): Sequence,
        entry: &[u8],
    ) -> Result<News, Broken> {
        // Read twice: a consumer began anew.
        if sequence <= self.history.end.sequence {
            return Ok(News::Nothing);
        }
        Ok(match self.history.take(sequence, entry)? {
            None | Some(Whole::Kept) => News::Nothing,
            Some(Whole::Owned(owner)) => News::Owned(owner),
            Some(Whole::Fresh(records)) => News::Records(records),
            Some(Whole::Handed(handed)) => News::Handed(handed),
            Some(Whole::Recovered) => News::Recovered,
        })
    }

    /// Everything that counts in what was read, in an order that a vhost takes.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.history.live.records()
    }

    /// The messages that were never delivered, if the previous owner ended in good order. The vhost reads these after
    /// [`Self::records`].
    pub fn rested(&self) -> impl Iterator<Item = Record> {
        self.history.rested()
    }

    /// Whether what was read is all that there is: the log's last entry has the number `last`, and `known` is what the node
    /// has seen of it before: which log it was, and an entry that was acknowledged. Before [`Self::claim`].
    ///
    /// A log that has numbers and no entries is [`Broken::Missing`]: no owner purges the last one.
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

    /// Wants to own the vhost: the log is read to its end, as far as is known. `log` names it, if it is
    /// empty, and is not 0.
    pub fn claim(&mut self, now: Time, owner: &Owner, log: u64) {
        if self.role != Role::Following || self.history.is_unfinished() {
            return;
        }
        self.role = Role::Claiming;
        self.history.change_hands();
        self.claimed_at = self.history.end.sequence;
        if self.history.end.log == 0 {
            self.history.end.log = log.max(1);
        }
        self.history.end.epoch += 1;
        self.append_owned(now, owner);
    }
}
