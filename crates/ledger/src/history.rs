//! The state of a log: the end of its chain, its owner, and its live records.

use std::mem;

use crosstie_queues::{QueueId, Record};

use crate::body;
use crate::broken::Broken;
use crate::config::Config;
use crate::entry::{Head, Kind, Owner};
use crate::in_flight::InFlight;
use crate::live::Live;
use crate::record::{Phase, Recovery, Release};

/// The end of a log, as far as known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub sequence: u64,
    /// Of the entry there.
    pub checksum: u32,
    /// The log's name; 0: no entry yet.
    pub log: u64,
    pub epoch: u64,
    /// The last complete batch.
    pub batch: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    pub end: End,
    pub owner: Option<Owner>,
    pub live: Live,
    /// The last recovery by an operator, and the entry that describes it last.
    pub recovery: Option<(Recovery, u64)>,
    /// A rewriting of the log has begun and has not ended.
    is_unfinished: bool,
    /// The last entry with which another writer began; 0 if none is known.
    pub changed_at: u64,
    /// Set when the owner has written its last entry.
    pub released: Option<Release>,
    /// The positions from which on messages were never delivered, from `released`, for the next owner.
    rested: Vec<(QueueId, i64)>,
    /// An incomplete batch; the next batch replaces it if its writer was deposed.
    partial: Option<Partial>,
    /// Octets of entries in the log behind the last complete batch.
    partial_bytes: u64,
}

#[derive(Clone, Debug)]
struct Partial {
    head: Head,
    body: Vec<u8>,
}

/// The batch that an entry has completed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Whole {
    Owned(Owner),
    Fresh(Vec<Record>),
    Kept,
    Released(Release),
    /// The records read before may not be live any more.
    Recovered,
}

impl History {
    /// Of a log that was not read yet.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            end: End::default(),
            owner: None,
            live: Live::new(config),
            recovery: None,
            is_unfinished: false,
            changed_at: 0,
            released: None,
            rested: Vec::new(),
            partial: None,
            partial_bytes: 0,
        }
    }

    /// Takes the entry behind the last one, or the first one available; returns the batch that it completes.
    pub(crate) fn take(&mut self, sequence: u64, entry: &[u8]) -> Result<Option<Whole>, Broken> {
        let (head, part) = Head::open(entry)?;
        if self.end.sequence + 1 == sequence && self.is_late(sequence, &head) {
            self.pass_over(sequence, entry.len());
            return Ok(None);
        }
        let begins = Phase::of_entry(&head, part) == Some(Phase::Begins);
        // The beginning of a recovery has no predecessor: the log before it may be broken.
        let is_first = self.end.log == 0 || begins;
        match (self.end.log != 0, begins) {
            (true, false) => self.check(sequence, &head, part)?,
            (true, true) => self.check_place(sequence, &head)?,
            (false, _) => {}
        }
        let body = match self.partial.take() {
            // Its writer was deposed, or this entry would continue it.
            Some(partial) if head.part > 0 => {
                let is_next = head.part.checked_sub(1) == Some(partial.head.part);
                if !is_next || (head.kind, head.batch) != (partial.head.kind, partial.head.batch) {
                    return Err(Broken::Chain);
                }
                let mut body = partial.body;
                body.extend_from_slice(part);
                body
            }
            None if head.part > 0 => return Err(Broken::Chain),
            Some(_) if !changes_hands(&head, part) => return Err(Broken::Chain),
            Some(_) | None => part.to_vec(),
        };
        self.end = End {
            sequence,
            checksum: head.checksum,
            log: head.log,
            epoch: head.epoch,
            batch: if is_first {
                head.batch.saturating_sub(1)
            } else {
                self.end.batch
            },
        };
        if changes_hands(&head, part) {
            self.changed_at = sequence;
        }
        self.partial_bytes += entry.len() as u64;
        if !head.is_last {
            self.partial = Some(Partial { head, body });
            return Ok(None);
        }
        self.complete(&head, &body).map(Some)
    }

    /// Whether an entry is the second of two that a former owner had in flight when another writer began. It expected
    /// an entry of its own in that writer's place, and the log accepted it all the same: the number was right. Its
    /// owner confirms nothing of it, and readers pass over it.
    pub(crate) fn is_late(&self, sequence: u64, head: &Head) -> bool {
        self.changed_at > 0 && sequence == self.changed_at + 1 && head.epoch < self.end.epoch
    }

    /// Passes over such an entry, which is purged with the one before it: no log begins with it.
    pub(crate) fn pass_over(&mut self, sequence: u64, bytes: usize) {
        self.end.sequence += 1;
        match self.partial_bytes {
            0 => self.live.extents.extend(sequence, bytes as u64),
            _ => self.partial_bytes += bytes as u64,
        }
    }

    /// The node writes from here on: nothing completes an incomplete batch.
    pub(crate) fn partial_end(&mut self) {
        self.partial = None;
    }

    /// Records that an own entry is in the log.
    pub(crate) fn arrive(&mut self, sequence: u64, in_flight: &InFlight) {
        self.partial_bytes += in_flight.entry.len() as u64;
        if in_flight.is_last {
            let bytes = mem::take(&mut self.partial_bytes);
            let first = sequence - u64::from(in_flight.part);
            let extents = &mut self.live.extents;
            extents.end(in_flight.batch, (first, sequence), bytes);
        }
    }

    /// Records a recovery that was written.
    pub(crate) fn note_recovery(&mut self, phase: Phase, recovery: Recovery) {
        match phase {
            Phase::Begins => {
                self.live = self.live.anew();
                // The batch of this record itself.
                self.live.extents.begin(self.end.batch);
                self.is_unfinished = true;
            }
            Phase::Ends => self.is_unfinished = false,
            Phase::Whole | Phase::Again => {}
        }
        self.recovery = Some((recovery, self.end.sequence));
    }

    /// Bytes in memory, beside the messages: of what is live, and of a batch that is not whole yet.
    pub(crate) fn memory_bytes(&self) -> usize {
        let partial = self.partial.as_ref();
        self.live.memory_bytes() + partial.map_or(0, |partial| partial.body.capacity())
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// Another owner begins: the record of undelivered messages was for the last one alone.
    pub(crate) fn change_hands(&mut self) {
        let rested = self.released.take().and_then(|released| released.rested);
        self.rested = rested.unwrap_or_default();
    }

    /// The messages that were never delivered, of the queues for which that is known.
    pub(crate) fn rested(&self) -> impl Iterator<Item = Record> {
        let rested = self.rested.iter();
        rested.map(|(queue, fresh_from)| Record::Rested {
            queue: *queue,
            fresh_from: *fresh_from,
        })
    }

    /// Whether an entry follows the last one.
    fn check(&self, sequence: u64, head: &Head, part: &[u8]) -> Result<(), Broken> {
        // The log before it was purged, and is perhaps another one: it has to be read from its front.
        if sequence.checked_sub(1) != Some(self.end.sequence) {
            return Err(Broken::Missing);
        }
        let phase = Phase::of_entry(head, part);
        if head.log != self.end.log && phase != Some(Phase::Whole) {
            return Err(Broken::Foreign);
        }
        let is_next = head.batch.checked_sub(1) == Some(self.end.batch);
        let is_of_epoch = match changes_hands(head, part) {
            true => {
                self.check_place(sequence, head)?;
                true
            }
            false => head.epoch == self.end.epoch && self.released.is_none(),
        };
        match is_next && is_of_epoch && head.before == self.end.checksum {
            true => Ok(()),
            false => Err(Broken::Chain),
        }
    }

    /// Whether an entry of another writer follows the last one.
    fn check_place(&self, sequence: u64, head: &Head) -> Result<(), Broken> {
        if sequence.checked_sub(1) != Some(self.end.sequence) {
            return Err(Broken::Missing);
        }
        match head.epoch > self.end.epoch {
            true => Ok(()),
            false => Err(Broken::Chain),
        }
    }

    fn complete(&mut self, head: &Head, body: &[u8]) -> Result<Whole, Broken> {
        let bytes = mem::take(&mut self.partial_bytes);
        self.end.batch = head.batch;
        self.live.extents.begin(head.batch);
        let whole = match head.kind {
            Kind::Owned => {
                let owner = Owner::decode(body)?;
                self.owner = Some(owner.clone());
                self.change_hands();
                Whole::Owned(owner)
            }
            Kind::Released => {
                let released = Release::decode(body)?;
                self.released = Some(released.clone());
                Whole::Released(released)
            }
            Kind::Recovered => {
                let (phase, recovery) = Recovery::decode(body)?;
                if !matches!(phase, Phase::Again) {
                    self.released = None;
                }
                self.note_recovery(phase, recovery);
                Whole::Recovered
            }
            Kind::Fresh | Kind::Kept => {
                self.rested = Vec::new();
                let mut records = Vec::new();
                let is_fresh = head.kind == Kind::Fresh;
                self.live.note_writer(head.epoch, is_fresh);
                for (record, name) in body::decode(body)? {
                    self.live.take(&record, name.as_ref());
                    records.push(record);
                }
                match head.kind {
                    Kind::Kept => Whole::Kept,
                    _ => Whole::Fresh(records),
                }
            }
        };
        let last = self.end.sequence;
        let first = last - u64::from(head.part).min(last - 1);
        self.live.extents.end(head.batch, (first, last), bytes);
        self.live.extents.merge_idle();
        Ok(whole)
    }
}

/// Whether an entry begins the work of another writer.
pub(crate) fn changes_hands(head: &Head, part: &[u8]) -> bool {
    match head.kind {
        Kind::Owned => head.part == 0,
        Kind::Recovered => {
            let phase = Phase::of_entry(head, part);
            matches!(phase, Some(Phase::Whole | Phase::Begins))
        }
        _ => false,
    }
}
