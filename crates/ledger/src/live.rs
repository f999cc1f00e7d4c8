//! The live records of a log, and the extent that holds each of them.
//!
//! Of a long queue, once all messages take much memory, only the places of its messages are known: the log has the
//! messages. Such a queue is *deep* until it is empty.
//!
//! A log is cleaned from its front, so the rest of it may begin with a message whose queue is declared again only
//! later. Every record is therefore stored by its own key here, whether or not its queue is known. A vhost gets the
//! records in an order that it can restore ([`Live::records`]).

mod relief;
mod settings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crosstie_queues::{Destination, QueueId, Record, StoredMessage};

use crate::config::Config;
use crate::crowded::Crowding;
use crate::extents::Extents;
use crate::key::{Binding, Key, binding};
use crate::leaving::Leaving;
use crate::messages::{Messages, RECORD_BYTES, enqueued, size};
use crate::runs::Gone;
use crate::setting::{Setting, setting};

/// A live declaration.
#[derive(Clone, Debug)]
struct Counting<R> {
    record: R,
    /// The number of the extent that has it.
    extent: u64,
    bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Live {
    exchanges: BTreeMap<Arc<str>, Counting<Record>>,
    queues: BTreeMap<QueueId, Counting<(Arc<str>, Record)>>,
    /// With their order.
    bindings: HashMap<Arc<Binding>, Counting<u64>>,
    settings: BTreeMap<Arc<str>, Counting<Setting>>,
    messages: BTreeMap<QueueId, Messages>,
    pub(crate) extents: Extents,
    /// Approximate octets of the live records.
    bytes: u64,
    /// Bytes of the messages in memory, without those that no queue needs any more.
    resident_bytes: u64,
    leaving: Leaving,
    crowding: Crowding,
    deep: usize,
    /// Bytes in memory besides these, of all queues.
    messages_memory: usize,
    /// Bytes of the keys and values of settings.
    settings_memory: usize,
    /// The epoch of the present batch, and whether its records are changes. Otherwise the log has had them before.
    epoch: u64,
    is_fresh: bool,
    config: Config,
}

/// The oldest live records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Oldest {
    Records(Vec<Record>),
    /// The log has them: the number of the extent, and its first entry and its last.
    InLog(u64, (u64, u64)),
}

/// Memory of a declaration, besides what it consists of.
const COUNTING_MEMORY_BYTES: usize = 160;

impl Live {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            exchanges: BTreeMap::new(),
            queues: BTreeMap::new(),
            bindings: HashMap::new(),
            settings: BTreeMap::new(),
            messages: BTreeMap::new(),
            extents: Extents::new(config.extent_bytes),
            bytes: 0,
            resident_bytes: 0,
            leaving: Leaving::default(),
            crowding: Crowding::default(),
            deep: 0,
            messages_memory: 0,
            settings_memory: 0,
            epoch: 0,
            is_fresh: true,
            config,
        }
    }

    /// Without records.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.config)
    }

    /// Takes a record of the current batch; of a deleted queue with its name, if that is known otherwise.
    pub(crate) fn take(&mut self, record: &Record, name: Option<&Arc<str>>) {
        match record {
            Record::ExchangeDeclared { name, .. } => {
                let counting = self.count(record.clone(), Key::Exchange(Arc::clone(name)));
                let before = self.exchanges.insert(Arc::clone(name), counting);
                self.forget_some(before);
            }
            Record::ExchangeDeleted { name } => {
                let before = self.exchanges.remove(name);
                self.forget_some(before);
                let to_it = Destination::Exchange(Arc::clone(name));
                self.forget_bindings(|binding| {
                    binding.source == *name || binding.destination == to_it
                });
            }
            Record::QueueDeclared { id, name, .. } => {
                let kept = (Arc::clone(name), record.clone());
                let counting = self.count(kept, Key::Queue(*id));
                let before = self.queues.insert(*id, counting);
                self.forget_some(before);
                self.judge(*id);
            }
            Record::QueueDeleted { id } => self.delete_queue(*id, name),
            Record::Bound { .. } => self.bind(record),
            Record::Unbound { .. } => {
                let gone = binding(record).and_then(|binding| self.bindings.remove(&binding));
                self.forget_some(gone);
            }
            Record::Enqueued {
                queue,
                place,
                message,
            } => self.enqueue(*queue, *place, message),
            Record::Dequeued { queue, place } => self.dequeue(*queue, *place),
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => {
                self.change(*queue, |messages| messages.deliver(*place, *deliveries));
            }
            Record::Purged { queue } => self.purge(*queue),
            Record::Cleared { queue, from, to } => self.clear(*queue, (*from, *to)),
            Record::Setting { key, value } => self.set(key, value.as_ref()),
            // Only an owner's last entry has the first, and no log the second.
            Record::Rested { .. } | Record::Kept(_) => {}
            // It is created and deleted by its nodes' configurations.
            Record::VhostCreated | Record::VhostDeleted => {}
        }
        self.free_some();
    }

    /// The oldest live records, about `bytes_max` octets of them, to be written again: of entries up to and including
    /// `last`.
    pub(crate) fn oldest(&self, bytes_max: u64, last: u64) -> Oldest {
        let mut records = Vec::new();
        let mut bytes = 0;
        for (number, extent) in self.extents.oldest(last) {
            if bytes >= bytes_max {
                break;
            }
            if self.is_absent(number, |_| true) {
                if records.is_empty() {
                    return Oldest::InLog(number, (extent.first, extent.last));
                }
                break;
            }
            let declarations = extent.keys.iter().filter_map(|key| self.find(key, number));
            let mut runs = extent.runs.clone();
            runs.sort_unstable();
            runs.dedup();
            let messages = runs.into_iter().flat_map(|(queue, key)| {
                let messages = self.messages.get(&queue);
                let run = messages.and_then(|messages| messages.runs.run(key, number));
                let places = run.into_iter().flat_map(|run| run.places());
                places.filter_map(move |place| {
                    let message = messages?.contents.get(&place)?;
                    Some((enqueued(queue, place, message), size(message).bytes))
                })
            });
            for (record, of) in declarations.chain(messages) {
                bytes += of;
                records.push(record);
                if bytes >= bytes_max {
                    break;
                }
            }
        }
        Oldest::Records(records)
    }

    /// The live declarations of an extent.
    pub(crate) fn declarations(&self, number: u64) -> Vec<Record> {
        let keys = self.extents.get(number).map(|extent| extent.keys.iter());
        let found = keys.into_iter().flatten();
        let found = found.filter_map(|key| self.find(key, number));
        found.map(|(record, _)| record).collect()
    }

    /// Whether an extent has live messages of a deep queue; those in question are chosen by `is_meant`.
    pub(crate) fn is_absent(&self, number: u64, is_meant: impl Fn(&QueueId) -> bool) -> bool {
        let runs = self.extents.get(number).map(|extent| extent.runs.iter());
        self.deep > 0
            && runs.into_iter().flatten().any(|(queue, key)| {
                let messages = self.messages.get(queue).filter(|found| found.is_deep);
                is_meant(queue)
                    && messages.is_some_and(|found| found.runs.run(*key, number).is_some())
            })
    }

    /// All live records, in an order that a vhost can restore: exchanges and queues before their bindings, queues
    /// before their messages, and messages in their order. Of a deep queue's messages only the extent is known
    /// ([`Record::Kept`]), one for each priority.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let exchanges = self.exchanges.values();
        let queues = self.queues.values();
        let messages = self.messages.iter();
        let settings = self.settings.iter();
        exchanges
            .map(|known| known.record.clone())
            .chain(settings.map(|(key, known)| setting(key, &known.record.value)))
            .chain(queues.map(|known| known.record.1.clone()))
            .chain(
                self.bindings
                    .iter()
                    .map(|(binding, known)| binding.record(known.record)),
            )
            .chain(messages.flat_map(|(queue, messages)| messages.records(*queue)))
    }

    /// The extent that has a message, if it is live.
    pub(crate) fn extent_of(&self, queue: QueueId, place: i64) -> Option<u64> {
        self.messages.get(&queue)?.runs.find(place)
    }

    /// The deliveries of a message, if they were counted after it.
    pub(crate) fn deliveries(&self, queue: QueueId, place: i64) -> Option<u32> {
        let messages = self.messages.get(&queue)?;
        messages.deliveries.get(&place).copied()
    }

    /// A message in memory.
    pub(crate) fn content(&self, queue: QueueId, place: i64) -> Option<&StoredMessage> {
        self.messages.get(&queue)?.contents.get(&place)
    }

    /// The places of a queue's live messages between those two, and their extents.
    pub(crate) fn between(
        &self,
        queue: QueueId,
        (from, to): (i64, i64),
    ) -> impl Iterator<Item = (i64, u64)> {
        let messages = self.messages.get(&queue).into_iter();
        messages.flat_map(move |messages| messages.runs.between(from, to))
    }

    /// The first of these places.
    pub(crate) fn places(&self, queue: QueueId, between: (i64, i64), count_max: usize) -> Vec<i64> {
        let places = self.between(queue, between).take(count_max);
        places.map(|(place, _)| place).collect()
    }

    pub(crate) fn queue_name(&self, id: QueueId) -> Option<Arc<str>> {
        self.queues
            .get(&id)
            .map(|queue| Arc::clone(&queue.record.0))
    }

    /// Octets of a message of that queue, on average.
    pub(crate) fn mean_bytes(&self, queue: QueueId) -> u64 {
        let runs = self.messages.get(&queue).map(|found| &found.runs);
        let mean = runs.and_then(|runs| runs.body_bytes().checked_div(runs.len() as u64));
        mean.unwrap_or(0) + RECORD_BYTES
    }

    /// Whether only the log has the messages of a queue.
    pub(crate) fn is_deep(&self) -> bool {
        self.deep > 0
    }

    /// The queues whose messages only the log has.
    pub(crate) fn deep_queues(&self) -> BTreeSet<QueueId> {
        let deep = self.messages.iter().filter(|(_, found)| found.is_deep);
        deep.map(|(queue, _)| *queue).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the messages in memory, which a vhost shares.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// Bytes in memory besides these.
    pub(crate) fn memory_bytes(&self) -> usize {
        let declared =
            self.exchanges.len() + self.queues.len() + self.bindings.len() + self.settings.len();
        declared * COUNTING_MEMORY_BYTES
            + self.settings_memory
            + self.messages_memory
            + self.extents.memory_bytes()
            + self.leaving.memory_bytes()
    }

    /// Changes the messages of a queue.
    fn change<R>(&mut self, queue: QueueId, change: impl FnOnce(&mut Messages) -> R) -> Option<R> {
        let messages = self.messages.get_mut(&queue)?;
        let before = messages.memory_bytes();
        let changed = change(messages);
        self.messages_memory = self.messages_memory + messages.memory_bytes() - before;
        Some(changed)
    }

    fn count<R>(&mut self, record: R, key: Key) -> Counting<R> {
        self.count_bytes(record, key, RECORD_BYTES)
    }

    fn count_bytes<R>(&mut self, record: R, key: Key, bytes: u64) -> Counting<R> {
        self.bytes += bytes;
        Counting {
            record,
            extent: self.extents.count(key),
            bytes,
        }
    }

    fn forget_some<R>(&mut self, counting: Option<Counting<R>>) {
        if let Some(Counting { extent, bytes, .. }) = counting {
            self.bytes -= bytes;
            self.extents.forget(extent);
        }
    }

    fn forget(&mut self, gone: Gone) {
        self.bytes -= gone.size.bytes;
        self.extents.forget_messages(gone.extent, gone.count);
    }

    fn enqueue(&mut self, queue: QueueId, place: i64, message: &StoredMessage) {
        self.dequeue(queue, place);
        let extent = self.extents.count_message();
        let size = size(message);
        self.bytes += size.bytes;
        if !self.messages.contains_key(&queue) {
            let messages = Messages::default();
            self.messages_memory += messages.memory_bytes();
            self.messages.insert(queue, messages);
        }
        let changed = self.change(queue, |messages| {
            let begun = messages.runs.insert(place, extent, size);
            (begun, messages.keep(place, message))
        });
        let Some((begun, resident_bytes)) = changed else {
            return;
        };
        for (key, of) in begun {
            self.extents.add_run(of, (queue, key));
        }
        self.resident_bytes += resident_bytes;
        self.judge(queue);
    }

    fn dequeue(&mut self, queue: QueueId, place: i64) {
        let left = self.change(queue, |messages| {
            let gone = messages.runs.remove(place)?;
            let freed_bytes = messages.forget(place);
            Some((gone, freed_bytes, messages.runs.len() == 0))
        });
        let Some((gone, freed_bytes, is_last)) = left.flatten() else {
            return;
        };
        self.resident_bytes -= freed_bytes;
        self.forget(gone);
        if is_last {
            self.purge(queue);
        }
    }

    /// Forgets the messages with places from the first to the last of these.
    fn clear(&mut self, queue: QueueId, (from, to): (i64, i64)) {
        let cleared = self.change(queue, |messages| {
            let freed_bytes = messages.forget_between(from, to);
            let gone = messages.runs.clear_between(from, to);
            (gone, freed_bytes, messages.runs.len() == 0)
        });
        let Some((gone, freed_bytes, is_empty)) = cleared else {
            return;
        };
        self.resident_bytes -= freed_bytes;
        let is_any = !gone.is_empty();
        gone.into_iter().for_each(|gone| self.forget(gone));
        if is_any && is_empty {
            self.purge(queue);
        }
    }

    fn bind(&mut self, record: &Record) {
        if let Some(binding) = binding(record)
            && let Record::Bound { order, .. } = *record
        {
            let binding = Arc::new(binding);
            let counting = self.count(order, Key::Binding(Arc::clone(&binding)));
            let before = self.bindings.insert(binding, counting);
            self.forget_some(before);
        }
    }

    fn delete_queue(&mut self, id: QueueId, name: Option<&Arc<str>>) {
        self.purge(id);
        let queue = self.queues.remove(&id);
        let known = queue.as_ref().map(|queue| Arc::clone(&queue.record.0));
        self.forget_some(queue);
        if let Some(name) = known.or_else(|| name.cloned()) {
            let to_it = Destination::Queue(name);
            self.forget_bindings(|binding| binding.destination == to_it);
        }
    }

    fn purge(&mut self, queue: QueueId) {
        let Some(mut messages) = self.messages.remove(&queue) else {
            return;
        };
        self.deep -= usize::from(messages.is_deep);
        self.messages_memory -= messages.memory_bytes();
        self.leave(messages.take_contents());
        for gone in messages.runs.clear() {
            self.forget(gone);
        }
    }

    fn forget_bindings(&mut self, is_gone: impl Fn(&Binding) -> bool) {
        let gone: Vec<_> = self
            .bindings
            .extract_if(|binding, _| is_gone(binding))
            .collect();
        for (_, counting) in gone {
            self.forget_some(Some(counting));
        }
    }

    /// A live declaration, if that extent is the last one with it.
    fn find(&self, key: &Key, extent: u64) -> Option<(Record, u64)> {
        let (record, of, bytes) = match key {
            Key::Exchange(name) => {
                let known = self.exchanges.get(name)?;
                (known.record.clone(), known.extent, known.bytes)
            }
            Key::Queue(id) => {
                let known = self.queues.get(id)?;
                (known.record.1.clone(), known.extent, known.bytes)
            }
            Key::Binding(binding) => {
                let known = self.bindings.get(binding)?;
                (binding.record(known.record), known.extent, known.bytes)
            }
            Key::Setting(key) => {
                let known = self.settings.get(key)?;
                let record = setting(key, &known.record.value);
                (record, known.extent, known.bytes)
            }
        };
        (of == extent).then_some((record, bytes))
    }
}
