//! Salvage: the records that can be read of a broken log.
//!
//! Unreadable entries are skipped, and the entries behind them still count. A message that was consumed may reappear,
//! and the content of a skipped entry is lost. The operator gets the number of skipped entries, and decides whether to
//! accept that.

use std::mem;

use crosstie_queues::Record;

use crate::body;
use crate::broken::{Broken, FORMAT};
use crate::config::Config;
use crate::entry::{Head, Kind};
use crate::history::changes_hands;
use crate::ledger::Sequence;
use crate::live::Live;
use crate::record::{Phase, Recovery};

/// No version of this program has formats from this one on.
const FORMATS_MAX: u8 = 16;

/// Reads entries in their order, with their numbers.
#[derive(Debug)]
pub struct Salvage {
    /// With all messages.
    live: Live,
    /// The live records when a recovery began that has not ended.
    before: Option<Live>,
    partial: Option<(Head, Vec<u8>)>,
    last: u64,
    /// The last entry with which another writer began.
    changed_at: u64,
    found: Salvaged,
    /// Only counts; keeps no records.
    only_counts: bool,
}

/// The findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Readable entries.
    pub entries: u64,
    /// Unreadable entries, including those missing between others.
    pub unreadable: u64,
    pub epoch: u64,
    /// The names of their logs, in order.
    pub logs: Vec<u64>,
    /// Whether something in it is of a later version: such a log must not be discarded.
    pub is_of_later: bool,
}

impl Default for Salvage {
    fn default() -> Self {
        Self {
            live: Live::new(Config::default()),
            before: None,
            partial: None,
            last: 0,
            changed_at: 0,
            found: Salvaged::default(),
            only_counts: false,
        }
    }
}

impl Salvage {
    /// A salvage that only counts, and keeps no records.
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
            Ok((head, part)) => self.read(sequence, head, part),
            Err(broken) => Err(broken),
        };
        match is_read {
            Ok(()) => self.found.entries += 1,
            Err(broken) => {
                self.found.is_of_later |= match broken {
                    Broken::Kind(_) => true,
                    // Formats are small numbers; text or noise has none of them.
                    Broken::Format(format) => (FORMAT..FORMATS_MAX).contains(&format),
                    _ => false,
                };
                self.found.unreadable += 1;
                self.partial = None;
            }
        }
    }

    /// The findings, and the live records in an order that a vhost can restore.
    pub fn finish(mut self) -> (Salvaged, Vec<Record>) {
        if let Some(before) = self.before.take() {
            self.live = before;
        }
        (self.found, self.live.records().collect())
    }

    fn read(&mut self, sequence: u64, head: Head, part: &[u8]) -> Result<(), Broken> {
        let follows_change = self.changed_at > 0 && sequence == self.changed_at + 1;
        if follows_change && head.epoch < self.found.epoch {
            // Of a former owner, which has confirmed nothing of it: `History::is_late`.
            return Ok(());
        }
        if changes_hands(&head, part) {
            self.changed_at = sequence;
        }
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
                self.live.extents.begin(head.batch);
                for (record, name) in records {
                    self.live.take(&record, name.as_ref());
                }
            }
            Kind::Recovered => match Recovery::decode(&body)?.0 {
                Phase::Begins => {
                    let anew = self.live.anew();
                    let live = mem::replace(&mut self.live, anew);
                    self.before.get_or_insert(live);
                }
                Phase::Ends => self.before = None,
                Phase::Whole | Phase::Again => {}
            },
            Kind::Owned | Kind::Released => {}
        }
        Ok(())
    }
}
