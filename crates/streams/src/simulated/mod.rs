//! Streams on a disk that fails, forgets what was not synced, and is damaged.

mod chance;
mod damage;
mod filtered;
mod held;
mod parts;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_amqp::{BasicProperties, TableBuf, Value};
use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{
    MessageContent, StreamAppend, StreamFilter, StreamFrom, StreamLimits, StreamPage, Time,
};

use crate::log::{Damage, Log};
use crate::open::open;
use crate::read::Pages;

const DIRECTORY: &str = "vhost-%2f/1";

/// The value that readers filter by. `None`: the message has none.
fn filter_value(offset: u64) -> Option<&'static str> {
    [None, Some("a"), Some("b")][offset as usize % 3]
}

fn append(offset: u64, at_ms: u64, body: &[u8], limits: StreamLimits) -> StreamAppend {
    let value = filter_value(offset).map(|value| Value::LongString(value.as_bytes()));
    let headers = value.map(|value| TableBuf::new().with("x-stream-filter-value", value));
    let named = BasicProperties {
        headers: headers.as_ref().map(TableBuf::as_table),
        ..BasicProperties::default()
    };
    let mut properties = Vec::new();
    named.write(&mut properties);
    StreamAppend {
        offset,
        at: Time(at_ms),
        limits,
        name: "q".into(),
        content: Arc::new(MessageContent::new("", "q", &properties, body)),
    }
}

/// Opens the stream as a start does.
fn reopen(disk: &SimulatedDisk, limits: StreamLimits) -> (Arc<Log>, Vec<Damage>) {
    let opened = open(disk, DIRECTORY).expect("is opened");
    let log = Log::new(DIRECTORY.to_owned(), limits, opened.table);
    (Arc::new(log), opened.damages)
}

type Found = (BTreeMap<u64, Vec<u8>>, Vec<Damage>);

/// All messages from a place on, by their offsets. Readers with filters get the same, as far as they want it.
fn read_all(disk: &SimulatedDisk, log: &Log, from: StreamFrom, bytes_max: usize) -> Found {
    let end = log.table().end;
    let mut pages = Pages::new(Arc::new(disk.clone()));
    let all = read_pages(from, end, |from, damages| {
        let page = pages.read(log, from, end, bytes_max, damages);
        page.expect("is read")
    });
    for (wanted, is_unfiltered) in [("a", false), ("b", true), ("c", false)] {
        let arguments = TableBuf::new()
            .with("x-stream-filter", Value::LongString(wanted.as_bytes()))
            .with("x-stream-match-unfiltered", Value::Bool(is_unfiltered));
        let filter = StreamFilter::parse(arguments.as_table());
        let filter = filter.expect("is valid").expect("is one");
        let (found, damages) = read_pages(from, end, |from, damages| {
            let page = pages.read_accepted(log, (from, end), &filter, bytes_max, damages);
            page.expect("is read")
        });
        let is_wanted = |offset| match filter_value(offset) {
            Some(value) => value == wanted,
            None => is_unfiltered,
        };
        let wanted = all.0.iter().filter(|(offset, _)| is_wanted(**offset));
        assert!(found.iter().eq(wanted), "{:?} from {from:?}", found.keys());
        assert_eq!(damages, all.1);
    }
    all
}

fn read_pages(
    mut from: StreamFrom,
    end: u64,
    mut read: impl FnMut(StreamFrom, &mut Vec<Damage>) -> StreamPage,
) -> Found {
    let (mut found, mut damages) = (BTreeMap::new(), Vec::new());
    for _ in 0..100_000 {
        let page = read(from, &mut damages);
        for at in 0..page.len() {
            let message = page.message(at).expect("is there");
            found.insert(message.offset, message.body.to_vec());
        }
        if page.after.offset >= end {
            return (found, damages);
        }
        from = StreamFrom::Place(page.after);
    }
    panic!("reading comes to no end");
}
