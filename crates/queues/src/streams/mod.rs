//! Streams: the range of offsets that each holds, and the readers that wait for more.
//!
//! ```text
//! add ─▶ append (an offset) ─▶ Journal::streams ─▶ (a keeper writes it) ─▶ written ─▶ woken readers
//!                                                                              │
//! (a reader without a page) ─▶ await_more ─▶ take_wants ─▶ (a keeper reads) ───┴─▶ deliveries
//! ```
//!
//! The messages are in files that a keeper writes and reads. A consumer has its place in its own [`Reader`]. *Never:* a
//! file, a channel, a queue's messages.

mod change;
mod filter;
mod page;
mod reader;

use crosstie_collections::Beside;

pub use self::change::{StreamAppend, StreamChange, StreamDeclared, StreamExtent, StreamLimits};
pub use self::filter::StreamFilter;
pub use self::page::{StreamMessage, StreamPage, StreamPlace};
pub use self::reader::{StreamFrom, StreamWant};

pub(crate) use self::filter::{FILTER, MATCH_UNFILTERED};
pub(crate) use self::reader::{Reader, Start};

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::keys::{ConsumerKey, OfQueue};
use crate::ledger::Ledger;
use crate::{MessageContent, Position, QueueId, QueueKey, Time};

#[derive(Debug)]
pub(crate) struct Streams {
    streams: Beside<OfQueue, Stream>,
    keys: FxHashMap<QueueId, QueueKey>,
    /// Readers that need a page from the disk.
    wanting: VecDeque<(QueueKey, ConsumerKey)>,
    /// Stands for the messages that channels hold: a reader's acknowledgement moves nothing, so none is kept.
    blank: Arc<MessageContent>,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: QueueId,
    name: Arc<str>,
    limits: StreamLimits,
    /// The first offset that is kept.
    pub(crate) first: u64,
    /// The offset behind the last written message: readers may be sent those before it.
    pub(crate) end: u64,
    /// The offset of the next message.
    next: u64,
    /// The time of the last message. Times never go back.
    last_at: Time,
    /// Bytes of its files.
    pub(crate) bytes: u64,
    /// Messages wait because they cannot be written.
    pub(crate) is_failing: bool,
    /// Readers that have been sent everything.
    waiting: Vec<ConsumerKey>,
    /// Readers that waited, and have not been served yet.
    woken: VecDeque<ConsumerKey>,
    /// The last written messages, while woken readers need them.
    tail: Option<Arc<StreamPage>>,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            streams: Beside::new(),
            keys: FxHashMap::default(),
            wanting: VecDeque::new(),
            blank: Arc::new(MessageContent::new("", "", &[], b"")),
        }
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(crate) fn add(
        &mut self,
        key: QueueKey,
        (id, name): (QueueId, &Arc<str>),
        limits: StreamLimits,
    ) {
        self.keys.insert(id, key);
        self.streams.entry(key, || Stream {
            id,
            name: Arc::clone(name),
            limits,
            first: 0,
            end: 0,
            next: 0,
            last_at: Time(0),
            bytes: 0,
            is_failing: false,
            waiting: Vec::new(),
            woken: VecDeque::new(),
            tail: None,
        });
    }

    /// Sets the bounds of a stream, if the queue is one.
    pub(crate) fn set_limits(&mut self, key: QueueKey, limits: StreamLimits, ledger: &mut Ledger) {
        if let Some(stream) = self.streams.find_mut(key)
            && stream.limits != limits
        {
            stream.limits = limits;
            let id = stream.id;
            ledger.change_stream(StreamChange::Bounded { id, limits });
        }
    }

    /// Removes the stream of a deleted queue, if it is one.
    pub(crate) fn remove(&mut self, key: QueueKey, ledger: &mut Ledger) {
        if let Some(stream) = self.streams.remove(key) {
            self.keys.remove(&stream.id);
            ledger.change_stream(StreamChange::Deleted { id: stream.id });
        }
    }

    /// Sets what the keeper has found on the disk.
    pub(crate) fn restore(&mut self, id: QueueId, extent: &StreamExtent) {
        if let Some(key) = self.key(id)
            && let Some(stream) = self.streams.find_mut(key)
        {
            stream.first = extent.first;
            stream.end = extent.end;
            stream.next = extent.end;
            stream.last_at = extent.last_at;
            stream.bytes = extent.bytes;
        }
    }

    /// Gives a message the next offset, and has it written. Returns the position at which it is.
    pub(crate) fn append(
        &mut self,
        now: Time,
        key: QueueKey,
        content: Arc<MessageContent>,
        ledger: &mut Ledger,
    ) -> Option<Position> {
        let stream = self.streams.find_mut(key)?;
        let offset = stream.next;
        stream.next += 1;
        stream.last_at = stream.last_at.max(now);
        let append = StreamAppend {
            offset,
            at: stream.last_at,
            limits: stream.limits,
            name: Arc::clone(&stream.name),
            content,
        };
        ledger.change_stream(StreamChange::Appended {
            id: stream.id,
            append,
        });
        Some(ledger.journal.position)
    }

    /// Notes what the keeper has written, and wakes the waiting readers: they are served by deliveries.
    pub(crate) fn written(
        &mut self,
        id: QueueId,
        extent: &StreamExtent,
        page: Option<Arc<StreamPage>>,
    ) -> Option<QueueKey> {
        let key = self.key(id)?;
        let stream = self.streams.find_mut(key)?;
        stream.first = extent.first;
        stream.end = stream.end.max(extent.end);
        stream.bytes = extent.bytes;
        if stream.woken.is_empty() {
            stream.woken.extend(stream.waiting.drain(..));
            stream.tail = page.filter(|_| !stream.woken.is_empty());
        } else {
            // Those that have not been served yet read an earlier page first.
            stream.tail = None;
            stream.woken.extend(stream.waiting.drain(..));
        }
        Some(key)
    }

    /// Messages of these streams cannot be written.
    pub(crate) fn note_failing(&mut self, ids: impl Iterator<Item = QueueId>) {
        for id in ids {
            let stream = self.keys.get(&id);
            if let Some(stream) = stream.and_then(|key| self.streams.find_mut(*key)) {
                stream.is_failing = true;
            }
        }
    }

    /// All streams can be written. Returns whether some could not be.
    pub(crate) fn note_going_on(&mut self) -> bool {
        let mut was_failing = false;
        for key in self.keys.values() {
            if let Some(stream) = self.streams.find_mut(*key) {
                was_failing |= std::mem::take(&mut stream.is_failing);
            }
        }
        was_failing
    }

    /// Takes a woken reader, with the page that was written last.
    pub(crate) fn next_woken(
        &mut self,
        key: QueueKey,
    ) -> Option<(ConsumerKey, Option<Arc<StreamPage>>)> {
        let stream = self.streams.find_mut(key)?;
        let Some(reader) = stream.woken.pop_front() else {
            // At rest a stream keeps no message, and no list that was once long.
            stream.tail = None;
            stream.woken.shrink_to(0);
            return None;
        };
        Some((reader, stream.tail.clone()))
    }

    /// Has a reader without a page wait for one: from the disk, or for the next message. `consumers`: how many the
    /// stream has.
    pub(crate) fn await_more(
        &mut self,
        key: QueueKey,
        consumer: ConsumerKey,
        reader: &mut Reader,
        consumers: usize,
        is_alive: impl Fn(ConsumerKey) -> bool,
    ) {
        let Some(stream) = self.streams.find_mut(key) else {
            return;
        };
        if reader.is_behind(stream.end) {
            if !reader.is_reading() {
                reader.begin_reading();
                self.wanting.push_back((key, consumer));
            }
            return;
        }
        if stream.waiting.len() > 2 * consumers + 16 {
            // Consumers that have left.
            stream.waiting.retain(|waiting| is_alive(*waiting));
        }
        stream.waiting.push(consumer);
    }

    /// Requests a page ahead of its use.
    pub(crate) fn read_ahead(&mut self, key: QueueKey, consumer: ConsumerKey, reader: &mut Reader) {
        if let Some(stream) = self.streams.find(key)
            && reader.wants_more(stream.end)
        {
            reader.begin_reading();
            self.wanting.push_back((key, consumer));
        }
    }

    pub(crate) fn has_wants(&self) -> bool {
        !self.wanting.is_empty()
    }

    pub(crate) fn take_want(&mut self) -> Option<(QueueKey, ConsumerKey)> {
        let want = self.wanting.pop_front();
        if self.wanting.is_empty() {
            self.wanting.shrink_to(0);
        }
        want
    }

    /// The first offset that a new reader is sent.
    pub(crate) fn place(&self, key: QueueKey, start: Start) -> Option<StreamFrom> {
        let stream = self.streams.find(key)?;
        Some(match start {
            Start::First => StreamFrom::Offset(stream.first),
            Start::Last if stream.end > stream.first => StreamFrom::Offset(stream.end - 1),
            Start::Last | Start::Next => StreamFrom::Offset(stream.next),
            Start::Offset(offset) => StreamFrom::Offset(offset.max(stream.first)),
            Start::Since(at) if at > stream.last_at => StreamFrom::Offset(stream.next),
            Start::Since(at) => StreamFrom::Since(at),
        })
    }
}

/// Read access.
impl Streams {
    #[inline]
    pub(crate) fn find(&self, key: QueueKey) -> Option<&Stream> {
        self.streams.find(key)
    }

    pub(crate) fn key(&self, id: QueueId) -> Option<QueueKey> {
        self.keys.get(&id).copied()
    }

    pub(crate) fn blank(&self) -> Arc<MessageContent> {
        Arc::clone(&self.blank)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = (QueueId, QueueKey)> {
        self.keys.iter().map(|(id, key)| (*id, *key))
    }
}

impl Stream {
    /// Number of offsets from the first kept one to the last written one.
    pub(crate) fn len(&self) -> u64 {
        self.end.saturating_sub(self.first)
    }
}
