//! The live records of each segment: a few bytes for each queue in each segment, and about a bit for each message.
//!
//! A record changes the state as it is committed, and again in the same way as a start reads it. A segment's summary
//! has the effect of all of its records.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use crosstie_queues::{Kept, LEVELED, QueueId, level_end};

use super::index::{Index, Left, RunSummary, Summary};
use super::places::PlaceSet;
use super::record::QueueKey;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) segments: BTreeMap<u32, Segment>,
    pub(crate) queues: HashMap<QueueKey, Queue>,
    /// Segments that may have nothing left.
    to_check: BTreeSet<u32>,
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) first_sequence: u64,
    /// The sequence after its last record.
    pub(crate) end_sequence: u64,
    /// The end of its records in the file.
    pub(crate) data_bytes: u64,
    /// Space on the disk.
    pub(crate) file_bytes: u64,
    /// Queues that have, or had, messages in it.
    pub(crate) queues: BTreeSet<QueueKey>,
    /// Messages that are not gone, and approximately their bytes.
    pub(crate) live: usize,
    pub(crate) live_bytes: u64,
    /// Other segments that it has records about, with the queues.
    pub(crate) about: BTreeMap<u32, BTreeSet<QueueKey>>,
    /// Nothing is written to it any more.
    pub(crate) is_complete: bool,
    pub(crate) index: IndexPlace,
    /// Since when less than half of it is live.
    pub(crate) low_since: Option<Instant>,
}

#[derive(Debug)]
pub(crate) enum IndexPlace {
    /// It still grows.
    Growing(Index),
    /// Its file is not written yet.
    Memory(Arc<Index>),
    File,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// By segment.
    pub(crate) runs: BTreeMap<u32, Run>,
    /// Messages that are not gone.
    pub(crate) count: usize,
    /// The segment of the last message that was found.
    hint: std::cell::Cell<u32>,
}

/// Bytes of a stored message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// In its segment.
    pub(crate) record: u64,
    pub(crate) body: u64,
}

/// A queue's messages in a segment.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) stored: u64,
    /// Of all that were stored.
    pub(crate) bytes: Size,
    pub(crate) left: Left,
    /// The first and the last place that it had.
    span: Option<(i64, i64)>,
}

impl Run {
    fn may_have(&self, place: i64) -> bool {
        self.span
            .is_some_and(|(first, last)| (first..=last).contains(&place))
    }

    fn note_span(&mut self, other: Option<(i64, i64)>) {
        self.span = match (self.span, other) {
            (Some((first, last)), Some(other)) => Some((first.min(other.0), last.max(other.1))),
            (span, other) => span.or(other),
        };
    }

    /// Approximate bytes of one of its messages.
    pub(crate) fn message_bytes(&self) -> u64 {
        self.bytes.record / self.stored.max(1)
    }

    /// Bytes of the bodies that are left: exact if none is gone, or if all have the same length.
    fn body_bytes(&self) -> u64 {
        self.body_bytes_of(self.left.live.len())
    }

    /// Approximate bytes of so many bodies.
    fn body_bytes_of(&self, messages: usize) -> u64 {
        (u128::from(self.bytes.body) * messages as u128 / u128::from(self.stored.max(1))) as u64
    }
}

impl Segment {
    pub(crate) fn new(first_sequence: u64, file_bytes: u64) -> Self {
        Self {
            first_sequence,
            end_sequence: first_sequence,
            data_bytes: super::segment::SEGMENT_HEAD_BYTES,
            file_bytes,
            queues: BTreeSet::new(),
            live: 0,
            live_bytes: 0,
            about: BTreeMap::new(),
            is_complete: false,
            index: IndexPlace::Growing(Index::default()),
            low_since: None,
        }
    }

    /// Less than half of it is needed.
    pub(crate) fn is_low(&self) -> bool {
        self.is_complete && self.live_bytes * 2 < self.data_bytes
    }

    fn lose(&mut self, count: usize, bytes: u64) {
        self.live -= count;
        self.live_bytes = match self.live {
            0 => 0,
            _ => self.live_bytes.saturating_sub(bytes),
        };
        if self.low_since.is_none() && self.is_low() {
            self.low_since = Some(Instant::now());
        }
    }
}

/// Records.
impl State {
    /// A message was stored in a segment, or moved to it from another one.
    pub(crate) fn store(
        &mut self,
        segment: u32,
        (queue, place): (QueueKey, i64),
        (offset, size): (u32, Size),
        moved_from: u32,
    ) {
        if moved_from != 0 && moved_from != segment {
            self.remove(queue, moved_from, place);
            self.note_about(segment, moved_from, queue);
        }
        let Some(within) = self.segments.get_mut(&segment) else {
            return;
        };
        let of = self.queues.entry(queue).or_default();
        let run = of.runs.entry(segment).or_insert_with(|| {
            within.queues.insert(queue);
            Run::default()
        });
        run.stored += 1;
        run.bytes.record += size.record;
        run.bytes.body += size.body;
        run.note_span(Some((place, place)));
        if run.left.live.insert(place) {
            of.count += 1;
            within.live += 1;
            within.live_bytes += size.record;
        }
        run.left.deliveries.remove(&place);
        if let IndexPlace::Growing(index) = &mut within.index {
            index.push(queue, place, offset);
        }
    }

    /// A record in `segment` says that a place of a queue in the segment `about` is gone.
    pub(crate) fn lose(&mut self, segment: u32, queue: QueueKey, about: u32, place: i64) {
        self.remove(queue, about, place);
        self.note_about(segment, about, queue);
    }

    /// A record in `segment` says that a queue has lost its messages between two places.
    pub(crate) fn clear(&mut self, segment: u32, queue: QueueKey, (from, to): (i64, i64)) {
        let runs = self.queues.get(&queue).map(|of| &of.runs);
        let runs = runs.into_iter().flatten().filter(|(_, run)| {
            let first = run.left.live.first_from(from);
            first.is_some_and(|first| first <= to)
        });
        let lefts: Vec<(u32, Left)> = runs
            .map(|(about, run)| {
                let mut left = run.left.clone();
                left.live.clear(from, to);
                left.deliveries
                    .retain(|place, _| left.live.contains(*place));
                (*about, left)
            })
            .collect();
        for (about, left) in lefts {
            self.remain(segment, queue, about, left);
        }
    }

    /// A record in `segment` has the deliveries of a message in the segment `about`.
    pub(crate) fn deliver(
        &mut self,
        segment: u32,
        queue: QueueKey,
        about: u32,
        (place, deliveries): (i64, u32),
    ) {
        let of = self.queues.get_mut(&queue);
        if let Some(run) = of.and_then(|of| of.runs.get_mut(&about))
            && run.left.live.contains(place)
        {
            run.left.deliveries.insert(place, deliveries);
            self.note_about(segment, about, queue);
        }
    }

    /// A record in `segment` has what is left of a queue in the segment `about`.
    pub(crate) fn remain(&mut self, segment: u32, queue: QueueKey, about: u32, left: Left) {
        self.note_about(segment, about, queue);
        let Some(within) = self.segments.get_mut(&about) else {
            return;
        };
        let Some(of) = self.queues.get_mut(&queue) else {
            return;
        };
        let Some(run) = of.runs.get_mut(&about) else {
            return;
        };
        // More than is known, if the records of some could not be read, or if later ones are gone already by the
        // summary of a segment that was summed up late.
        let (before, after) = (run.left.live.len(), left.live.len());
        let message_bytes = run.message_bytes();
        run.note_span(left.live.first().zip(left.live.last()));
        run.left = left;
        let gained = after.saturating_sub(before);
        let gone = before.saturating_sub(after);
        let bytes_of = |count: usize| (count as u64).saturating_mul(message_bytes);
        of.count = of.count + gained - gone;
        within.live += gained;
        let live_bytes = within.live_bytes.saturating_add(bytes_of(gained));
        within.live_bytes = live_bytes.min(within.data_bytes.max(within.live_bytes));
        within.lose(gone, bytes_of(gone));
        self.to_check.insert(about);
    }

    fn remove(&mut self, queue: QueueKey, about: u32, place: i64) {
        let Some(of) = self.queues.get_mut(&queue) else {
            return;
        };
        let Some(run) = of.runs.get_mut(&about) else {
            return;
        };
        if !run.left.live.remove(place) {
            return;
        }
        if !run.left.deliveries.is_empty() {
            run.left.deliveries.remove(&place);
        }
        let bytes = run.message_bytes();
        of.count -= 1;
        if let Some(within) = self.segments.get_mut(&about) {
            within.lose(1, bytes);
            if within.live == 0 {
                self.to_check.insert(about);
            }
        }
    }

    fn note_about(&mut self, segment: u32, about: u32, queue: QueueKey) {
        if segment != about
            && self.segments.contains_key(&about)
            && let Some(within) = self.segments.get_mut(&segment)
        {
            within.about.entry(about).or_default().insert(queue);
        }
    }
}

/// Segments.
impl State {
    /// Adds a complete segment with the effects of its records.
    pub(crate) fn add_summary(&mut self, summary: Summary, file_bytes: u64) {
        let number = summary.number;
        let mut segment = Segment::new(summary.first_sequence, file_bytes);
        segment.end_sequence = summary.end_sequence;
        segment.data_bytes = summary.data_bytes;
        segment.is_complete = true;
        segment.index = IndexPlace::File;
        for (queue, run) in summary.queues {
            let RunSummary {
                stored,
                bytes,
                left,
            } = run;
            let run = Run {
                stored,
                bytes,
                span: left.live.first().zip(left.live.last()),
                left,
            };
            let count = run.left.live.len();
            let live_bytes = (count as u64).saturating_mul(run.message_bytes());
            segment.queues.insert(queue);
            segment.live += count;
            segment.live_bytes = segment.live_bytes.saturating_add(live_bytes);
            let of = self.queues.entry(queue).or_default();
            of.count += count;
            of.runs.insert(number, run);
        }
        // It may be more only if messages are counted whose records could not be read.
        segment.live_bytes = segment.live_bytes.min(segment.data_bytes);
        segment.low_since = segment.is_low().then(Instant::now);
        self.segments.insert(number, segment);
        for (about, queue, left) in summary.about {
            self.remain(number, queue, about, left);
        }
        self.to_check.insert(number);
    }

    /// The summary of a segment that is the last one.
    pub(crate) fn summary(&self, store: u64, number: u32) -> Summary {
        let Some(segment) = self.segments.get(&number) else {
            return Summary::default();
        };
        let mut summary = Summary {
            store,
            number,
            first_sequence: segment.first_sequence,
            end_sequence: segment.end_sequence,
            data_bytes: segment.data_bytes,
            ..Summary::default()
        };
        let run = |queue: &QueueKey, segment: u32| self.queues.get(queue)?.runs.get(&segment);
        for queue in &segment.queues {
            if let Some(run) = run(queue, number) {
                let summarized = RunSummary {
                    stored: run.stored,
                    bytes: run.bytes,
                    left: run.left.clone(),
                };
                summary.queues.push((*queue, summarized));
            }
        }
        for (about, queues) in &segment.about {
            for queue in queues {
                if let Some(run) = run(queue, *about) {
                    summary.about.push((*about, *queue, run.left.clone()));
                }
            }
        }
        summary
    }

    /// Ends a segment; returns its index.
    pub(crate) fn complete(&mut self, number: u32) -> Option<Arc<Index>> {
        let segment = self.segments.get_mut(&number)?;
        segment.is_complete = true;
        segment.low_since = segment.is_low().then(Instant::now);
        if let IndexPlace::Growing(index) = &mut segment.index {
            let index = Arc::new(std::mem::take(index));
            segment.index = IndexPlace::Memory(index);
        }
        self.to_check.insert(number);
        match &segment.index {
            IndexPlace::Memory(index) => Some(Arc::clone(index)),
            _ => None,
        }
    }

    /// Removes the complete segments that nothing needs any more; returns them.
    pub(crate) fn free(&mut self) -> Vec<u32> {
        let mut freed = Vec::new();
        while let Some(number) = self.to_check.pop_first() {
            let is_free = self.segments.get(&number).is_some_and(|segment| {
                segment.is_complete && segment.live == 0 && segment.about.is_empty()
            });
            if !is_free {
                continue;
            }
            self.forget(number);
            freed.push(number);
        }
        freed
    }

    /// Removes a segment with all that it has.
    pub(crate) fn forget(&mut self, number: u32) {
        let Some(segment) = self.segments.remove(&number) else {
            return;
        };
        for key in segment.queues {
            if let Some(queue) = self.queues.get_mut(&key)
                && let Some(run) = queue.runs.remove(&number)
            {
                let count = run.left.live.len();
                queue.count -= count;
                if queue.runs.is_empty() {
                    self.queues.remove(&key);
                }
            }
        }
        for (other, segment) in &mut self.segments {
            if segment.about.remove(&number).is_some() {
                self.to_check.insert(*other);
            }
        }
    }

    /// The records about other segments have been written again in a later one.
    pub(crate) fn clear_about(&mut self, number: u32) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.about.clear();
            self.to_check.insert(number);
        }
    }
}

impl Queue {
    /// The messages that are not gone.
    pub(crate) fn kept(&self, queue: QueueId) -> Option<Kept> {
        let live = || self.runs.values().map(|run| &run.left.live);
        Some(Kept {
            queue,
            from: live().filter_map(PlaceSet::first).min()?,
            to: live().filter_map(PlaceSet::last).max()?,
            messages: self.count,
            body_bytes: self
                .runs
                .values()
                .fold(0, |sum, run| sum.saturating_add(run.body_bytes())),
        })
    }

    /// The messages of each priority that are not gone. Those that an earlier version wrote have none in their places.
    pub(crate) fn kept_by_level(&self, queue: QueueId) -> Vec<Kept> {
        let mut found = Vec::new();
        let mut next = LEVELED;
        let first_from = |from| {
            let runs = self.runs.values();
            runs.filter_map(move |run| run.left.live.first_from(from))
                .min()
        };
        while let Some(from) = first_from(next) {
            let mut kept = Kept {
                queue,
                from,
                ..Kept::default()
            };
            let end = level_end(from);
            for run in self.runs.values() {
                let places = run.left.live.iter_from(from);
                let mut messages = 0;
                for place in places.take_while(|place| *place <= end) {
                    messages += 1;
                    kept.to = kept.to.max(place);
                }
                kept.messages += messages;
                kept.body_bytes += run.body_bytes_of(messages);
            }
            found.push(kept);
            next = end + 1;
        }
        found
    }
}

/// Queries.
impl State {
    /// The segment that has a queue's message.
    pub(crate) fn locate(&self, queue: QueueKey, place: i64) -> Option<u32> {
        let queue = self.queues.get(&queue)?;
        let has = |number: &u32| {
            let run = queue.runs.get(number);
            run.is_some_and(|run| run.left.live.contains(place))
        };
        let hint = queue.hint.get();
        let found = match has(&hint) {
            true => Some(hint),
            false => {
                let mut runs = queue.runs.iter();
                let found =
                    runs.find(|(_, run)| run.may_have(place) && run.left.live.contains(place));
                found.map(|(number, _)| *number)
            }
        };
        queue.hint.set(found?);
        found
    }

    /// Space of all segments on the disk but one.
    pub(crate) fn file_bytes_but(&self, number: u32) -> u64 {
        let others = self.segments.iter().filter(|(found, _)| **found != number);
        others.map(|(_, segment)| segment.file_bytes).sum()
    }
}
