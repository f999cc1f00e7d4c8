//! Records to keep, and a store in a directory of its own.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses some of it"
)]

use std::path::PathBuf;
use std::sync::Arc;

use crosstie_amqp::{Properties, TableBuf, Value};
use crosstie_queues::{
    Destination, MessageContent, Position, QueueId, Record, StoredMessage, Time,
};
use crosstie_store::{Batch, Restored, Store, StoreConfig, StoreError};

pub fn config(directory: &tempfile::TempDir) -> StoreConfig {
    StoreConfig {
        path: directory.path().join("crosstie.store"),
        bytes_max: None,
    }
}

pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

pub fn path(directory: &tempfile::TempDir) -> PathBuf {
    config(directory).path
}

/// What a store has kept, by vhost.
pub fn kept(directory: &tempfile::TempDir) -> Vec<(String, Record)> {
    let (_, restored) = Store::open(config(directory)).expect("a store");
    restored
        .into_iter()
        .map(|Restored { vhost, record }| (vhost.to_string(), record))
        .collect()
}

/// Commits records of vhost `/` in one batch.
pub fn commit(store: &mut Store, records: Vec<Record>) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    batch.push(&"/".into(), records, Position(1));
    batch.cancel();
    store.commit(&batch)
}

pub fn of_slash(records: &[Record]) -> Vec<(String, Record)> {
    let records = records.iter();
    records
        .map(|record| ("/".to_owned(), record.clone()))
        .collect()
}

pub fn arguments() -> TableBuf {
    TableBuf::new()
        .with("x-expires", Value::I32(1000))
        .with("x-dead-letter-exchange", Value::LongString(b"dead"))
}

pub fn exchange(name: &str) -> Record {
    Record::ExchangeDeclared {
        name: name.into(),
        kind: "topic".into(),
        auto_delete: true,
        internal: false,
        arguments: TableBuf::new().with("alternate-exchange", Value::LongString(b"other")),
    }
}

pub fn queue(id: u64, name: &str) -> Record {
    Record::QueueDeclared {
        id: QueueId(id),
        name: name.into(),
        auto_delete: false,
        arguments: arguments(),
    }
}

pub fn bound(source: &str, destination: Destination) -> Record {
    Record::Bound {
        source: source.into(),
        destination,
        routing_key: "a.#".into(),
        arguments: TableBuf::new(),
        order: 0,
    }
}

pub fn unbound(source: &str, destination: Destination) -> Record {
    Record::Unbound {
        source: source.into(),
        destination,
        routing_key: "a.#".into(),
        arguments: TableBuf::new(),
    }
}

pub fn content(body: &[u8]) -> Arc<MessageContent> {
    let properties = Properties::EMPTY.bytes();
    Arc::new(MessageContent::new("amq.topic", "a.b", properties, body))
}

pub fn enqueued_content(id: u64, place: i64, content: &Arc<MessageContent>) -> Record {
    Record::Enqueued {
        queue: QueueId(id),
        place,
        message: StoredMessage {
            content: Arc::clone(content),
            expires_at: (place % 2 == 0).then_some(Time(1_700_000_000_000)),
            deliveries: 0,
        },
    }
}

pub fn enqueued(id: u64, place: i64) -> Record {
    enqueued_content(id, place, &content(format!("message {place}").as_bytes()))
}

pub fn purged(id: u64) -> Record {
    Record::Purged { queue: QueueId(id) }
}

pub fn dequeued(id: u64, place: i64) -> Record {
    Record::Dequeued {
        queue: QueueId(id),
        place,
    }
}

pub fn returned(id: u64, place: i64, deliveries: u32) -> Record {
    Record::Delivered {
        queue: QueueId(id),
        place,
        deliveries,
    }
}

pub fn rested(id: u64, fresh_from: i64) -> Record {
    Record::Rested {
        queue: QueueId(id),
        fresh_from,
    }
}
