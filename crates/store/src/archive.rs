//! A backup: one file with the records of everything that lives in a store.
//!
//! ```text
//! magic · checksum · records · sequence of the store · time · number, 64 bytes │ record · record · …
//! ```
//!
//! Its records are those of a segment, in commits of about a mebibyte; a shared content is in the same commit. The head
//! is written last, so that a file that was cut short is no backup.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crosstie_disk::DiskFile;
use crosstie_queues::{MessageContent, StoredMessage};

use crate::error::{StoreError, StoreErrorKind};
use crate::form::BACKUP_MAGIC;
use crate::items;
use crate::segments::bytes::{Cursor, SEQUENCE_MAX, TIME_MAX_MS};
use crate::segments::contents::Item;
use crate::segments::draft::Draft;
use crate::segments::entity;
use crate::segments::message::{self, Content, SHARED_BYTES_MIN};
use crate::segments::record::{Kind, QueueKey, Salt};
use crate::segments::scan::{Bounds, Found, Scanned, scan};
use crate::segments::segment::SEGMENT_HEAD_BYTES;

/// The first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    /// The number of records.
    records: u64,
    /// The sequence after the last one of the store.
    end_sequence: u64,
    /// When the backup was made, in milliseconds since 1970.
    time_ms: u64,
    /// A number of its own, by which its records are recognized.
    number: u64,
}

/// Bytes of a commit, after which the file is synced: so no sync of the store waits for more.
const COMMIT_BYTES: usize = 1 << 20;

impl Head {
    fn encode(&self) -> Vec<u8> {
        let mut out = BACKUP_MAGIC.to_vec();
        out.extend_from_slice(&[0; 4]);
        for number in [self.records, self.end_sequence, self.time_ms, self.number] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&out[12..]);
        out[8..12].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes.strip_prefix(BACKUP_MAGIC)?);
        let checksum = cursor.u32()?;
        (crc32fast::hash(cursor.rest().get(..32)?) == checksum).then_some(())?;
        let head = Self {
            records: cursor.u64()?,
            end_sequence: cursor.u64()?,
            time_ms: cursor.u64()?.min(TIME_MAX_MS),
            number: cursor.u64()?,
        };
        // Half: a store that is made of it begins there, and has room for as much again.
        let is_possible = head.records.max(head.end_sequence) <= SEQUENCE_MAX / 2;
        is_possible.then_some(head)
    }
}

/// Writes a backup.
pub(crate) struct Archive<'f> {
    file: &'f File,
    at: u64,
    draft: Draft,
    number: u64,
    sequence: u64,
    shared: HashMap<*const MessageContent, (Arc<MessageContent>, u32)>,
}

impl<'f> Archive<'f> {
    pub(crate) fn begin(file: &'f File) -> Self {
        let number = RandomState::new().build_hasher().finish();
        Self {
            file,
            at: SEGMENT_HEAD_BYTES,
            draft: Draft::begin((0, 0), 1, Salt::of(number), Vec::new()),
            number,
            sequence: 1,
            shared: HashMap::new(),
        }
    }

    /// Adds an item; returns whether a part was written and synced.
    pub(crate) fn add(&mut self, queue: QueueKey, place: i64, item: &Item) -> io::Result<bool> {
        items::write(&mut self.draft, &mut self.shared, (queue, place), item);
        if self.draft.len() < COMMIT_BYTES {
            return Ok(false);
        }
        self.flush()?;
        Ok(true)
    }

    /// Completes the file; returns its bytes.
    pub(crate) fn end(mut self, end_sequence: u64, time_ms: u64) -> io::Result<u64> {
        self.flush()?;
        let head = Head {
            records: self.sequence - 1,
            end_sequence,
            time_ms,
            number: self.number,
        };
        self.file.write_at(&head.encode(), 0)?;
        self.file.sync_all()?;
        Ok(self.at)
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = self.draft.finish();
        self.file.write_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        self.file.set_bytes(self.at)?;
        DiskFile::sync(self.file)?;
        self.sequence = self.draft.end_sequence();
        let salt = Salt::of(self.number);
        self.draft = Draft::begin((0, 0), self.sequence, salt, Vec::new());
        self.shared.clear();
        Ok(())
    }
}

/// The sequence after the last one of the store that a backup was made of, and the time of the backup.
pub(crate) fn end(path: &Path) -> Result<(u64, u64), StoreError> {
    let file = File::open(path).map_err(|error| StoreError::io(path, "reading it", error))?;
    let head = head(&file, path)?;
    Ok((head.end_sequence, head.time_ms))
}

fn head(file: &dyn DiskFile, path: &Path) -> Result<Head, StoreError> {
    let mut bytes = [0; SEGMENT_HEAD_BYTES as usize];
    let count = file.read_at(&mut bytes, 0);
    let count = count.map_err(|error| StoreError::io(path, "reading it", error))?;
    Head::decode(&bytes[..count]).ok_or_else(|| damaged(path, "it is not a whole backup".into()))
}

/// The contents of a backup, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surveyed {
    /// Records that were read.
    pub(crate) records: u64,
    /// Records that are not as they were written.
    pub(crate) damaged: u64,
    /// Records that are not there.
    pub(crate) missing: u64,
    /// The sequence after the last one of the store.
    pub(crate) end_sequence: u64,
    /// When the backup was made, in milliseconds since 1970.
    pub(crate) time_ms: u64,
}

/// Gives every item of a backup to `visit`. A backup with any damage is refused, after what could be read.
pub(crate) fn read(
    path: &Path,
    visit: &mut dyn FnMut(QueueKey, i64, &Item) -> Result<(), StoreError>,
) -> Result<Surveyed, StoreError> {
    let surveyed = survey(path, visit)?;
    match surveyed.damaged + surveyed.missing {
        0 => Ok(surveyed),
        lost => {
            let all = surveyed.records + surveyed.missing;
            let what = format!("{lost} of its {all} records cannot be read");
            Err(damaged(path, what))
        }
    }
}

/// The same, whatever is damaged or missing.
pub(crate) fn survey(
    path: &Path,
    visit: &mut dyn FnMut(QueueKey, i64, &Item) -> Result<(), StoreError>,
) -> Result<Surveyed, StoreError> {
    let file = File::open(path).map_err(|error| StoreError::io(path, "reading it", error))?;
    survey_file(&file, path, visit)
}

/// The same, of a file that is open.
pub(crate) fn survey_file(
    file: &dyn DiskFile,
    path: &Path,
    visit: &mut dyn FnMut(QueueKey, i64, &Item) -> Result<(), StoreError>,
) -> Result<Surveyed, StoreError> {
    let fault = |error| StoreError::io(path, "reading it", error);
    let head = head(file, path)?;
    let bounds = Bounds {
        first_sequence: 1,
        end_sequence: Some(head.records.saturating_add(1)),
        confirmed: 0,
        salt: Salt::of(head.number),
    };
    let mut chunk = Chunk::default();
    let mut records = 0;
    let mut outcome = Ok(());
    let scanned = scan(file, bounds, &mut |found| {
        records += 1;
        if outcome.is_ok() {
            let item = chunk.item(found);
            outcome = visit(found.header.queue, found.header.place, &item);
        }
    });
    let Scanned { gaps, .. } = scanned.map_err(fault)?;
    outcome?;
    Ok(Surveyed {
        records,
        damaged: chunk.damaged,
        missing: gaps.iter().map(|(from, to)| to - from + 1).sum(),
        end_sequence: head.end_sequence,
        time_ms: head.time_ms,
    })
}

/// Records with right checksums, for fuzzing.
pub(crate) fn records_mended(head: &[u8], records: &[u8]) -> Vec<u8> {
    let number = Head::decode(head).map_or(0, |head| head.number);
    let mut records = records.to_vec();
    Salt::of(number).mend(&mut records, 0);
    records
}

/// A backup with those records, for fuzzing.
pub(crate) fn example(records: &[u8], end_sequence: u64) -> Vec<u8> {
    let head = Head {
        records: end_sequence - 1,
        end_sequence,
        time_ms: 7,
        number: 9,
    };
    let mut out = head.encode();
    out.resize(SEGMENT_HEAD_BYTES as usize, 0);
    out.extend_from_slice(&records_mended(&out, records));
    out
}

/// The commit that is being read.
#[derive(Default)]
struct Chunk {
    /// The sequence of its first record, and its offset, if that record is there.
    commit: u64,
    base: Option<u64>,
    shared: HashMap<u32, Arc<MessageContent>>,
    damaged: u64,
}

impl Chunk {
    fn item(&mut self, found: &Found<'_>) -> Item {
        let Found {
            header,
            offset,
            payload,
        } = found;
        if header.commit_start() != self.commit {
            self.commit = header.commit_start();
            self.base = (header.nth == 0).then_some(*offset);
            self.shared.clear();
        }
        let is_entity = header.queue.vhost == 0;
        let item = match payload.filter(|_| header.kind == Kind::Stored) {
            Some(payload) if is_entity => Item::Entity(entity::decode(payload)),
            Some(payload) => Item::Message(self.message(payload, *offset)),
            None if is_entity => Item::Entity(None),
            None => Item::Message(None),
        };
        self.damaged += u64::from(matches!(item, Item::Entity(None) | Item::Message(None)));
        item
    }

    fn message(&mut self, payload: &[u8], offset: u64) -> Option<StoredMessage> {
        let message = message::decode(payload)?;
        let content = match message.content {
            Content::At { offset, .. } => Arc::clone(self.shared.get(&offset)?),
            Content::Here { body, .. } => {
                let content = Arc::new(message.content.load()?);
                if body.len() >= SHARED_BYTES_MIN
                    && let Some(base) = self.base
                {
                    let at = (offset - base) as u32;
                    self.shared.insert(at, Arc::clone(&content));
                }
                content
            }
        };
        Some(StoredMessage {
            content,
            expires_at: message.expires_at,
            deliveries: message.deliveries,
        })
    }
}

fn damaged(path: &Path, what: String) -> StoreError {
    StoreError::new(path, StoreErrorKind::Damaged { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_with_an_impossible_sequence_is_none() {
        let head = Head {
            records: 3,
            end_sequence: SEQUENCE_MAX / 2,
            time_ms: 7,
            number: 9,
        };
        assert_eq!(Head::decode(&head.encode()), Some(head));
        let end_sequence = SEQUENCE_MAX / 2 + 1;
        let crafted = Head {
            end_sequence,
            ..head
        };
        assert_eq!(Head::decode(&crafted.encode()), None);
    }
}
