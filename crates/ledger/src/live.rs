//! The live records of a log, and the batch that holds each of them.
//!
//! A log is cleaned from its front, so the rest of it may begin with a message whose queue is declared again only
//! later. Every record is therefore stored by its own key here, whether or not its queue is known. A vhost gets the
//! records in an order that it can restore ([`Live::records`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crosstie_amqp::TableBuf;
use crosstie_queues::{Destination, QueueId, Record, StoredMessage};

/// The key of a live record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Exchange(Arc<str>),
    Queue(QueueId),
    Binding(Arc<Binding>),
    Message(QueueId, i64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Binding {
    source: Arc<str>,
    destination: Destination,
    routing_key: Arc<str>,
    arguments: TableBuf,
}

/// A live record.
#[derive(Clone, Debug)]
struct Counting<R> {
    record: R,
    /// The number of the last batch with this record.
    batch: u64,
    bytes: u64,
}

/// A batch that is in the log, or on its way there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// Its last entry; 0 while the log has not acknowledged it.
    pub last: u64,
    /// Including those of an incomplete batch before it.
    pub bytes: u64,
    /// Number of its live records.
    live: usize,
    /// The keys of all records in it, live or not.
    keys: Vec<Key>,
}

/// Extents without live records at the front of the log. They stay without: a record is in the batch written last.
#[derive(Clone, Copy, Debug, Default)]
struct Idle {
    /// The batch behind them.
    next: u64,
    /// The last entry of them; 0 if there is none.
    last: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    exchanges: BTreeMap<Arc<str>, Counting<Record>>,
    queues: BTreeMap<QueueId, Counting<(Arc<str>, Record)>>,
    /// With their order.
    bindings: HashMap<Arc<Binding>, Counting<u64>>,
    messages: BTreeMap<(QueueId, i64), Counting<StoredMessage>>,
    extents: BTreeMap<u64, Extent>,
    /// The front of the log without live records, as far as [`Live::idle_front`] has found it.
    idle: Idle,
    /// The number of keys in the extents.
    keys: usize,
    /// Approximate octets of the live records.
    bytes: u64,
    /// Octets of the entries in the log.
    log_bytes: u64,
}

/// Approximate octets of a record in the log, besides a message's own.
const RECORD_BYTES: u64 = 40;

/// Memory of a live record besides its message, including its place in the log.
const COUNTING_MEMORY_BYTES: usize = 160;
const KEY_MEMORY_BYTES: usize = size_of::<Key>();

impl Live {
    /// Begins a batch: the records from now on are in it.
    pub(crate) fn begin(&mut self, batch: u64) {
        self.extents.entry(batch).or_default();
    }

    /// Records that a batch is in the log.
    pub(crate) fn end(&mut self, batch: u64, last: u64, bytes: u64) {
        self.log_bytes += bytes;
        let extent = self.extents.entry(batch).or_default();
        extent.last = last;
        extent.bytes = bytes;
    }

    /// Adds an entry without a batch to the last batch in the log.
    pub(crate) fn extend(&mut self, last: u64, bytes: u64) {
        let ended = self.extents.values_mut().rev().find(|of| of.last > 0);
        if let Some(extent) = ended {
            self.idle = Idle::default();
            self.log_bytes += bytes;
            extent.last = last;
            extent.bytes += bytes;
        }
    }

    /// Takes a record of the current batch; of a deleted queue with its name, if that is known otherwise.
    pub(crate) fn take(&mut self, batch: u64, record: &Record, name: Option<&Arc<str>>) {
        match record {
            Record::ExchangeDeclared { name, .. } => {
                let key = Key::Exchange(Arc::clone(name));
                let counting = self.count(batch, record.clone(), 0, key);
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
                let counting = self.count(batch, kept, 0, Key::Queue(*id));
                let before = self.queues.insert(*id, counting);
                self.forget_some(before);
            }
            Record::QueueDeleted { id } => self.delete_queue(*id, name),
            Record::Bound { .. } => self.bind(batch, record),
            Record::Unbound { .. } => {
                let gone = binding(record).and_then(|binding| self.bindings.remove(&binding));
                self.forget_some(gone);
            }
            Record::Enqueued {
                queue,
                place,
                message,
            } => {
                let bytes = message.content.memory_bytes() as u64;
                let key = Key::Message(*queue, *place);
                let counting = self.count(batch, message.clone(), bytes, key);
                let before = self.messages.insert((*queue, *place), counting);
                self.forget_some(before);
            }
            Record::Dequeued { queue, place } => {
                let before = self.messages.remove(&(*queue, *place));
                self.forget_some(before);
            }
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => {
                if let Some(message) = self.messages.get_mut(&(*queue, *place)) {
                    message.record.deliveries = *deliveries;
                }
            }
            Record::Purged { queue } => self.purge(*queue),
            // Only an owner's last entry has these.
            Record::Rested { .. } => {}
            // A replicated vhost keeps its messages in memory.
            Record::Cleared { .. } | Record::Kept(_) => {}
            // It is created and deleted by its nodes' configurations.
            Record::VhostCreated | Record::VhostDeleted => {}
        }
    }

    /// Removes extents without live records from the front, up to `last`; returns the entry up to which the log can be
    /// purged, and the octets that this frees.
    /// Called for each append, so that what has been found before is not looked at again.
    pub(crate) fn idle_front(&mut self, last: u64) -> Option<(u64, u64)> {
        for (batch, extent) in self.extents.range(self.idle.next..) {
            if extent.live > 0 || !(1..=last).contains(&extent.last) {
                break;
            }
            self.idle.next = batch + 1;
            self.idle.last = extent.last;
            self.idle.bytes += extent.bytes;
        }
        let Idle { last, bytes, .. } = self.idle;
        (last > 0).then_some((last, bytes))
    }

    /// Records a purge up to and including an entry.
    pub(crate) fn purged(&mut self, last: u64) {
        self.idle = Idle::default();
        while let Some(first) = self.extents.first_entry()
            && (1..=last).contains(&first.get().last)
            && first.get().live == 0
        {
            self.log_bytes = self.log_bytes.saturating_sub(first.remove().bytes);
        }
    }

    /// The oldest live records, about `bytes_max` octets of them, to be written again: of batches up to and including
    /// `last`.
    pub(crate) fn oldest(&self, bytes_max: u64, last: u64) -> Vec<Record> {
        let mut records = Vec::new();
        let mut bytes = 0;
        for (batch, extent) in self.extents.range(self.idle.next..) {
            if !(1..=last).contains(&extent.last) || bytes >= bytes_max {
                break;
            }
            for key in extent.keys.iter().filter(|_| extent.live > 0) {
                let Some((record, of)) = self.find(key, *batch) else {
                    continue;
                };
                bytes += of;
                records.push(record);
                if bytes >= bytes_max {
                    break;
                }
            }
        }
        records
    }

    /// All live records, in an order that a vhost can restore: exchanges and queues before their bindings, queues
    /// before their messages, and messages in their order.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let exchanges = self.exchanges.values();
        let queues = self.queues.values();
        let messages = self.messages.iter();
        exchanges
            .map(|known| known.record.clone())
            .chain(queues.map(|known| known.record.1.clone()))
            .chain(
                self.bindings
                    .iter()
                    .map(|(binding, known)| binding.record(known.record)),
            )
            .chain(messages.map(|((queue, place), known)| enqueued(*queue, *place, &known.record)))
    }

    pub(crate) fn queue_name(&self, id: QueueId) -> Option<Arc<str>> {
        self.queues
            .get(&id)
            .map(|queue| Arc::clone(&queue.record.0))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Bytes in memory besides the messages, which a vhost shares.
    pub(crate) fn memory_bytes(&self) -> usize {
        let live = self.messages.len() + self.bindings.len() + self.queues.len();
        live * COUNTING_MEMORY_BYTES + self.keys * KEY_MEMORY_BYTES
    }

    fn count<R>(&mut self, batch: u64, record: R, bytes: u64, key: Key) -> Counting<R> {
        let bytes = bytes + RECORD_BYTES;
        self.bytes += bytes;
        let extent = self.extents.entry(batch).or_default();
        extent.live += 1;
        extent.keys.push(key);
        self.keys += 1;
        Counting {
            record,
            batch,
            bytes,
        }
    }

    fn forget_some<R>(&mut self, counting: Option<Counting<R>>) {
        if let Some(Counting { batch, bytes, .. }) = counting {
            self.forget(batch, bytes);
        }
    }

    fn forget(&mut self, batch: u64, bytes: u64) {
        self.bytes -= bytes;
        if let Some(extent) = self.extents.get_mut(&batch) {
            extent.live -= 1;
            if extent.live == 0 {
                self.keys -= std::mem::take(&mut extent.keys).len();
            }
        }
    }

    fn bind(&mut self, batch: u64, record: &Record) {
        if let Some(binding) = binding(record)
            && let Record::Bound { order, .. } = *record
        {
            let binding = Arc::new(binding);
            let counting = self.count(batch, order, 0, Key::Binding(Arc::clone(&binding)));
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
        let of_queue = (queue, i64::MIN)..=(queue, i64::MAX);
        let gone: Vec<_> = self.messages.extract_if(of_queue, |_, _| true).collect();
        for (_, counting) in gone {
            self.forget(counting.batch, counting.bytes);
        }
    }

    fn forget_bindings(&mut self, is_gone: impl Fn(&Binding) -> bool) {
        let gone: Vec<_> = self
            .bindings
            .extract_if(|binding, _| is_gone(binding))
            .collect();
        for (_, counting) in gone {
            self.forget(counting.batch, counting.bytes);
        }
    }

    /// A live record, if that batch is the last one with it.
    fn find(&self, key: &Key, batch: u64) -> Option<(Record, u64)> {
        let (record, of, bytes) = match key {
            Key::Exchange(name) => {
                let known = self.exchanges.get(name)?;
                (known.record.clone(), known.batch, known.bytes)
            }
            Key::Queue(id) => {
                let known = self.queues.get(id)?;
                (known.record.1.clone(), known.batch, known.bytes)
            }
            Key::Binding(binding) => {
                let known = self.bindings.get(binding)?;
                (binding.record(known.record), known.batch, known.bytes)
            }
            Key::Message(queue, place) => {
                let known = self.messages.get(&(*queue, *place))?;
                let record = enqueued(*queue, *place, &known.record);
                (record, known.batch, known.bytes)
            }
        };
        (of == batch).then_some((record, bytes))
    }
}

impl Binding {
    fn record(&self, order: u64) -> Record {
        Record::Bound {
            source: Arc::clone(&self.source),
            destination: self.destination.clone(),
            routing_key: Arc::clone(&self.routing_key),
            arguments: self.arguments.clone(),
            order,
        }
    }
}

fn binding(record: &Record) -> Option<Binding> {
    let (Record::Bound {
        source,
        destination,
        routing_key,
        arguments,
        ..
    }
    | Record::Unbound {
        source,
        destination,
        routing_key,
        arguments,
    }) = record
    else {
        return None;
    };
    Some(Binding {
        source: Arc::clone(source),
        destination: destination.clone(),
        routing_key: Arc::clone(routing_key),
        arguments: arguments.clone(),
    })
}

fn enqueued(queue: QueueId, place: i64, message: &StoredMessage) -> Record {
    Record::Enqueued {
        queue,
        place,
        message: message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of the extents without live records at the front, looked at anew.
    fn idle(live: &Live, last: u64) -> Option<(u64, u64)> {
        let extents = live.extents.values();
        let idle = extents.take_while(|of| of.live == 0 && (1..=last).contains(&of.last));
        idle.fold(None, |sum, of| {
            Some((of.last, sum.map_or(0, |(_, bytes)| bytes) + of.bytes))
        })
    }

    #[test]
    fn the_idle_front_and_the_keys_are_counted_along() {
        let mut live = Live::default();
        let (mut chance, mut met) = (1_u64, [0; 3]);
        let mut random = |count: u64| {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (chance >> 33) % count
        };
        for batch in 1..2000_u64 {
            live.begin(batch);
            for _ in 0..random(4) {
                let (queue, place) = (QueueId(random(2)), random(8).cast_signed());
                live.take(batch, &Record::Dequeued { queue, place }, None);
            }
            if random(3) == 0 {
                let (queue, place) = (QueueId(random(2)), random(8).cast_signed());
                let exchange = Record::ExchangeDeclared {
                    name: format!("{queue:?} {place}").into(),
                    kind: "direct".into(),
                    auto_delete: false,
                    internal: false,
                    arguments: TableBuf::new(),
                };
                live.take(batch, &exchange, None);
                if random(2) == 0 {
                    let name = format!("{queue:?} {}", random(8)).into();
                    live.take(batch, &Record::ExchangeDeleted { name }, None);
                }
            }
            live.end(batch, batch, 10);
            let last = batch - random(3).min(batch);
            let expected = idle(&live, last);
            let found = live.idle_front(last);
            // Less of the log may be asked for than before: what was idle stays so.
            assert!(found >= expected, "{found:?} {expected:?}");
            assert!(found <= idle(&live, batch));
            met[0] += u64::from(found.is_some());
            match random(20) {
                0 => {
                    live.extend(batch, 5);
                    met[1] += 1;
                }
                1 => {
                    if let Some((to, _)) = found {
                        live.purged(to);
                        met[2] += 1;
                    }
                }
                _ => {}
            }
            let keys: usize = live.extents.values().map(|of| of.keys.len()).sum();
            assert_eq!(live.keys, keys);
        }
        assert!(met.iter().all(|times| *times > 20), "{met:?}");
    }
}
