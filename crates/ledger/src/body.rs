//! Records as octets. Content that several records of a batch share is written once.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_amqp::Properties;
use crosstie_queues::{Destination, MessageContent, QueueId, Record, StoredMessage, Time};

use crate::broken::Broken;
use crate::reader::{Reader, put, put_table};

/// A record's first octet.
#[derive(Clone, Copy)]
enum Tag {
    ExchangeDeclared = 1,
    ExchangeDeleted = 2,
    QueueDeclared = 3,
    QueueDeleted = 4,
    Bound = 5,
    Unbound = 6,
    Enqueued = 7,
    Dequeued = 8,
    Delivered = 9,
    Purged = 10,
    BoundInOrder = 11,
    Cleared = 12,
    Setting = 13,
}

/// A message whose content is earlier in its batch, by its number there.
const SHARED: u8 = 1;
const OWN: u8 = 0;

/// A record, and the name of a queue that it deletes: the queue's declaration may have been purged from the log.
pub type Named = (Record, Option<Arc<str>>);

/// Encodes records. `name` knows the names of the queues that they delete.
pub fn encode<'r>(
    records: impl Iterator<Item = &'r Record>,
    name: &dyn Fn(QueueId) -> Option<Arc<str>>,
) -> Vec<u8> {
    let mut contents = HashMap::new();
    let mut out = Vec::new();
    for record in records {
        write(record, name, &mut contents, &mut out);
    }
    out
}

/// The records of a batch.
pub fn decode(body: &[u8]) -> Result<Vec<Named>, Broken> {
    let mut reader = Reader(body);
    let mut contents = Vec::new();
    let mut records = Vec::new();
    while !reader.is_empty() {
        records.push(read(&mut reader, &mut contents)?);
    }
    Ok(records)
}

fn write(
    record: &Record,
    name_of: &dyn Fn(QueueId) -> Option<Arc<str>>,
    contents: &mut HashMap<*const MessageContent, u32>,
    out: &mut Vec<u8>,
) {
    match record {
        Record::ExchangeDeclared {
            name,
            kind,
            auto_delete,
            internal,
            arguments,
        } => {
            out.push(Tag::ExchangeDeclared as u8);
            put(name.as_bytes(), out);
            put(kind.as_bytes(), out);
            out.extend_from_slice(&[u8::from(*auto_delete), u8::from(*internal)]);
            put_table(arguments, out);
        }
        Record::ExchangeDeleted { name } => {
            out.push(Tag::ExchangeDeleted as u8);
            put(name.as_bytes(), out);
        }
        Record::QueueDeclared {
            id,
            name,
            auto_delete,
            arguments,
        } => {
            put_queue(Tag::QueueDeclared, *id, out);
            put(name.as_bytes(), out);
            out.push(u8::from(*auto_delete));
            put_table(arguments, out);
        }
        Record::QueueDeleted { id } => {
            put_queue(Tag::QueueDeleted, *id, out);
            put(name_of(*id).unwrap_or_default().as_bytes(), out);
        }
        Record::Bound { .. } | Record::Unbound { .. } => write_binding(record, out),
        Record::Enqueued { .. }
        | Record::Dequeued { .. }
        | Record::Delivered { .. }
        | Record::Cleared { .. }
        | Record::Purged { .. } => write_of_message(record, contents, out),
        // Only an owner's last entry has these.
        Record::Rested { .. } => {}
        // A log hands over all messages.
        Record::Kept(_) => {}
        Record::Setting { key, value } => {
            out.push(Tag::Setting as u8);
            put(key.as_bytes(), out);
            out.push(u8::from(value.is_some()));
            put(value.as_deref().unwrap_or_default().as_bytes(), out);
        }
        // It is created and deleted by its nodes' configurations.
        Record::VhostCreated | Record::VhostDeleted => {}
    }
}

/// Encodes a record about a binding.
fn write_binding(record: &Record, out: &mut Vec<u8>) {
    let (tag, binding, arguments, order) = match record {
        Record::Bound {
            source,
            destination,
            routing_key,
            arguments,
            order,
        } => {
            let order = (*order > 0).then_some(*order);
            let tag = match order {
                None => Tag::Bound,
                Some(_) => Tag::BoundInOrder,
            };
            (tag, (source, destination, routing_key), arguments, order)
        }
        Record::Unbound {
            source,
            destination,
            routing_key,
            arguments,
        } => {
            let binding = (source, destination, routing_key);
            (Tag::Unbound, binding, arguments, None)
        }
        _ => return,
    };
    let (source, destination, routing_key) = binding;
    out.push(tag as u8);
    put_binding((source, destination, routing_key), out);
    put_table(arguments, out);
    if let Some(order) = order {
        out.extend_from_slice(&order.to_be_bytes());
    }
}

/// Encodes a record about a queue's messages.
fn write_of_message(
    record: &Record,
    contents: &mut HashMap<*const MessageContent, u32>,
    out: &mut Vec<u8>,
) {
    match record {
        Record::Enqueued {
            queue,
            place,
            message,
        } => {
            put_queue(Tag::Enqueued, *queue, out);
            out.extend_from_slice(&place.to_be_bytes());
            put_message(message, contents, out);
        }
        Record::Dequeued { queue, place } => {
            put_queue(Tag::Dequeued, *queue, out);
            out.extend_from_slice(&place.to_be_bytes());
        }
        Record::Delivered {
            queue,
            place,
            deliveries,
        } => {
            put_queue(Tag::Delivered, *queue, out);
            out.extend_from_slice(&place.to_be_bytes());
            out.extend_from_slice(&deliveries.to_be_bytes());
        }
        Record::Purged { queue } => put_queue(Tag::Purged, *queue, out),
        Record::Cleared { queue, from, to } => {
            put_queue(Tag::Cleared, *queue, out);
            out.extend_from_slice(&from.to_be_bytes());
            out.extend_from_slice(&to.to_be_bytes());
        }
        _ => {}
    }
}

fn put_queue(tag: Tag, queue: QueueId, out: &mut Vec<u8>) {
    out.push(tag as u8);
    out.extend_from_slice(&queue.0.to_be_bytes());
}

fn put_binding((source, destination, routing_key): (&str, &Destination, &str), out: &mut Vec<u8>) {
    let (is_queue, name) = match destination {
        Destination::Exchange(name) => (false, name),
        Destination::Queue(name) => (true, name),
    };
    put(source.as_bytes(), out);
    out.push(u8::from(is_queue));
    put(name.as_bytes(), out);
    put(routing_key.as_bytes(), out);
}

fn put_message(
    message: &StoredMessage,
    contents: &mut HashMap<*const MessageContent, u32>,
    out: &mut Vec<u8>,
) {
    // The latest possible time stands for no expiry.
    let expires_at = message.expires_at.map_or(u64::MAX, |time| time.0);
    out.extend_from_slice(&expires_at.to_be_bytes());
    out.extend_from_slice(&message.deliveries.to_be_bytes());
    let content = &message.content;
    let number = contents.len() as u32;
    if let Some(known) = contents.get(&Arc::as_ptr(content)) {
        out.push(SHARED);
        out.extend_from_slice(&known.to_be_bytes());
        return;
    }
    contents.insert(Arc::as_ptr(content), number);
    out.push(OWN);
    put(content.exchange().as_bytes(), out);
    put(content.routing_key().as_bytes(), out);
    put(content.property_bytes(), out);
    put(content.body(), out);
}

fn read(reader: &mut Reader<'_>, contents: &mut Vec<Arc<MessageContent>>) -> Result<Named, Broken> {
    const TAGS: [Tag; 13] = [
        Tag::ExchangeDeclared,
        Tag::ExchangeDeleted,
        Tag::QueueDeclared,
        Tag::QueueDeleted,
        Tag::Bound,
        Tag::Unbound,
        Tag::Enqueued,
        Tag::Dequeued,
        Tag::Delivered,
        Tag::Purged,
        Tag::BoundInOrder,
        Tag::Cleared,
        Tag::Setting,
    ];
    let octet = usize::from(reader.octet()?);
    let tag = octet.checked_sub(1).and_then(|place| TAGS.get(place));
    let tag = tag.ok_or(Broken::Body)?;
    let record = match tag {
        Tag::ExchangeDeclared => Record::ExchangeDeclared {
            name: reader.shared_text()?,
            kind: reader.shared_text()?,
            auto_delete: reader.flag()?,
            internal: reader.flag()?,
            arguments: reader.table()?,
        },
        Tag::ExchangeDeleted => Record::ExchangeDeleted {
            name: reader.shared_text()?,
        },
        Tag::QueueDeclared => Record::QueueDeclared {
            id: queue(reader)?,
            name: reader.shared_text()?,
            auto_delete: reader.flag()?,
            arguments: reader.table()?,
        },
        Tag::QueueDeleted => {
            let id = queue(reader)?;
            let name = reader.shared_text()?;
            return Ok((Record::QueueDeleted { id }, Some(name)));
        }
        Tag::Bound | Tag::BoundInOrder => {
            let (source, destination, routing_key) = binding(reader)?;
            Record::Bound {
                source,
                destination,
                routing_key,
                arguments: reader.table()?,
                order: match tag {
                    Tag::BoundInOrder => reader.long()?,
                    _ => 0,
                },
            }
        }
        Tag::Unbound => {
            let (source, destination, routing_key) = binding(reader)?;
            Record::Unbound {
                source,
                destination,
                routing_key,
                arguments: reader.table()?,
            }
        }
        Tag::Setting => setting(reader)?,
        Tag::Enqueued | Tag::Dequeued | Tag::Delivered | Tag::Purged | Tag::Cleared => {
            read_of_message(*tag, reader, contents)?
        }
    };
    Ok((record, None))
}

fn setting(reader: &mut Reader<'_>) -> Result<Record, Broken> {
    let key = reader.shared_text()?;
    let is_set = reader.flag()?;
    let value = reader.shared_text()?;
    let value = is_set.then_some(value);
    Ok(Record::Setting { key, value })
}

fn read_of_message(
    tag: Tag,
    reader: &mut Reader<'_>,
    contents: &mut Vec<Arc<MessageContent>>,
) -> Result<Record, Broken> {
    Ok(match tag {
        Tag::Enqueued => Record::Enqueued {
            queue: queue(reader)?,
            place: place(reader)?,
            message: message(reader, contents)?,
        },
        Tag::Dequeued => Record::Dequeued {
            queue: queue(reader)?,
            place: place(reader)?,
        },
        Tag::Delivered => Record::Delivered {
            queue: queue(reader)?,
            place: place(reader)?,
            deliveries: reader.short()?,
        },
        Tag::Cleared => Record::Cleared {
            queue: queue(reader)?,
            from: place(reader)?,
            to: place(reader)?,
        },
        _ => Record::Purged {
            queue: queue(reader)?,
        },
    })
}

fn queue(reader: &mut Reader<'_>) -> Result<QueueId, Broken> {
    reader.long().map(QueueId)
}

fn place(reader: &mut Reader<'_>) -> Result<i64, Broken> {
    reader.long().map(u64::cast_signed)
}

fn binding(reader: &mut Reader<'_>) -> Result<(Arc<str>, Destination, Arc<str>), Broken> {
    let source = reader.shared_text()?;
    let is_queue = reader.flag()?;
    let name = reader.shared_text()?;
    let destination = match is_queue {
        true => Destination::Queue(name),
        false => Destination::Exchange(name),
    };
    Ok((source, destination, reader.shared_text()?))
}

fn message(
    reader: &mut Reader<'_>,
    contents: &mut Vec<Arc<MessageContent>>,
) -> Result<StoredMessage, Broken> {
    let expires_at = Some(reader.long()?).filter(|time| *time != u64::MAX);
    let deliveries = reader.short()?;
    let content = match reader.octet()? {
        SHARED => {
            let number = reader.short()?;
            Arc::clone(contents.get(number as usize).ok_or(Broken::Body)?)
        }
        OWN => {
            let (exchange, routing_key) = (reader.text()?, reader.text()?);
            let (properties, body) = (reader.octets()?, reader.octets()?);
            Properties::from_bytes(properties).map_err(|_| Broken::Body)?;
            let content = MessageContent::new(exchange, routing_key, properties, body);
            contents.push(Arc::new(content));
            Arc::clone(contents.last().ok_or(Broken::Body)?)
        }
        _ => return Err(Broken::Body),
    };
    Ok(StoredMessage {
        content,
        expires_at: expires_at.map(Time),
        deliveries,
    })
}
