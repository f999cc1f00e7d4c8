//! What a log says so far: where its chain has come to, who owns it, and what in it counts.

use std::mem;

use crate::body;
use crate::broken::Broken;
use crate::entry::{Head, Kind, Owner};
use crate::live::Live;

/// The end of a log, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub sequence: u64,
    /// Of the entry there.
    pub checksum: u32,
    /// Which log it is; 0: there was no entry yet.
    pub log: u64,
    pub epoch: u64,
    /// The last batch that is whole.
    pub batch: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub end: End,
    pub owner: Option<Owner>,
    pub live: Live,
    /// A batch of which only a part is there; it ends with the next one if its writer was deposed.
    partial: Option<Partial>,
    /// Octets of entries behind the last batch that is whole.
    partial_bytes: u64,
}

#[derive(Clone, Debug)]
struct Partial {
    head: Head,
    body: Vec<u8>,
}

/// What an entry has completed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Whole {
    Owned(Owner),
    Fresh(Vec<crosstie_queues::Record>),
    Kept,
}

impl History {
    /// Takes the entry behind the last one, or the first that is there; what it completes.
    pub(crate) fn take(&mut self, sequence: u64, entry: &[u8]) -> Result<Option<Whole>, Broken> {
        let (head, part) = Head::open(entry)?;
        let is_first = self.end.log == 0;
        if !is_first {
            self.check(sequence, &head)?;
        }
        let body = match self.partial.take() {
            // Its writer was deposed, or this would go on with it.
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
            Some(_) if head.kind != Kind::Owned => return Err(Broken::Chain),
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
        self.partial_bytes += entry.len() as u64;
        if !head.is_last {
            self.partial = Some(Partial { head, body });
            return Ok(None);
        }
        self.complete(&head, &body).map(Some)
    }

    /// Octets behind the last batch that is whole, of one that never will be: the node writes from here on.
    pub(crate) fn partial_end(&mut self) -> u64 {
        self.partial = None;
        mem::take(&mut self.partial_bytes)
    }

    /// Whether an entry follows the last one.
    fn check(&self, sequence: u64, head: &Head) -> Result<(), Broken> {
        let End {
            checksum,
            log,
            epoch,
            batch,
            ..
        } = self.end;
        if head.log != log {
            return Err(Broken::Foreign);
        }
        if sequence.checked_sub(1) != Some(self.end.sequence) {
            return Err(Broken::Missing);
        }
        let is_owned = head.kind == Kind::Owned;
        let is_of_epoch = match is_owned {
            true => head.epoch > epoch,
            false => head.epoch == epoch,
        };
        let is_next = head.batch.checked_sub(1) == Some(batch);
        match is_next && is_of_epoch && head.before == checksum {
            true => Ok(()),
            false => Err(Broken::Chain),
        }
    }

    fn complete(&mut self, head: &Head, body: &[u8]) -> Result<Whole, Broken> {
        let bytes = mem::take(&mut self.partial_bytes);
        self.end.batch = head.batch;
        self.live.begin(head.batch);
        let whole = match head.kind {
            Kind::Owned => {
                let owner = Owner::decode(body)?;
                self.owner = Some(owner.clone());
                Whole::Owned(owner)
            }
            Kind::Fresh | Kind::Kept => {
                let mut records = Vec::new();
                for (record, name) in body::decode(body)? {
                    self.live.take(head.batch, &record, name.as_ref());
                    records.push(record);
                }
                match head.kind {
                    Kind::Kept => Whole::Kept,
                    _ => Whole::Fresh(records),
                }
            }
        };
        self.live.end(head.batch, self.end.sequence, bytes);
        Ok(whole)
    }
}
