//! Records to keep, and a store in a directory of its own.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses some of it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_amqp::{Properties, TableBuf, Value};
use crosstie_queues::{
    Destination, MessageContent, Position, QueueId, Record, StoredMessage, Time,
};
use crosstie_store::{Batch, Loaded, Restored, Store, StoreConfig, StoreError};

pub fn config(directory: &tempfile::TempDir) -> StoreConfig {
    StoreConfig::new(directory.path().join("crosstie.store"))
}

/// Queues with more messages than these are not loaded.
pub fn few(messages_max: usize) -> Loaded {
    Loaded {
        messages_max,
        ..Loaded::ALL
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
    Record::queue_declared(QueueId(id), name, arguments())
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
    Record::enqueued(
        QueueId(id),
        place,
        StoredMessage {
            content: Arc::clone(content),
            expires_at: (place % 2 == 0).then_some(Time(1_700_000_000_000)),
            deliveries: 0,
        },
    )
}

pub fn enqueued(id: u64, place: i64) -> Record {
    enqueued_content(id, place, &content(format!("message {place}").as_bytes()))
}

pub fn purged(id: u64) -> Record {
    Record::Purged { queue: QueueId(id) }
}

pub fn dequeued(id: u64, place: i64) -> Record {
    Record::dequeued(QueueId(id), place)
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

/// A store with 2,000 short messages and 10 long ones.
pub fn filled() -> tempfile::TempDir {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let mut records = vec![exchange("x"), queue(1, "q"), queue(2, "r")];
    records.extend((0..2000).map(|place| enqueued(1, place)));
    records.extend((0..10).map(|place| enqueued_content(2, place, &content(&[1; 20_000]))));
    commit(&mut store, records).expect("written");
    directory
}

/// Every file at or under a path, with its bytes.
pub fn snapshot(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let Ok(metadata) = fs::metadata(path) else {
        return Vec::new();
    };
    if !metadata.is_dir() {
        let bytes = match metadata.is_file() {
            true => fs::read(path).expect("a file"),
            false => Vec::new(),
        };
        return vec![(path.to_owned(), bytes)];
    }
    let entries = fs::read_dir(path).expect("a directory");
    let mut files: Vec<_> = entries
        .flat_map(|entry| snapshot(&entry.expect("a name").path()))
        .collect();
    files.sort();
    files
}

/// Copies a store as it is, such as after the end of its process.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for (file, bytes) in snapshot(from) {
        let name = file.file_name().expect("a name");
        fs::write(to.join(name), bytes).expect("copied");
    }
}

/// Bytes of all files of a store that have messages.
pub fn segment_bytes(path: &Path) -> u64 {
    let files = snapshot(path).into_iter();
    let segments = files.filter(|(file, _)| file.extension().is_some_and(|end| end == "segment"));
    // Zeros at the end are there for later messages.
    segments
        .map(|(_, bytes)| bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64)
        .sum()
}
