//! Reads the messages that queues want, those of several queues in one go.

use std::collections::{BTreeSet, BinaryHeap};
use std::io;

use crosstie_queues::StoredMessage;

use super::super::log::Fault;
use super::super::record::{QueueKey, Salt};
use super::super::state::IndexPlace;
use super::{Contents, Item, Source, lock, open_segment};

/// Messages of queues from the first place to the last: at least one, if there is one, and about so many bytes of each
/// queue, or what a few segments have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) queues: [Option<QueueKey>; 2],
    pub(crate) places: (i64, i64),
    pub(crate) bytes_max: u64,
}

/// The messages that were wanted, in the order of their places.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) messages: Vec<Chosen>,
    /// The queues have no others up to this place.
    pub(crate) upto: i64,
    /// Approximate bytes of the messages.
    bytes: u64,
}

/// A message that is to be read, or was.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) queue: QueueKey,
    pub(crate) place: i64,
    segment: u32,
    /// Known for the segment that is open.
    offset: Option<u32>,
    deliveries: Option<u32>,
    /// `None` if it is not as it was written.
    pub(crate) message: Option<StoredMessage>,
}

/// Approximate bytes of the messages that are read in one go.
pub(crate) const TOGETHER_BYTES: usize = 4 << 20;

/// Segments that are read in one go for what is wanted first, and beside those. A queue with few messages in each would
/// otherwise have all of their indexes read while commits wait.
const FIRST_SEGMENTS_MAX: usize = 8;
const OTHER_SEGMENTS_MAX: usize = 4;

/// A read is tried so often while segments are removed.
const TRIES_MAX: usize = 10;

impl Contents {
    /// The segment of the first message that is wanted.
    pub(crate) fn first_segment(&self, wanted: Wanted) -> Option<u32> {
        let state = lock(&self.state);
        let queues = wanted.queues.iter().flatten();
        let queues = queues.filter_map(|queue| state.queues.get(queue));
        let firsts = queues.flat_map(|of| &of.runs).filter_map(|(segment, run)| {
            let place = run.left.live.first_from(wanted.places.0)?;
            Some((place, *segment))
        });
        firsts.min().map(|(_, segment)| segment)
    }

    /// Reads what is wanted, in one go: the segments of queues whose messages came interleaved are read once. The first is
    /// always read, and the others up to one that would take too many bytes or segments.
    pub(crate) fn read(&self, wanted: &[Wanted]) -> Result<Vec<Found>, Fault> {
        // A segment that is removed meanwhile has been copied, or its messages are gone.
        for _ in 0..TRIES_MAX {
            let mut parts = self.choose_parts(wanted);
            let all = parts.iter_mut().flat_map(|part| &mut part.messages);
            let is_whole = self
                .read_chosen(all.collect())
                .map_err(Fault::when("reading it"))?;
            if is_whole {
                return Ok(parts);
            }
        }
        let error = io::Error::other("its segments change too fast");
        Err(Fault::when("reading it")(error))
    }

    fn choose_parts(&self, wanted: &[Wanted]) -> Vec<Found> {
        let mut parts: Vec<Found> = Vec::new();
        let (mut segments, mut segments_max, mut bytes) = (BTreeSet::new(), usize::MAX, 0);
        for wanted in wanted {
            if bytes >= TOGETHER_BYTES as u64 {
                break;
            }
            let part = self.choose_part(*wanted);
            let count = segments.len();
            segments.extend(part.messages.iter().map(|chosen| chosen.segment));
            if segments.len() > segments_max.max(count) {
                break;
            }
            if parts.is_empty() {
                segments_max = segments.len() + OTHER_SEGMENTS_MAX;
            }
            bytes += part.bytes;
            parts.push(part);
        }
        parts
    }

    fn choose_part(&self, wanted: Wanted) -> Found {
        let (from, to) = wanted.places;
        let mut part = Found {
            messages: Vec::new(),
            upto: to,
            bytes: 0,
        };
        for queue in wanted.queues.into_iter().flatten() {
            let chosen = self.choose(queue, (from, part.upto), wanted.bytes_max);
            part.messages.extend(chosen.messages);
            part.upto = chosen.upto;
            part.bytes += chosen.bytes;
        }
        // That of one queue may have ended before the other's.
        let upto = part.upto;
        part.messages.retain(|chosen| chosen.place <= upto);
        part.messages.sort_by_key(|chosen| chosen.place);
        part
    }

    /// The next messages of a queue, in their order.
    fn choose(&self, queue: QueueKey, (from, to): (i64, i64), bytes_max: u64) -> Found {
        let mut part = Found {
            messages: Vec::new(),
            upto: to,
            bytes: 0,
        };
        let state = lock(&self.state);
        let Some(of) = state.queues.get(&queue) else {
            return part;
        };
        // The next place of each segment, the lowest first.
        let mut next: BinaryHeap<_> = of
            .runs
            .iter()
            .filter_map(|(segment, run)| {
                let place = run.left.live.first_from(from)?;
                Some(std::cmp::Reverse((place, *segment)))
            })
            .collect();
        let mut upto = i64::MIN;
        let mut segments = BTreeSet::new();
        while let Some(std::cmp::Reverse((first, segment))) = next.pop() {
            if first > to {
                break;
            }
            segments.insert(segment);
            if segments.len() > FIRST_SEGMENTS_MAX {
                return Found { upto, ..part };
            }
            let Some(run) = of.runs.get(&segment) else {
                continue;
            };
            let end = next.peek().map_or(i64::MAX, |other| other.0.0);
            let growing = match state.segments.get(&segment).map(|found| &found.index) {
                Some(IndexPlace::Growing(index)) => Some(index),
                _ => None,
            };
            for place in run.left.live.iter_from(first) {
                if place > end || place > to {
                    next.push(std::cmp::Reverse((place, segment)));
                    break;
                }
                if part.bytes >= bytes_max && !part.messages.is_empty() {
                    return Found { upto, ..part };
                }
                upto = place;
                part.bytes += run.message_bytes();
                part.messages.push(Chosen {
                    queue,
                    place,
                    segment,
                    offset: growing.and_then(|index| index.find(queue, place)),
                    deliveries: run.left.deliveries.get(&place).copied(),
                    message: None,
                });
            }
        }
        part
    }

    /// Returns whether all of their segments are there.
    fn read_chosen(&self, mut all: Vec<&mut Chosen>) -> io::Result<bool> {
        all.sort_unstable_by_key(|chosen| chosen.segment);
        for chosen in all.chunk_by_mut(|one, other| one.segment == other.segment) {
            let Some(segment) = chosen.first().map(|first| first.segment) else {
                continue;
            };
            let Some(file) = open_segment(&*self.disk, segment)? else {
                if lock(&self.state).segments.contains_key(&segment) {
                    continue;
                }
                return Ok(false);
            };
            if chosen.iter().any(|one| one.offset.is_none())
                && let Some(index) = self.index(segment)?
            {
                for one in chosen.iter_mut() {
                    let found = || index.find(one.queue, one.place);
                    one.offset = one.offset.or_else(found);
                }
            }
            chosen.sort_unstable_by_key(|one| one.offset);
            let offsets = chosen.iter().filter_map(|one| one.offset);
            let mut source = Source::new(&*file, Salt::of(self.store), offsets)?;
            for one in chosen {
                let Some(offset) = one.offset else {
                    continue;
                };
                let item = source.item(one.queue, one.place, offset, one.deliveries)?;
                one.message = match item {
                    Item::Message(message) => message,
                    Item::Entity(_) => None,
                };
            }
        }
        Ok(true)
    }
}
