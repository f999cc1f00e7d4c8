//! Reads what a store has: all of it as it was at one time, or messages of queues from a place on.

mod pages;
mod reach;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosstie_disk::{Disk, DiskFile};
use crosstie_queues::{MessageContent, StoredMessage};

use super::entity::{self, Entity};
use super::index::{Index, Left, read_index};
use super::log::Fault;
use super::message::{self, Content};
use super::record::{HEADER_BYTES, Header, Kind, QueueKey, Salt};
use super::scan::Window;
use super::segment::segment_name;
use super::state::{IndexPlace, State};

pub(crate) use pages::{Found, TOGETHER_BYTES, Wanted};
use reach::Reach;

/// The record at a place of a queue; `None` if it is not as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Entity(Option<Entity>),
    Message(Option<StoredMessage>),
}

/// The live records of each segment at one time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) parts: Vec<Part>,
}

/// A segment in a snapshot.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) number: u32,
    queues: Vec<(QueueKey, Left)>,
    /// If it is not in its file.
    index: Option<Arc<Index>>,
}

/// Receives every message and entity of a snapshot.
pub(crate) type Visit<'v> = dyn FnMut(QueueKey, i64, Item) -> io::Result<()> + 'v;

impl Snapshot {
    /// Of all queues.
    pub(crate) fn all(state: &State) -> Self {
        Self::take(state, |_| Some(i64::MAX))
    }

    /// Of the queues that have a last place, up to that.
    pub(crate) fn take(state: &State, last: impl Fn(&QueueKey) -> Option<i64>) -> Self {
        let mut parts = Vec::new();
        for (number, segment) in &state.segments {
            if segment.live == 0 {
                continue;
            }
            let mut queues = Vec::new();
            for queue in &segment.queues {
                let Some(last) = last(queue) else {
                    continue;
                };
                let run = state.queues.get(queue).and_then(|of| of.runs.get(number));
                let left = run.and_then(|run| run.left.until(last));
                queues.extend(left.map(|left| (*queue, left)));
            }
            if queues.is_empty() {
                continue;
            }
            let index = match &segment.index {
                IndexPlace::Growing(index) => Some(Arc::new(index.clone())),
                IndexPlace::Memory(index) => Some(Arc::clone(index)),
                IndexPlace::File => None,
            };
            parts.push(Part {
                number: *number,
                queues,
                index,
            });
        }
        Self { parts }
    }
}

impl Part {
    /// Notes the deliveries of those of its messages that are among these.
    pub(crate) fn note_deliveries(&mut self, delivered: &HashMap<QueueKey, BTreeMap<i64, u32>>) {
        for (queue, left) in &mut self.queues {
            let Some((delivered, (first, last))) = delivered
                .get(queue)
                .zip(left.live.first().zip(left.live.last()))
            else {
                continue;
            };
            for (place, deliveries) in delivered.range(first..=last) {
                if left.live.contains(*place) {
                    left.deliveries.insert(*place, *deliveries);
                }
            }
        }
    }

    /// Visits its messages in the order of the file.
    pub(crate) fn visit(
        &self,
        disk: &dyn Disk,
        store: u64,
        visit: &mut Visit<'_>,
    ) -> Result<(), Fault> {
        let fault = Fault::when("reading it");
        self.try_visit(disk, store, visit).map_err(&fault)
    }

    fn try_visit(&self, disk: &dyn Disk, store: u64, visit: &mut Visit<'_>) -> io::Result<()> {
        let index = match &self.index {
            Some(index) => Some(Arc::clone(index)),
            None => load_index(disk, store, self.number)?.map(Arc::new),
        };
        let file = open_segment(disk, self.number)?;
        let mut entries = Vec::new();
        for (queue, left) in &self.queues {
            for place in left.live.iter() {
                let offset = index.as_ref().and_then(|index| index.find(*queue, place));
                let deliveries = left.deliveries.get(&place).copied();
                entries.push((offset, *queue, place, deliveries));
            }
        }
        entries.sort_unstable();
        let offsets = entries.iter().filter_map(|(offset, ..)| *offset);
        let mut source = match &file {
            Some(file) => Some(Source::new(&**file, Salt::of(store), offsets)?),
            None => None,
        };
        for (offset, queue, place, deliveries) in entries {
            let item = match (&mut source, offset) {
                (Some(source), Some(offset)) => source.item(queue, place, offset, deliveries)?,
                _ => missing(queue),
            };
            visit(queue, place, item)?;
        }
        Ok(())
    }
}

/// The index of a complete segment, from its file, or from the segment itself.
pub(super) fn load_index(disk: &dyn Disk, store: u64, number: u32) -> io::Result<Option<Index>> {
    if let Some(index) = read_index(disk, store, number)? {
        return Ok(Some(index));
    }
    // Its summary was right and its offsets are not: they are found again.
    let Some(file) = open_segment(disk, number)? else {
        return Ok(None);
    };
    let mut index = Index::default();
    let first_sequence = super::recover::first_sequence(disk, store, number)?;
    let bounds = super::scan::Bounds {
        first_sequence: first_sequence.unwrap_or_default(),
        end_sequence: None,
        confirmed: 0,
        salt: Salt::of(store),
    };
    super::scan::scan(&*file, bounds, &mut |found| {
        if found.header.kind == Kind::Stored {
            let header = &found.header;
            index.push(header.queue, header.place, found.offset as u32);
        }
    })?;
    Ok(Some(index))
}

fn open_segment(disk: &dyn Disk, number: u32) -> io::Result<Option<Arc<dyn DiskFile>>> {
    match disk.open_to_read(&segment_name(number)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn missing(queue: QueueKey) -> Item {
    match queue.vhost {
        0 => Item::Entity(None),
        _ => Item::Message(None),
    }
}

/// Bytes of a message's payload beside its body, as a rule. Longer ones are another read.
const HEAD_BYTES: u64 = 512;

/// Messages of one segment.
pub(crate) struct Source<'f> {
    window: Window<'f>,
    reach: Reach,
    /// For contents in other records. The first message of a fan-out to many queues is far before the last one: one window
    /// would read all between the two, for each message.
    contents: Window<'f>,
    /// Contents that several of its messages share.
    shared: HashMap<u32, Arc<MessageContent>>,
}

impl<'f> Source<'f> {
    /// Of the records at these offsets.
    pub(crate) fn new(
        file: &'f dyn DiskFile,
        salt: Salt,
        offsets: impl Iterator<Item = u32>,
    ) -> io::Result<Self> {
        Ok(Self {
            window: Window::new(file, salt)?,
            reach: Reach::of(offsets.collect()),
            contents: Window::new(file, salt)?,
            shared: HashMap::new(),
        })
    }

    /// The item that the index has at one of the offsets.
    pub(crate) fn item(
        &mut self,
        queue: QueueKey,
        place: i64,
        offset: u32,
        deliveries: Option<u32>,
    ) -> io::Result<Item> {
        self.window.end_at(self.reach.end(offset));
        let Some((header, payload)) = self.window.record(offset.into())? else {
            return Ok(missing(queue));
        };
        if !is_it(&header, queue, place) {
            return Ok(missing(queue));
        }
        if queue.vhost == 0 {
            return Ok(Item::Entity(entity::decode(payload)));
        }
        let Some(message) = message::decode(payload) else {
            return Ok(missing(queue));
        };
        let (expires_at, deliveries) =
            (message.expires_at, deliveries.unwrap_or(message.deliveries));
        let content = match message.content {
            Content::At { offset, body_bytes } => self.shared_content(offset, body_bytes)?,
            Content::Here { body, .. } => {
                // Others may share it.
                let is_long = body.len() >= message::SHARED_BYTES_MIN;
                let known = self.shared.get(&offset).filter(|_| is_long);
                let content = known.cloned();
                let content = content.or_else(|| message.content.load().map(Arc::new));
                if let Some(content) = content.as_ref().filter(|_| is_long) {
                    self.shared.insert(offset, Arc::clone(content));
                }
                content
            }
        };
        Ok(Item::Message(content.map(|content| StoredMessage {
            content,
            expires_at,
            deliveries,
        })))
    }

    /// The content of another record, which may not live any more.
    fn shared_content(
        &mut self,
        at: u32,
        body_bytes: u64,
    ) -> io::Result<Option<Arc<MessageContent>>> {
        if let Some(content) = self.shared.get(&at) {
            return Ok(Some(Arc::clone(content)));
        }
        let end = u64::from(at) + HEADER_BYTES as u64 + body_bytes;
        let window = if self.window.has(at.into(), end) {
            &mut self.window
        } else {
            self.contents.end_at(end + HEAD_BYTES);
            &mut self.contents
        };
        let Some((header, payload)) = window.record(at.into())? else {
            return Ok(None);
        };
        if header.kind != Kind::Stored {
            return Ok(None);
        }
        let content = message::decode(payload).and_then(|holder| holder.content.load());
        let content = content.map(Arc::new);
        if let Some(content) = &content {
            self.shared.insert(at, Arc::clone(content));
        }
        Ok(content)
    }
}

fn is_it(header: &Header, queue: QueueKey, place: i64) -> bool {
    (header.kind, header.queue, header.place) == (Kind::Stored, queue, place)
}

/// Reads messages of queues from the disk, beside the thread that commits.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    disk: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
    store: u64,
    indexes: Arc<Mutex<Indexes>>,
}

/// Indexes by segment, the one read last at the end.
type Indexes = Vec<(u32, Arc<Index>)>;

/// Approximate memory of the indexes that are kept.
const INDEX_BYTES_MAX: usize = 8 << 20;

impl Contents {
    pub(crate) fn new(disk: Arc<dyn Disk>, state: Arc<Mutex<State>>, store: u64) -> Self {
        Self {
            disk,
            state,
            store,
            indexes: Arc::default(),
        }
    }

    fn index(&self, segment: u32) -> io::Result<Option<Arc<Index>>> {
        let state = lock(&self.state);
        match state.segments.get(&segment).map(|found| &found.index) {
            Some(IndexPlace::Memory(index)) => return Ok(Some(Arc::clone(index))),
            // It has become complete since.
            Some(IndexPlace::Growing(index)) => return Ok(Some(Arc::new(index.clone()))),
            _ => drop(state),
        }
        let known = {
            let indexes = lock(&self.indexes);
            let known = indexes.iter().find(|(number, _)| *number == segment);
            known.map(|(_, index)| Arc::clone(index))
        };
        if known.is_some() {
            return Ok(known);
        }
        let Some(index) = load_index(&*self.disk, self.store, segment)? else {
            return Ok(None);
        };
        let index = Arc::new(index);
        let mut indexes = lock(&self.indexes);
        indexes.push((segment, Arc::clone(&index)));
        let bytes = |indexes: &[(u32, Arc<Index>)]| -> usize {
            indexes.iter().map(|(_, index)| index.memory_bytes()).sum()
        };
        while indexes.len() > 1 && bytes(&indexes) > INDEX_BYTES_MAX {
            indexes.remove(0);
        }
        drop(indexes);
        Ok(Some(index))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
