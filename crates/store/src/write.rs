//! A batch as the records of one commit.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crosstie_queues::{MessageContent, Record, StoredMessage};

use crate::Batch;
use crate::names::Names;
use crate::segments::draft::Draft;
use crate::segments::entity::{self, Entity};
use crate::segments::message::{self, SHARED_BYTES_MIN};
use crate::segments::record::{ENTITIES, QueueKey, RESTED, record_bytes};
use crate::segments::state::State;

/// Writes records into a draft.
pub(crate) struct Writer<'w> {
    draft: &'w mut Draft,
    state: &'w State,
    names: &'w mut Names,
    /// Number of messages of the commit that share a long content, and its offset once it has one; by its address, which is
    /// unique while the batch exists.
    shared: HashMap<*const MessageContent, Shared>,
}

#[derive(Default)]
struct Shared {
    messages: usize,
    offset: Option<u32>,
}

/// At most the bytes that a batch takes, but for the bindings that go with a queue or an exchange.
pub(crate) fn bytes_max(batch: &Batch) -> u64 {
    let mut bytes = 0;
    let mut shared = HashSet::new();
    for (vhost, record) in batch.records() {
        let payload = match record {
            Record::Enqueued { message, .. } => {
                let content = &message.content;
                let is_long = content.body().len() >= SHARED_BYTES_MIN;
                // It is written once.
                match is_long && !shared.insert(Arc::as_ptr(content)) {
                    true => 32,
                    false => message::bytes_max(message),
                }
            }
            Record::Dequeued { .. } => 64,
            Record::Delivered { .. }
            | Record::Purged { .. }
            | Record::Cleared { .. }
            | Record::Rested { .. } => 32,
            Record::Kept(_) => 0,
            Record::Setting { key, value } => {
                let value_bytes = value.as_ref().map_or(0, |value| value.len());
                1024 + 2 * vhost.len() + key.len() + value_bytes
            }
            Record::VhostCreated => 1024 + 2 * vhost.len(),
            // What the store has of the vhost decides.
            Record::VhostDeleted => 0,
            Record::ExchangeDeclared { arguments, .. }
            | Record::QueueDeclared { arguments, .. }
            | Record::Bound { arguments, .. } => {
                1024 + 2 * vhost.len() + arguments.as_table().bytes().len()
            }
            Record::ExchangeDeleted { .. }
            | Record::QueueDeleted { .. }
            | Record::Unbound { .. } => 256,
        };
        bytes += record_bytes(payload);
    }
    bytes
}

/// At most the bytes of so many records that remove something, with the places of declarations.
pub(crate) fn deletion_bytes_max(records: usize, places: usize) -> u64 {
    records as u64 * record_bytes(32) + 32 * places as u64
}

/// Whether a batch adds something, and so needs space that it does not give back.
pub(crate) fn is_adding(batch: &Batch) -> bool {
    let adds = |record: &Record| !record.is_departure() && !record.is_delivery();
    batch.records().any(|(_, record)| adds(record))
}

impl<'w> Writer<'w> {
    pub(crate) fn new(
        draft: &'w mut Draft,
        state: &'w State,
        names: &'w mut Names,
        batch: &Batch,
    ) -> Self {
        let mut shared: HashMap<_, Shared> = HashMap::new();
        for (_, record) in batch.records() {
            if let Record::Enqueued { message, .. } = record
                && message.content.body().len() >= SHARED_BYTES_MIN
            {
                let content = Arc::as_ptr(&message.content);
                shared.entry(content).or_default().messages += 1;
            }
        }
        shared.retain(|_, shared| shared.messages > 1);
        Self {
            draft,
            state,
            names,
            shared,
        }
    }

    /// The number of a vhost, which is assigned with its first record.
    pub(crate) fn vhost(&mut self, name: &Arc<str>) -> u16 {
        let place = self.draft.end_sequence() as i64;
        match self.names.vhost(name, place, self.state) {
            Ok(number) => number,
            Err(number) => {
                self.draft.store(ENTITIES, place, 0, |out| {
                    entity::encode_vhost(number, name, out);
                    0
                });
                number
            }
        }
    }

    /// Removes a vhost with all that it has. Nothing happens if it is not there.
    pub(crate) fn delete_vhost(&mut self, name: &Arc<str>) {
        let Some(number) = self.names.find_vhost(name) else {
            return;
        };
        let stored = self.state.queues.iter();
        let mut queues: BTreeSet<QueueKey> = stored
            .filter(|(key, queue)| key.vhost == number && queue.count > 0)
            .map(|(key, _)| *key)
            .collect();
        queues.extend(self.draft.queues_of(number));
        for queue in queues {
            self.draft.purge(queue);
        }
        let gone = self.names.delete_vhost(number, name);
        for (is_rested, place) in gone {
            let queue = if is_rested { RESTED } else { ENTITIES };
            self.draft.remove(self.state, queue, place);
        }
    }

    pub(crate) fn write(&mut self, vhost: u16, record: &Record) {
        let key = |queue: &crosstie_queues::QueueId| QueueKey {
            vhost,
            queue: queue.0,
        };
        match record {
            Record::Enqueued {
                queue,
                place,
                message,
            } => self.enqueue(key(queue), *place, message),
            Record::Dequeued { queue, place } => {
                self.draft.remove(self.state, key(queue), *place);
            }
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => self
                .draft
                .deliver(self.state, key(queue), *place, *deliveries),
            Record::Purged { queue } => self.draft.purge(key(queue)),
            Record::Cleared { queue, from, to } => self.draft.clear(key(queue), (*from, *to)),
            // A vhost makes none.
            Record::Kept(_) => {}
            // It has no number any more.
            Record::VhostDeleted => {}
            Record::VhostCreated => {
                if !self.names.has_binding(vhost, record) {
                    self.declare(ENTITIES, vhost, record);
                }
            }
            Record::ExchangeDeclared { .. } | Record::QueueDeclared { .. } => {
                self.declare(ENTITIES, vhost, record);
            }
            Record::Bound { order, .. } => {
                if *order != 0 || !self.names.has_binding(vhost, record) {
                    self.declare(ENTITIES, vhost, record);
                }
            }
            Record::Rested { .. } => self.declare(RESTED, vhost, record),
            Record::ExchangeDeleted { name } => {
                let places = self.names.delete_exchange(vhost, name);
                self.remove_entities(places);
            }
            Record::QueueDeleted { id } => {
                self.draft.purge(key(id));
                let places = self.names.delete_queue(key(id));
                self.remove_entities(places);
            }
            Record::Setting { value: Some(_), .. } => self.declare(ENTITIES, vhost, record),
            Record::Unbound { .. } | Record::Setting { value: None, .. } => {
                let place = self.names.unbind(vhost, record);
                self.remove_entities(place);
            }
        }
    }

    /// Writes a declaration that the names have already, in place of one that is lost.
    pub(crate) fn declare_anew(&mut self, entity: &Entity) {
        match entity {
            Entity::Vhost { number, name } => {
                let place = self.draft.end_sequence() as i64;
                self.draft.store(ENTITIES, place, 0, |out| {
                    entity::encode_vhost(*number, name, out);
                    0
                });
            }
            Entity::Declared { vhost, record } => self.declare(ENTITIES, *vhost, record),
            // A setting that is lost is not known.
            Entity::Setting { .. } => {}
        }
    }

    fn declare(&mut self, queue: QueueKey, vhost: u16, record: &Record) {
        let place = self.draft.end_sequence() as i64;
        if let Some(former) = self.names.declare(vhost, record, place) {
            self.draft.remove(self.state, queue, former);
        }
        self.draft.store(queue, place, 0, |out| {
            entity::encode(vhost, record, out);
            0
        });
    }

    fn remove_entities(&mut self, places: impl IntoIterator<Item = i64>) {
        for place in places {
            self.draft.remove(self.state, ENTITIES, place);
        }
    }

    fn enqueue(&mut self, queue: QueueKey, place: i64, message: &StoredMessage) {
        let shared = self.shared.get_mut(&Arc::as_ptr(&message.content));
        let shared_at = shared.as_ref().and_then(|shared| shared.offset);
        let offset = self.draft.store(queue, place, 0, |out| {
            message::encode(message, shared_at, out)
        });
        if let Some(shared) = shared
            && shared.offset.is_none()
        {
            shared.offset = Some(offset);
        }
    }
}
