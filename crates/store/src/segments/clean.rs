//! Copies what still lives in a half-empty segment to the open one, in steps between commits, so that its space is
//! given back.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use super::contents::load_index;
use super::draft::Draft;
use super::index::{Index, Left};
use super::log::{Fault, Log, Purpose};
use super::message::{self, Content};
use super::record::{QueueKey, Salt};
use super::scan::Window;
use super::segment::segment_name;
use super::state::{IndexPlace, State};
use std::sync::{Arc, PoisonError};

use crosstie_disk::{Disk, DiskFile};

/// The copying of one segment.
#[derive(Debug)]
pub(crate) struct Cleaning {
    number: u32,
    file: Arc<dyn DiskFile>,
    /// Its messages by offset; the last one is the next.
    entries: Vec<(u32, QueueKey, i64)>,
    /// The queues in other segments that it has records about, and that are still to be noted anew. `None` until all
    /// messages are copied.
    about: Option<Vec<(u32, QueueKey)>>,
}

/// Time that a segment stays half empty first: a queue that is being consumed will empty it by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Time after which a segment that could not be copied, or not to advantage, is looked at again.
const PAUSE: Duration = Duration::from_secs(30);

/// Without patience, this part of a segment may live.
const BARE: u64 = 64;

/// Bytes of one step, at least one message: about a millisecond.
const STEP_BYTES: u64 = 256 << 10;

impl Cleaning {
    /// Chooses the segment with the least that lives, if one is half empty for as long as `patience`. Otherwise
    /// returns when one will be.
    pub(crate) fn choose(
        log: &Log,
        now: Instant,
        patience: Duration,
    ) -> Result<Option<Self>, Option<Instant>> {
        let state = log.state().lock().unwrap_or_else(PoisonError::into_inner);
        let low = state.segments.iter();
        let low = low.filter_map(|(number, segment)| {
            let since = segment.low_since.filter(|_| segment.is_low())?;
            let share = segment.live_bytes * 1000 / segment.data_bytes.max(1);
            // Almost nothing is to be copied, and later segments may stay for its sake.
            let is_bare = segment.live_bytes * BARE < segment.data_bytes;
            let due = if is_bare { since } else { since + patience };
            Some((*number, due, share))
        });
        let low: Vec<_> = low.collect();
        let due = low.iter().filter(|(_, due, _)| *due <= now);
        let Some((number, ..)) = due.min_by_key(|(_, _, share)| *share) else {
            return Err(low.iter().map(|(_, due, _)| *due).min());
        };
        let number = *number;
        if !is_smaller_elsewhere(&state, number) {
            drop(state);
            Self::end(log, number, Some(now + PAUSE));
            return Ok(None);
        }
        let index = match state.segments.get(&number).map(|found| &found.index) {
            Some(IndexPlace::Memory(index)) => Some(Arc::clone(index)),
            _ => None,
        };
        drop(state);
        let begun = Self::begin(log, number, index).ok().flatten();
        if begun.is_none() {
            Self::end(log, number, Some(now + PAUSE));
        }
        Ok(begun)
    }

    /// Ends the copying of a segment, until it may be tried again.
    fn end(log: &Log, number: u32, low_since: Option<Instant>) {
        let mut state = log.state().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = state.segments.get_mut(&number) {
            segment.low_since = low_since;
        }
    }

    fn begin(log: &Log, number: u32, index: Option<Arc<Index>>) -> io::Result<Option<Self>> {
        let disk: &dyn Disk = &**log.disk();
        let index = match index {
            Some(index) => index,
            None => match load_index(disk, log.store(), number)? {
                Some(index) => Arc::new(index),
                None => return Ok(None),
            },
        };
        let mut entries: Vec<_> = index
            .iter()
            .map(|(queue, place, offset)| (offset, queue, place))
            .collect();
        entries.sort_unstable();
        entries.reverse();
        Ok(Some(Self {
            number,
            file: disk.open_to_read(&segment_name(number))?,
            entries,
            about: None,
        }))
    }

    /// Copies some messages in a commit of their own; returns whether there are more. A message that is not as it was
    /// written stays where it is, and its segment with it.
    pub(crate) fn step(&mut self, log: &mut Log, time_ms: u64, now: Instant) -> bool {
        let (has_more, again) = match self.try_step(log, time_ms) {
            Ok(has_more) => (has_more, None),
            Err(_) => (false, Some(now + PAUSE)),
        };
        if !has_more {
            Self::end(log, self.number, again);
        }
        has_more
    }

    fn try_step(&mut self, log: &mut Log, time_ms: u64) -> Result<bool, Fault> {
        let fault = Fault::when("reading it");
        let state = Arc::clone(log.state());
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut window = Window::new(&*self.file, Salt::of(log.store())).map_err(&fault)?;
        let mut step = Vec::new();
        let mut bytes = 0;
        while bytes < STEP_BYTES
            && let Some((offset, queue, place)) = self.entries.pop()
        {
            let deliveries = match lock()
                .queues
                .get(&queue)
                .and_then(|of| of.runs.get(&self.number))
            {
                Some(run) if run.left.live.contains(place) => {
                    run.left.deliveries.get(&place).copied()
                }
                _ => continue,
            };
            let Some((header, payload)) = window.record(offset.into()).map_err(&fault)? else {
                continue;
            };
            if (header.queue, header.place) != (queue, place) {
                continue;
            }
            let payload = payload.to_vec();
            bytes += header.record_bytes() + self.content_bytes(&mut window, &payload)?;
            step.push(Copied {
                offset,
                queue,
                place,
                deliveries,
                payload,
            });
        }
        if self.entries.is_empty() && self.about.is_none() {
            self.about = Some(about(&lock(), self.number).collect());
        }
        let mut remains = Vec::new();
        let mut remains_bytes = 0;
        while bytes + remains_bytes < STEP_BYTES
            && let Some((about, queue)) = self.about.as_mut().and_then(Vec::pop)
        {
            if let Some(left) = left(&lock(), about, queue) {
                remains_bytes += left_bytes(left);
                remains.push((about, queue, left.clone()));
            }
        }
        let is_over = self.about.as_ref().is_some_and(Vec::is_empty);
        let overhead = (step.len() as u64) * 128;
        let mut draft = log.begin(bytes + overhead + remains_bytes, Purpose::Freeing)?;
        let mut shared = HashMap::new();
        for copied in &step {
            self.copy(&mut window, &mut draft, copied, &mut shared)
                .map_err(&fault)?;
        }
        for (about, queue, left) in remains {
            // The open segment's own acknowledgements need no copy.
            if Some(about) != log.open_segment() {
                draft.remain(queue, about, left);
            }
        }
        log.commit(draft, time_ms)?;
        if is_over {
            lock().clear_about(self.number);
            log.free();
        }
        Ok(!is_over)
    }

    /// The bytes that a message shares with others.
    fn content_bytes(&self, window: &mut Window<'_>, payload: &[u8]) -> Result<u64, Fault> {
        let decoded = message::decode(payload);
        let Some(Content::At { offset: at, .. }) = decoded.map(|message| message.content) else {
            return Ok(0);
        };
        let holder = window
            .record(at.into())
            .map_err(Fault::when("reading it"))?;
        Ok(holder.map_or(0, |(header, _)| header.record_bytes()))
    }

    /// Copies a message. The first one with a shared content has the content in the copy.
    fn copy(
        &self,
        window: &mut Window<'_>,
        draft: &mut Draft,
        copied: &Copied,
        shared: &mut HashMap<u32, u32>,
    ) -> io::Result<()> {
        let Copied {
            offset,
            queue,
            place,
            deliveries,
            payload,
        } = copied;
        let message = match queue.vhost {
            0 => None,
            _ => message::decode(payload),
        };
        let Some(message) = message else {
            draft.store(*queue, *place, self.number, |out| {
                out.extend_from_slice(payload);
                0
            });
            return Ok(());
        };
        let deliveries = deliveries.unwrap_or(message.deliveries);
        let holder_at = match message.content {
            Content::At { offset: at, .. } => at,
            Content::Here { .. } => *offset,
        };
        if let Some(at) = shared.get(&holder_at) {
            draft.store(*queue, *place, self.number, |out| {
                message.encode_moved(deliveries, &message.content, Some(*at), out)
            });
            return Ok(());
        }
        let holder = match message.content {
            Content::At { offset: at, .. } => match window.record(at.into())? {
                Some((_, payload)) => payload.to_vec(),
                // It stays, and so does its segment.
                None => return Ok(()),
            },
            Content::Here { .. } => Vec::new(),
        };
        let holder = message::decode(&holder).map_or(message.content, |holder| holder.content);
        let at = draft.store(*queue, *place, self.number, |out| {
            message.encode_moved(deliveries, &holder, None, out)
        });
        shared.insert(holder_at, at);
        Ok(())
    }
}

/// A message on its way.
struct Copied {
    offset: u32,
    queue: QueueKey,
    place: i64,
    deliveries: Option<u32>,
    payload: Vec<u8>,
}

/// The queues in other segments that a segment has records about.
fn about(state: &State, number: u32) -> impl Iterator<Item = (u32, QueueKey)> {
    let about = state.segments.get(&number).map(|found| &found.about);
    let about = about.into_iter().flatten();
    about.flat_map(|(about, queues)| queues.iter().map(|queue| (*about, *queue)))
}

/// What is left of a queue in a segment.
fn left(state: &State, segment: u32, queue: QueueKey) -> Option<&Left> {
    let run = state.queues.get(&queue)?.runs.get(&segment)?;
    Some(&run.left)
}

/// Whether less than half of a segment would be written again. Of acknowledgements at random nearly all would be, and
/// their copy would be as large as they are.
fn is_smaller_elsewhere(state: &State, number: u32) -> bool {
    let Some(segment) = state.segments.get(&number) else {
        return false;
    };
    let mut bytes = segment.live_bytes;
    about(state, number).all(|(about, queue)| {
        bytes += left(state, about, queue).map_or(0, left_bytes);
        bytes * 2 < segment.data_bytes
    }) && bytes * 2 < segment.data_bytes
}

/// The bytes of a record of kind `Remains`, or a few more.
pub(crate) fn left_bytes(left: &Left) -> u64 {
    let mut bytes = Vec::new();
    left.encode(&mut bytes);
    128 + bytes.len() as u64
}
