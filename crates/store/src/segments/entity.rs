//! Vhosts, exchanges, queues and bindings as payloads of records.

use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf};
use crosstie_queues::{Destination, QueueId, Record};

use super::bytes::{Cursor, put_bytes, put_number, put_signed};

/// A declaration that lasts until it is removed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entity {
    /// Its number in the headers of records.
    Vhost { number: u16, name: Arc<str> },
    /// An exchange, a queue, a binding, a queue's place from which on messages were never delivered, or an operator's
    /// creation of the vhost.
    Declared { vhost: u16, record: Record },
    /// A key and a value of the broker's, whose meaning the store does not know.
    Setting { key: Arc<str>, value: Arc<str> },
}

const VHOST: u8 = 0;
const EXCHANGE: u8 = 1;
const QUEUE: u8 = 2;
const BINDING: u8 = 3;
const RESTED: u8 = 4;
const SETTING: u8 = 5;
const CREATED: u8 = 6;
/// A setting of a vhost.
const VHOST_SETTING: u8 = 7;

/// Appends a vhost.
pub(crate) fn encode_vhost(number: u16, name: &str, out: &mut Vec<u8>) {
    out.push(VHOST);
    put_number(out, number.into());
    put_bytes(out, name.as_bytes());
}

/// Appends a setting.
pub(crate) fn encode_setting(key: &str, value: &str, out: &mut Vec<u8>) {
    out.push(SETTING);
    // Where others have their vhost.
    put_number(out, 0);
    put_bytes(out, key.as_bytes());
    put_bytes(out, value.as_bytes());
}

/// Appends a declaration; nothing for any other record.
pub(crate) fn encode(vhost: u16, record: &Record, out: &mut Vec<u8>) {
    let tag = match record {
        Record::ExchangeDeclared { .. } => EXCHANGE,
        Record::QueueDeclared { .. } => QUEUE,
        Record::Bound { .. } => BINDING,
        Record::Rested { .. } => RESTED,
        Record::VhostCreated => CREATED,
        Record::Setting { .. } => VHOST_SETTING,
        _ => return,
    };
    out.push(tag);
    put_number(out, vhost.into());
    match record {
        Record::ExchangeDeclared {
            name,
            kind,
            auto_delete,
            internal,
            arguments,
        } => {
            put_bytes(out, name.as_bytes());
            put_bytes(out, kind.as_bytes());
            out.push(u8::from(*auto_delete) | u8::from(*internal) << 1);
            put_bytes(out, arguments.as_table().bytes());
        }
        Record::QueueDeclared {
            id,
            name,
            auto_delete,
            arguments,
        } => {
            put_number(out, id.0);
            put_bytes(out, name.as_bytes());
            out.push(u8::from(*auto_delete));
            put_bytes(out, arguments.as_table().bytes());
        }
        Record::Bound {
            source,
            destination,
            routing_key,
            arguments,
            order,
        } => {
            let (is_to_queue, name) = match destination {
                Destination::Exchange(name) => (0, name),
                Destination::Queue(name) => (1, name),
            };
            put_bytes(out, source.as_bytes());
            out.push(is_to_queue);
            put_bytes(out, name.as_bytes());
            put_bytes(out, routing_key.as_bytes());
            put_bytes(out, arguments.as_table().bytes());
            put_number(out, *order);
        }
        Record::Rested { queue, fresh_from } => {
            put_number(out, queue.0);
            put_signed(out, *fresh_from);
        }
        Record::Setting { key, value } => {
            put_bytes(out, key.as_bytes());
            put_bytes(out, value.as_deref().unwrap_or_default().as_bytes());
        }
        _ => {}
    }
}

pub(crate) fn decode(payload: &[u8]) -> Option<Entity> {
    let mut cursor = Cursor::new(payload);
    let tag = cursor.byte()?;
    let vhost = u16::try_from(cursor.number()?).ok()?;
    let record = match tag {
        VHOST => {
            let name = cursor.text()?.into();
            let number = vhost;
            return cursor.is_empty().then_some(Entity::Vhost { number, name });
        }
        SETTING => {
            let (key, value) = (cursor.text()?.into(), cursor.text()?.into());
            let is_whole = vhost == 0 && cursor.is_empty();
            return is_whole.then_some(Entity::Setting { key, value });
        }
        EXCHANGE => {
            let (name, kind) = (cursor.text()?.into(), cursor.text()?.into());
            let flags = cursor.byte()?;
            Record::ExchangeDeclared {
                name,
                kind,
                auto_delete: flags & 1 != 0,
                internal: flags & 2 != 0,
                arguments: table(&mut cursor)?,
            }
        }
        QUEUE => Record::QueueDeclared {
            id: QueueId(cursor.number()?),
            name: cursor.text()?.into(),
            auto_delete: cursor.byte()? != 0,
            arguments: table(&mut cursor)?,
        },
        BINDING => {
            let source = cursor.text()?.into();
            let is_to_queue = cursor.byte()? != 0;
            let name = cursor.text()?.into();
            Record::Bound {
                source,
                destination: match is_to_queue {
                    true => Destination::Queue(name),
                    false => Destination::Exchange(name),
                },
                routing_key: cursor.text()?.into(),
                arguments: table(&mut cursor)?,
                order: cursor.number()?,
            }
        }
        RESTED => Record::Rested {
            queue: QueueId(cursor.number()?),
            fresh_from: cursor.signed()?,
        },
        CREATED => Record::VhostCreated,
        VHOST_SETTING => Record::Setting {
            key: cursor.text()?.into(),
            value: Some(cursor.text()?.into()),
        },
        _ => return None,
    };
    cursor
        .is_empty()
        .then_some(Entity::Declared { vhost, record })
}

fn table(cursor: &mut Cursor<'_>) -> Option<TableBuf> {
    let table = Table::from_bytes(cursor.bytes()?);
    table.map(TableBuf::from).ok()
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::Value;

    use super::*;

    #[test]
    fn every_declaration_returns_as_it_was() {
        let arguments = TableBuf::new().with("x-expires", Value::I32(1000));
        let records = [
            Record::ExchangeDeclared {
                name: "x".into(),
                kind: "topic".into(),
                auto_delete: true,
                internal: false,
                arguments: arguments.clone(),
            },
            Record::QueueDeclared {
                id: QueueId(1 << 40),
                name: "q".into(),
                auto_delete: true,
                arguments: arguments.clone(),
            },
            Record::Bound {
                source: "x".into(),
                destination: Destination::Queue("q".into()),
                routing_key: "a.#".into(),
                arguments,
                order: 1 << 40,
            },
            Record::Bound {
                source: "x".into(),
                destination: Destination::Exchange("y".into()),
                routing_key: String::new().into(),
                arguments: TableBuf::new(),
                order: 0,
            },
            Record::Rested {
                queue: QueueId(7),
                fresh_from: -5,
            },
            Record::VhostCreated,
            Record::Setting {
                key: "policy".into(),
                value: Some("{}".into()),
            },
        ];
        for record in records {
            let mut payload = Vec::new();
            encode(300, &record, &mut payload);
            for length in 0..payload.len() {
                assert_eq!(
                    decode(&payload[..length]),
                    None,
                    "{record:?} cut at {length}"
                );
            }
            let vhost = 300;
            assert_eq!(decode(&payload), Some(Entity::Declared { vhost, record }));
        }
        let mut payload = Vec::new();
        encode_vhost(5, "/", &mut payload);
        let name = "/".into();
        assert_eq!(decode(&payload), Some(Entity::Vhost { number: 5, name }));
        let mut payload = Vec::new();
        encode_setting("user", "{}", &mut payload);
        let (key, value) = ("user".into(), "{}".into());
        assert_eq!(decode(&payload), Some(Entity::Setting { key, value }));
        assert_eq!(decode(&payload[..payload.len() - 1]), None);
        assert_eq!(decode(&[9, 0]), None);
    }
}
