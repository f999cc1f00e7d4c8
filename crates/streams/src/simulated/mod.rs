//! Streams on a disk that fails, forgets what was not synced, and is damaged.

mod chance;
mod damage;
mod held;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{MessageContent, StreamAppend, StreamFrom, StreamLimits, Time};

use crate::log::{Damage, Log};
use crate::open::open;
use crate::read::Pages;

const DIRECTORY: &str = "vhost-%2f/1";

fn append(offset: u64, at_ms: u64, body: &[u8], limits: StreamLimits) -> StreamAppend {
    StreamAppend {
        offset,
        at: Time(at_ms),
        limits,
        name: "q".into(),
        content: Arc::new(MessageContent::new("", "q", &[0, 0], body)),
    }
}

/// Opens the stream as a start does.
fn reopen(disk: &SimulatedDisk, limits: StreamLimits) -> (Arc<Log>, Vec<Damage>) {
    let opened = open(disk, DIRECTORY).expect("is opened");
    let log = Log::new(DIRECTORY.to_owned(), limits, opened.table);
    (Arc::new(log), opened.damages)
}

/// All messages from the first on, by their offsets.
fn read_all(
    disk: &SimulatedDisk,
    log: &Log,
    from: StreamFrom,
    bytes_max: usize,
) -> (BTreeMap<u64, Vec<u8>>, Vec<Damage>) {
    let mut pages = Pages::new(Arc::new(disk.clone()));
    let end = log.table().end;
    let (mut from, mut found, mut damages) = (from, BTreeMap::new(), Vec::new());
    for _ in 0..100_000 {
        let page = pages.read(log, from, end, bytes_max, &mut damages);
        let page = page.expect("is read");
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
