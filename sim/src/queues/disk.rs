//! A store that keeps committed records, and nothing else: it restores them as a real one does.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crosstie_amqp::TableBuf;
use crosstie_queues::{
    Destination, MessageContent, Page, Paged, QueueId, Record, StoredMessage, Want,
};

/// The contents.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    exchanges: BTreeMap<Arc<str>, Record>,
    queues: BTreeMap<QueueId, (Arc<str>, Record)>,
    /// With their order.
    bindings: Vec<(Binding, u64)>,
    messages: BTreeMap<(QueueId, i64), StoredMessage>,
    /// The place in each queue from which on messages were never delivered, as long as the vhost rests.
    rested: BTreeMap<QueueId, i64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Binding {
    source: Arc<str>,
    destination: Destination,
    routing_key: Arc<str>,
    arguments: TableBuf,
}

impl Disk {
    /// Writes a record. A record that removes something unknown is an error of the vhost.
    pub fn write(&mut self, record: Record) -> Result<(), String> {
        let complaint = format!("there is nothing for {record:?}");
        let is_done = match record {
            Record::ExchangeDeclared { ref name, .. } => {
                self.exchanges.insert(Arc::clone(name), record);
                true
            }
            Record::ExchangeDeleted { name } => self.delete_exchange(&name),
            Record::QueueDeclared { id, ref name, .. } => {
                let name = Arc::clone(name);
                self.queues.insert(id, (name, record)).is_none()
            }
            Record::QueueDeleted { id } => self.delete_queue(id),
            Record::Bound {
                source,
                destination,
                routing_key,
                arguments,
                order,
            } => {
                let binding = Binding {
                    source,
                    destination,
                    routing_key,
                    arguments,
                };
                self.bind(binding, order)
            }
            Record::Unbound {
                source,
                destination,
                routing_key,
                arguments,
            } => {
                self.unbind(&Binding {
                    source,
                    destination,
                    routing_key,
                    arguments,
                });
                true
            }
            Record::Enqueued {
                queue,
                place,
                message,
            } => {
                self.queues.contains_key(&queue)
                    && self.messages.insert((queue, place), message).is_none()
            }
            // A dead letter is removed once it is published; its queue may have been deleted before.
            Record::Dequeued { queue, place } => {
                self.messages.remove(&(queue, place)).is_some() || !self.queues.contains_key(&queue)
            }
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => self.deliver(queue, place, deliveries),
            Record::Rested { queue, fresh_from } => {
                self.rested.insert(queue, fresh_from);
                self.queues.contains_key(&queue)
            }
            Record::Purged { queue } => self.clear(queue, i64::MIN..=i64::MAX),
            Record::Cleared { queue, from, to } => self.clear(queue, from..=to),
            // A store that restores makes the first, and the broker the others.
            _ => false,
        };
        is_done.then_some(()).ok_or(complaint)
    }

    fn clear(&mut self, queue: QueueId, places: RangeInclusive<i64>) -> bool {
        let is_cleared = |(of, place): &(QueueId, i64)| *of == queue && places.contains(place);
        self.messages.retain(|key, _| !is_cleared(key));
        self.queues.contains_key(&queue)
    }

    /// Whether the message was there.
    fn deliver(&mut self, queue: QueueId, place: i64, deliveries: u32) -> bool {
        let message = self.messages.get_mut(&(queue, place));
        message
            .map(|message| message.deliveries = deliveries)
            .is_some()
    }

    fn bind(&mut self, binding: Binding, order: u64) -> bool {
        if self.bindings.iter().all(|(known, _)| *known != binding) {
            self.bindings.push((binding, order));
        }
        true
    }

    /// The binding may have been removed with its exchange or its queue.
    fn unbind(&mut self, gone: &Binding) {
        self.bindings.retain(|(binding, _)| binding != gone);
    }

    /// Whether the exchange was there.
    fn delete_exchange(&mut self, name: &Arc<str>) -> bool {
        let to_it = Destination::Exchange(Arc::clone(name));
        self.bindings
            .retain(|(binding, _)| binding.source != *name && binding.destination != to_it);
        self.exchanges.remove(name).is_some()
    }

    /// Whether the queue was there.
    fn delete_queue(&mut self, id: QueueId) -> bool {
        self.messages.retain(|(queue, _), _| *queue != id);
        let Some((name, _)) = self.queues.remove(&id) else {
            return false;
        };
        let to_it = Destination::Queue(name);
        self.bindings
            .retain(|(binding, _)| binding.destination != to_it);
        true
    }

    /// The contents, in the order of a restore.
    pub fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.exchanges.values().cloned().collect();
        records.extend(self.queues.values().map(|(_, record)| record.clone()));
        records.extend(self.bindings.iter().map(|(binding, order)| Record::Bound {
            source: Arc::clone(&binding.source),
            destination: binding.destination.clone(),
            routing_key: Arc::clone(&binding.routing_key),
            arguments: binding.arguments.clone(),
            order: *order,
        }));
        let messages = self.messages.iter();
        records.extend(messages.map(|((queue, place), message)| Record::Enqueued {
            queue: *queue,
            place: *place,
            message: read(message),
        }));
        let rested = self.rested.iter();
        records.extend(rested.map(|(queue, fresh_from)| Record::Rested {
            queue: *queue,
            fresh_from: *fresh_from,
        }));
        records
    }

    /// Reads that many messages of a page at most.
    pub fn read(&self, want: &Want, messages_max: usize) -> Page {
        let Some(id) = want.stored else {
            return Page {
                messages: Vec::new(),
                upto: want.to,
            };
        };
        let found = self.messages.range((id, want.from)..=(id, want.to));
        let mut messages: Vec<Paged> = found
            .map(|((_, place), message)| Paged {
                place: *place,
                message: read(message),
                is_spilled: false,
            })
            .collect();
        let is_whole = messages.len() <= messages_max;
        messages.truncate(messages_max);
        let last = messages.last().map_or(want.to, |paged| paged.place);
        Page {
            messages,
            upto: if is_whole { want.to } else { last },
        }
    }

    /// The vhost continues.
    pub fn wake(&mut self) {
        self.rested.clear();
    }
}

/// As a real disk returns it: bytes, without the state in memory of the vhost before.
fn read(message: &StoredMessage) -> StoredMessage {
    let content = &message.content;
    StoredMessage {
        content: Arc::new(MessageContent::new(
            content.exchange(),
            content.routing_key(),
            content.property_bytes(),
            content.body(),
        )),
        ..message.clone()
    }
}
