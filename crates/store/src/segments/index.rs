//! The index of a complete segment: where its messages are, and what it says about earlier segments.
//!
//! ```text
//! head, 64 bytes · summary · an offset of 4 bytes for each message, by queue and place
//! ```
//!
//! A start reads head and summary only: their size depends on the queues, and on about two bits a message. Without a
//! valid index the segment itself is read.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crosstie_disk::{Disk, read_part, read_whole};

use super::bytes::{Cursor, SEQUENCE_MAX, put_number, put_signed};
use super::places::PlaceSet;
use super::record::QueueKey;
use super::segment::index_name;
use super::state::Size;

/// The offsets of a segment's messages, by queue, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    queues: HashMap<QueueKey, Vec<(i64, u32)>>,
}

/// A segment at the time of its completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) store: u64,
    pub(crate) number: u32,
    pub(crate) first_sequence: u64,
    pub(crate) end_sequence: u64,
    /// The end of its records in the file.
    pub(crate) data_bytes: u64,
    pub(crate) queues: Vec<(QueueKey, RunSummary)>,
    /// The state of queues in earlier segments that it has records about.
    pub(crate) about: Vec<(u32, QueueKey, Left)>,
}

/// A queue's messages in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSummary {
    /// How many were stored, and their bytes.
    pub(crate) stored: u64,
    pub(crate) bytes: Size,
    pub(crate) left: Left,
}

/// The rest of a queue's messages in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) live: PlaceSet,
    /// Recorded deliveries, where they differ from those in the message's own record.
    pub(crate) deliveries: BTreeMap<i64, u32>,
}

const HEAD_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"XTIEIDX\x01";

impl Index {
    /// Adds a message. A later one of the same place replaces it.
    pub(crate) fn push(&mut self, queue: QueueKey, place: i64, offset: u32) {
        let entries = self.queues.entry(queue).or_default();
        match entries.last() {
            Some((last, _)) if *last >= place => {
                match entries.binary_search_by_key(&place, |(place, _)| *place) {
                    Ok(at) => entries[at].1 = offset,
                    Err(at) => entries.insert(at, (place, offset)),
                }
            }
            _ => entries.push((place, offset)),
        }
    }

    pub(crate) fn find(&self, queue: QueueKey, place: i64) -> Option<u32> {
        let entries = self.queues.get(&queue)?;
        let at = entries.binary_search_by_key(&place, |(place, _)| *place);
        at.ok().map(|at| entries[at].1)
    }

    /// All messages with their offsets, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (QueueKey, i64, u32)> {
        let queues = self.queues.iter();
        queues.flat_map(|(queue, entries)| {
            let entries = entries.iter();
            entries.map(|(place, offset)| (*queue, *place, *offset))
        })
    }

    /// Approximate memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entries = self.queues.values().map(Vec::capacity).sum::<usize>();
        entries * size_of::<(i64, u32)>() + self.queues.capacity() * 64
    }
}

impl Left {
    /// Those up to a place, if there are any.
    pub(crate) fn until(&self, last: i64) -> Option<Self> {
        self.live.first().filter(|first| *first <= last)?;
        let mut left = self.clone();
        if let Some(next) = last.checked_add(1) {
            left.live.clear(next, i64::MAX);
        }
        Some(left)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.live.encode(out);
        put_number(out, self.deliveries.len() as u64);
        for (place, deliveries) in &self.deliveries {
            put_signed(out, *place);
            put_number(out, (*deliveries).into());
        }
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>, count_max: usize) -> Option<Self> {
        let live = PlaceSet::decode(cursor, count_max)?;
        let mut deliveries = BTreeMap::new();
        for _ in 0..cursor.count()? {
            let place = cursor.signed()?;
            deliveries.insert(place, u32::try_from(cursor.number()?).ok()?);
        }
        Some(Self { live, deliveries })
    }
}

/// More messages are never in a segment: it bounds the memory that a damaged number can ask for.
pub(crate) const MESSAGES_MAX: usize = 1 << 26;

/// The file's bytes. Messages that are gone already have no offset.
pub(crate) fn encode(summary: &Summary, index: &Index) -> Vec<u8> {
    let mut body = Vec::new();
    put_number(&mut body, summary.queues.len() as u64);
    let mut offsets = Vec::new();
    for (queue, run) in &summary.queues {
        put_queue(&mut body, *queue);
        put_number(&mut body, run.stored);
        put_number(&mut body, run.bytes.record);
        put_number(&mut body, run.bytes.body);
        run.left.encode(&mut body);
        for place in run.left.live.iter() {
            // Each live message was pushed.
            let offset = index.find(*queue, place).unwrap_or_default();
            offsets.extend_from_slice(&offset.to_le_bytes());
        }
    }
    put_number(&mut body, summary.about.len() as u64);
    for (segment, queue, left) in &summary.about {
        put_number(&mut body, (*segment).into());
        put_queue(&mut body, *queue);
        left.encode(&mut body);
    }
    let mut out = vec![0; HEAD_BYTES];
    out[..8].copy_from_slice(MAGIC);
    out[12..20].copy_from_slice(&summary.store.to_le_bytes());
    out[20..24].copy_from_slice(&summary.number.to_le_bytes());
    out[24..32].copy_from_slice(&summary.first_sequence.to_le_bytes());
    out[32..40].copy_from_slice(&summary.end_sequence.to_le_bytes());
    out[40..48].copy_from_slice(&summary.data_bytes.to_le_bytes());
    out[48..52].copy_from_slice(&(body.len() as u32).to_le_bytes());
    out[52..56].copy_from_slice(&(offsets.len() as u32).to_le_bytes());
    out[56..60].copy_from_slice(&crc32fast::hash(&body).to_le_bytes());
    out[60..64].copy_from_slice(&crc32fast::hash(&offsets).to_le_bytes());
    let checksum = crc32fast::hash(&out[12..]);
    out[8..12].copy_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&body);
    out.extend_from_slice(&offsets);
    out
}

/// The decoded head.
struct Head {
    summary: Summary,
    body_bytes: u32,
    offsets_bytes: u32,
    body_checksum: u32,
    offsets_checksum: u32,
}

fn decode_head(bytes: &[u8]) -> Option<Head> {
    let mut cursor = Cursor::new(bytes.get(..HEAD_BYTES)?);
    (cursor.fixed()? == *MAGIC).then_some(())?;
    let checksum = cursor.u32()?;
    (crc32fast::hash(cursor.rest()) == checksum).then_some(())?;
    let head = Head {
        summary: Summary {
            store: cursor.u64()?,
            number: cursor.u32()?,
            first_sequence: cursor.u64()?,
            end_sequence: cursor.u64()?,
            data_bytes: cursor.u64()?,
            ..Summary::default()
        },
        body_bytes: cursor.u32()?,
        offsets_bytes: cursor.u32()?,
        body_checksum: cursor.u32()?,
        offsets_checksum: cursor.u32()?,
    };
    let Summary {
        first_sequence,
        end_sequence,
        data_bytes,
        ..
    } = head.summary;
    let is_possible = first_sequence <= end_sequence && end_sequence <= SEQUENCE_MAX;
    // An offset has 32 bits.
    (is_possible && data_bytes <= u32::MAX.into()).then_some(head)
}

fn decode_body(head: Head, body: &[u8]) -> Option<Summary> {
    (crc32fast::hash(body) == head.body_checksum).then_some(())?;
    let mut summary = head.summary;
    let mut cursor = Cursor::new(body);
    let mut messages = head.offsets_bytes as usize / 4;
    let mut record_bytes = summary.data_bytes;
    for _ in 0..cursor.count()? {
        let queue = queue(&mut cursor)?;
        let stored = cursor.number()?;
        let bytes = Size {
            record: cursor.number()?,
            body: cursor.number()?,
        };
        // They are in the segment; several messages may share a body.
        record_bytes = record_bytes.checked_sub(bytes.record)?;
        (bytes.body <= stored.checked_mul(u32::MAX.into())?).then_some(())?;
        let left = Left::decode(&mut cursor, messages)?;
        messages -= left.live.len();
        let run = RunSummary {
            stored,
            bytes,
            left,
        };
        summary.queues.push((queue, run));
    }
    let mut others = MESSAGES_MAX;
    for _ in 0..cursor.count()? {
        let segment = u32::try_from(cursor.number()?).ok()?;
        let queue = queue(&mut cursor)?;
        let left = Left::decode(&mut cursor, others)?;
        others -= left.live.len();
        summary.about.push((segment, queue, left));
    }
    cursor.is_empty().then_some(summary)
}

/// The summary and the index in a whole file.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Summary, Index)> {
    let head = decode_head(bytes)?;
    let (offsets_bytes, checksum) = (head.offsets_bytes as usize, head.offsets_checksum);
    let (body, offsets) = bytes[HEAD_BYTES..].split_at_checked(head.body_bytes as usize)?;
    let offsets = offsets.get(..offsets_bytes)?;
    (crc32fast::hash(offsets) == checksum).then_some(())?;
    let summary = decode_body(head, body)?;
    let mut offsets = Cursor::new(offsets);
    let mut index = Index::default();
    for (queue, run) in &summary.queues {
        let mut entries = Vec::with_capacity(run.left.live.len());
        for place in run.left.live.iter() {
            entries.push((place, offsets.u32()?));
        }
        if !entries.is_empty() {
            index.queues.insert(*queue, entries);
        }
    }
    offsets.is_empty().then_some((summary, index))
}

/// Reads the summary of a segment; `None` if there is none, or no valid one.
pub(crate) fn read_summary(
    disk: &dyn Disk,
    store: u64,
    number: u32,
) -> io::Result<Option<Summary>> {
    let file = match disk.open_to_read(&index_name(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // Most are shorter than this.
    let mut bytes = read_part(&*file, 0, 16 << 10)?;
    let Some(head) = decode_head(&bytes) else {
        return Ok(None);
    };
    let whole = HEAD_BYTES + head.body_bytes as usize;
    let expected_bytes = (whole + head.offsets_bytes as usize) as u64;
    let is_whole = file.bytes()? == expected_bytes;
    let is_ours = (head.summary.store, head.summary.number) == (store, number);
    if !is_ours || !is_whole {
        return Ok(None);
    }
    if bytes.len() < whole {
        bytes = read_part(&*file, 0, whole as u64)?;
    }
    let body = bytes.get(HEAD_BYTES..whole);
    Ok(body.and_then(|body| decode_body(head, body)))
}

/// With right lengths and checksums, for fuzzing: what is after the head is its body, up to the offsets.
pub(crate) fn mended(input: &[u8]) -> Vec<u8> {
    let mut out = input.to_vec();
    let Some((head, rest)) = out.split_at_mut_checked(HEAD_BYTES) else {
        return out;
    };
    let offsets_bytes = Cursor::new(&head[52..]).u32().unwrap_or_default() as usize;
    let (body, offsets) = rest.split_at(rest.len().saturating_sub(offsets_bytes));
    head[48..52].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[52..56].copy_from_slice(&(offsets.len() as u32).to_le_bytes());
    head[56..60].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
    head[60..64].copy_from_slice(&crc32fast::hash(offsets).to_le_bytes());
    let checksum = crc32fast::hash(&head[12..]);
    head[8..12].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// The store that an index names.
pub(crate) fn store(disk: &dyn Disk, number: u32) -> io::Result<Option<u64>> {
    let file = match disk.open_to_read(&index_name(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let head = decode_head(&read_part(&*file, 0, HEAD_BYTES as u64)?);
    Ok(head.map(|head| head.summary.store))
}

/// Reads the index of a segment; `None` as for the summary.
pub(crate) fn read_index(disk: &dyn Disk, store: u64, number: u32) -> io::Result<Option<Index>> {
    let bytes = match read_whole(disk, &index_name(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let found = decode(&bytes);
    let found = found.filter(|(summary, _)| (summary.store, summary.number) == (store, number));
    Ok(found.map(|(_, index)| index))
}

fn put_queue(out: &mut Vec<u8>, queue: QueueKey) {
    put_number(out, queue.vhost.into());
    put_number(out, queue.queue);
}

fn queue(cursor: &mut Cursor<'_>) -> Option<QueueKey> {
    Some(QueueKey {
        vhost: u16::try_from(cursor.number()?).ok()?,
        queue: cursor.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_returns_as_it_was_or_not_at_all() {
        let queue = |queue| QueueKey { vhost: 1, queue };
        let mut index = Index::default();
        for (place, offset) in [(1, 64), (3, 128), (2, 192), (3, 256)] {
            index.push(queue(5), place, offset);
        }
        index.push(queue(6), -7, 320);
        assert_eq!(index.find(queue(5), 3), Some(256));
        let left = |live: &[i64]| Left {
            live: live.iter().copied().collect(),
            deliveries: BTreeMap::from([(2, 3)]),
        };
        let run = |live: &[i64]| RunSummary {
            stored: 4,
            bytes: Size {
                record: 160,
                body: 200,
            },
            left: left(live),
        };
        let summary = Summary {
            store: 7,
            number: 9,
            first_sequence: 100,
            end_sequence: 104,
            data_bytes: 384,
            queues: vec![(queue(5), run(&[1, 2, 3])), (queue(6), run(&[-7]))],
            about: vec![(3, queue(5), left(&[]))],
        };
        let bytes = encode(&summary, &index);
        let crafted = |change: &dyn Fn(&mut Summary)| {
            let mut crafted = summary.clone();
            change(&mut crafted);
            decode(&encode(&crafted, &index))
        };
        // More than the segment has: sums of it would overflow.
        assert_eq!(crafted(&|s| s.queues[0].1.bytes.record = 385), None);
        assert_eq!(crafted(&|s| s.queues[0].1.bytes.record = u64::MAX), None);
        assert_eq!(crafted(&|s| s.queues[0].1.bytes.body = u64::MAX), None);
        assert_eq!(crafted(&|s| s.queues[0].1.stored = u64::MAX), None);
        assert_eq!(crafted(&|s| s.data_bytes = 1 << 32), None);
        assert_eq!(decode(&bytes), Some((summary, index)));
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&wrong), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "cut at {length}");
        }
    }
}
