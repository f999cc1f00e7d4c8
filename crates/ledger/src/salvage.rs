//! What can be read of a log whatever is wrong with it.
//!
//! Entries that cannot be read are passed over, and what is behind them counts all the same: a message that was taken may be there
//! again, and what was in such an entry is lost. That is for an operator to accept, who is told how many they are.

use std::mem;

use crosstie_queues::Record;

use crate::body;
use crate::broken::{Broken, FORMAT};
use crate::entry::{Head, Kind};
use crate::ledger::Sequence;
use crate::live::Live;
use crate::recovery::{Phase, Recovery};

/// What begins with more is of no version of this program.
const FORMATS_MAX: u8 = 16;

/// Reads entries in their order, with their numbers.
#[derive(Debug, Default)]
pub struct Salvage {
    live: Live,
    /// What counted when a recovery began that has not come to its end.
    before: Option<Live>,
    partial: Option<(Head, Vec<u8>)>,
    last: u64,
    found: Salvaged,
    /// What counts is not kept.
    only_counts: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Entries that could be read.
    pub entries: u64,
    /// Those that could not, with those that are missing between others.
    pub unreadable: u64,
    pub epoch: u64,
    /// The logs that they are of, in their order.
    pub logs: Vec<u64>,
    /// Something in it is of a later version: it is not to be thrown away.
    pub is_of_later: bool,
}

impl Salvage {
    /// One that says what there is, and keeps nothing of it.
    pub fn counting() -> Self {
        Self {
            only_counts: true,
            ..Self::default()
        }
    }

    /// Takes an entry.
    pub fn take(&mut self, Sequence(sequence): Sequence, entry: &[u8]) {
        let missing = match self.last {
            0 => 0,
            last => sequence.saturating_sub(last + 1),
        };
        self.last = sequence;
        if missing > 0 {
            self.found.unreadable += missing;
            self.partial = None;
        }
        let is_read = match Head::open(entry) {
            Ok((head, part)) => self.read(head, part),
            Err(broken) => Err(broken),
        };
        match is_read {
            Ok(()) => self.found.entries += 1,
            Err(broken) => {
                self.found.is_of_later |= match broken {
                    Broken::Kind(_) => true,
                    // Formats are counted; text or noise is none.
                    Broken::Format(format) => (FORMAT..FORMATS_MAX).contains(&format),
                    _ => false,
                };
                self.found.unreadable += 1;
                self.partial = None;
            }
        }
    }

    /// What was found, and what counts in it, in an order that a vhost takes.
    pub fn finish(mut self) -> (Salvaged, Vec<Record>) {
        if let Some(before) = self.before.take() {
            self.live = before;
        }
        (self.found, self.live.records().collect())
    }

    fn read(&mut self, head: Head, part: &[u8]) -> Result<(), Broken> {
        let phase = Phase::of_entry(&head, part);
        let log = self.found.logs.last().copied();
        let is_of_other = log.is_some_and(|log| log != head.log);
        if is_of_other && !matches!(phase, Some(Phase::Whole | Phase::Begins)) {
            return Err(Broken::Foreign);
        }
        if log != Some(head.log) {
            self.found.logs.push(head.log);
        }
        self.found.epoch = self.found.epoch.max(head.epoch);
        let body = match (self.partial.take(), head.part) {
            (_, 0) => part.to_vec(),
            (Some((of, body)), number) if of.batch == head.batch && of.part + 1 == number => {
                [&body, part].concat()
            }
            _ => return Err(Broken::Missing),
        };
        if !head.is_last {
            self.partial = Some((head, body));
            return Ok(());
        }
        match head.kind {
            Kind::Fresh | Kind::Kept => {
                let records = body::decode(&body)?;
                if self.only_counts {
                    return Ok(());
                }
                self.live.begin(head.batch);
                for (record, name) in records {
                    self.live.take(head.batch, &record, name.as_ref());
                }
            }
            Kind::Recovered => match Recovery::decode(&body)?.0 {
                Phase::Begins => {
                    let live = mem::take(&mut self.live);
                    self.before.get_or_insert(live);
                }
                Phase::Ends => self.before = None,
                Phase::Whole | Phase::Again => {}
            },
            Kind::Owned | Kind::Handed => {}
        }
        Ok(())
    }
}
