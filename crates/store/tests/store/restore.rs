//! What is kept, and in which order it comes back.

use std::fs;
use std::sync::Arc;

use crosstie_queues::{Destination, Position, QueueId, Record};
use crosstie_store::{Batch, Committer, Store, StoreConfig};

use crate::rig::{self, *};

/// Commits batches one after the other, and checks what a restart finds.
fn check(what: &str, batches: &[&[Record]], expected: &[Record]) {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    for records in batches {
        commit(&mut store, records.to_vec()).expect(what);
    }
    drop(store);
    assert_eq!(kept(&directory), of_slash(expected), "{what}");
    // And the same records in one batch leave the same.
    let directory = rig::directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, batches.concat()).expect(what);
    drop(store);
    assert_eq!(kept(&directory), of_slash(expected), "{what}, in one batch");
}

fn to_queue() -> Destination {
    Destination::Queue("q".into())
}

fn to_exchange() -> Destination {
    Destination::Exchange("q".into())
}

/// Records of every kind that is kept.
fn all() -> [Record; 10] {
    [
        exchange("x"),
        exchange("y"),
        queue(1, "q"),
        queue(2, "r"),
        bound("x", to_exchange()),
        bound("x", to_queue()),
        enqueued(1, -1),
        enqueued(1, 2),
        enqueued(1, 4),
        enqueued(2, 2),
    ]
}

/// The same but for some, by their places.
fn without(gone: &[usize]) -> Vec<Record> {
    let all = all().into_iter().enumerate();
    all.filter(|(place, _)| !gone.contains(place))
        .map(|(_, record)| record)
        .collect()
}

/// Checks what is left of all records after these.
fn check_after(what: &str, records: &[Record], expected: &[Record]) {
    check(what, &[&all(), records], expected);
}

/// A binding with a place in the order of its source's bindings.
fn ordered(source: &str, order: u64) -> Record {
    let mut record = bound(source, to_queue());
    if let Record::Bound { order: place, .. } = &mut record {
        *place = order;
    }
    record
}

#[test]
fn the_order_of_bindings_is_kept() {
    let first = [exchange("x"), exchange("y"), queue(1, "q")];
    let expected = [
        &first[..],
        &[ordered("x", u64::from(u32::MAX) + 7), ordered("y", 0)],
    ]
    .concat();
    check("bound", &[&first, &expected[3..]], &expected);
    let again = [unbound("x", to_queue()), ordered("x", 9)];
    let last = [&first[..], &[ordered("x", 9), ordered("y", 0)]].concat();
    check("bound again", &[&expected, &again], &last);
}

#[test]
fn every_record_is_kept() {
    let all = all();
    check("all", &[&all], &all);
    check(
        "one by one",
        &all.each_ref().map(std::slice::from_ref),
        &all,
    );
    let again = [exchange("x"), queue(1, "q")];
    check_after("declared again", &again, &all);
}

#[test]
fn a_deleted_entity_takes_its_parts_along() {
    let deleted = Record::ExchangeDeleted { name: "x".into() };
    check_after("an exchange deleted", &[deleted], &without(&[0, 4, 5]));
    let deleted = Record::QueueDeleted { id: QueueId(1) };
    check_after("a queue deleted", &[deleted], &without(&[2, 5, 6, 7, 8]));
    check_after("unbound", &[unbound("x", to_queue())], &without(&[5]));
    check_after("unbound", &[unbound("x", to_exchange())], &without(&[4]));
    check_after("another one unbound", &[unbound("y", to_queue())], &all());
    let purged = Record::Purged { queue: QueueId(1) };
    check_after("purged", &[purged], &without(&[6, 7, 8]));
}

#[test]
fn messages_leave_and_return() {
    check_after("dequeued", &[dequeued(1, 2)], &without(&[7]));
    let mut expected = all();
    expected[8] = Record::enqueued(
        QueueId(1),
        4,
        crosstie_queues::StoredMessage {
            content: content(b"message 4"),
            expires_at: Some(crosstie_queues::Time(1_700_000_000_000)),
            deliveries: 3,
        },
    );
    check_after("returned", &[returned(1, 4, 3)], &expected);
    let twice = [returned(1, 4, 2), returned(1, 4, 3)];
    check_after("returned twice", &twice, &expected);
    let gone = [returned(1, 4, 1), dequeued(1, 4)];
    check_after("returned and dequeued", &gone, &without(&[8]));
}

#[test]
fn messages_come_back_in_the_order_of_their_places() {
    let enqueued = |places: &[i64]| -> Vec<Record> {
        places.iter().map(|place| enqueued(7, *place)).collect()
    };
    let expected = enqueued(&[i64::MIN, -3, 1, 2, 3, 1 << 40, i64::MAX]);
    let order = enqueued(&[2, 1, i64::MAX, -3, 1 << 40, 3, i64::MIN]);
    check("places", &[&order], &expected);
}

#[test]
fn records_that_cancel_in_a_batch_are_not_written() {
    let mut batch = Batch::default();
    batch.push(
        &"/".into(),
        vec![enqueued(1, 1), enqueued(1, 2)],
        Position(2),
    );
    batch.push(&"b".into(), vec![enqueued(1, 2)], Position(1));
    let gone = vec![
        dequeued(1, 2),
        returned(1, 1, 1),
        dequeued(1, 1),
        dequeued(1, 0),
    ];
    batch.push(&"/".into(), gone, Position(6));
    batch.cancel();
    let left: Vec<_> = batch
        .records()
        .map(|(vhost, record)| (&**vhost, record))
        .collect();
    assert_eq!(left, [("b", &enqueued(1, 2)), ("/", &dequeued(1, 0))]);
    let positions = [("/".into(), Position(6)), ("b".into(), Position(1))];
    assert_eq!(batch.positions(), positions);

    let mut batch = Batch::default();
    let purged = Record::Purged { queue: QueueId(1) };
    let records = vec![
        dequeued(1, 0),
        enqueued(1, 1),
        purged.clone(),
        enqueued(1, 2),
    ];
    batch.push(&"/".into(), records, Position(4));
    batch.cancel();
    let left: Vec<_> = batch.records().map(|(_, record)| record.clone()).collect();
    assert_eq!(left, [purged, enqueued(1, 2)]);
}

#[test]
fn vhosts_are_kept_apart() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let names: Vec<Arc<str>> = vec!["/".into(), "b".into(), "ünïcode".into()];
    for _ in 0..2 {
        let mut batch = Batch::default();
        for name in &names {
            batch.push(name, vec![exchange(name), queue(1, "q")], Position(1));
        }
        store.commit(&batch).expect("written");
    }
    let mut batch = Batch::default();
    for (place, name) in names.iter().enumerate() {
        batch.push(name, vec![enqueued(1, place as i64)], Position(2));
    }
    let deleted = Record::QueueDeleted { id: QueueId(1) };
    batch.push(&names[1], vec![deleted], Position(3));
    batch.cancel();
    store.commit(&batch).expect("written");
    drop(store);
    let of = |name: &str| -> Vec<Record> {
        let kept = kept(&directory).into_iter();
        kept.filter(|(vhost, _)| vhost == name)
            .map(|(_, record)| record)
            .collect()
    };
    assert_eq!(of("/"), [exchange("/"), queue(1, "q"), enqueued(1, 0)]);
    assert_eq!(of("b"), [exchange("b")]);
    assert_eq!(
        of("ünïcode"),
        [exchange("ünïcode"), queue(1, "q"), enqueued(1, 2)]
    );
}

#[test]
fn long_contents_that_queues_share_are_written_once_and_go_with_their_last_message() {
    let directory = directory();
    let open = || Store::open(config(&directory)).expect("a store").0;
    let body_bytes = 4 << 20;
    let long = content(&vec![7; body_bytes]);
    let all: Vec<Record> = (0..10).map(|id| enqueued_content(id, 1, &long)).collect();
    commit(&mut open(), all.clone()).expect("written");
    let file_bytes = || segment_bytes(&path(&directory)) as usize;
    let full_bytes = file_bytes();
    assert!(
        full_bytes < 2 * body_bytes,
        "{full_bytes} bytes for one body of {body_bytes}"
    );
    assert_eq!(kept(&directory), of_slash(&all));
    let restored = Store::open(config(&directory)).expect("a store").1;
    let contents: Vec<_> = restored
        .iter()
        .filter_map(|restored| match &restored.record {
            Record::Enqueued { message, .. } => Some(Arc::as_ptr(&message.content)),
            _ => None,
        })
        .collect();
    assert!(
        contents.iter().all(|content| *content == contents[0]),
        "shared in memory too"
    );

    // By each way that a message can go.
    let mut gone: Vec<Record> = (0..4).map(|id| dequeued(id, 1)).collect();
    gone.extend((4..8).map(|id| Record::Purged { queue: QueueId(id) }));
    gone.push(Record::QueueDeleted { id: QueueId(8) });
    commit(&mut open(), gone).expect("written");
    assert_eq!(kept(&directory), of_slash(&all[9..]));
    commit(&mut open(), vec![dequeued(9, 1)]).expect("written");
    assert_eq!(kept(&directory), []);
    // And its space is given back.
    for _ in 0..20 {
        commit(&mut open(), all.clone()).expect("written");
        let gone = (0..10).map(|id| dequeued(id, 1)).collect();
        commit(&mut open(), gone).expect("written");
    }
    // The segment that is open, and those whose removal was cut short by the end.
    assert!(file_bytes() < 8 * full_bytes, "{} bytes", file_bytes());
}

#[test]
fn space_of_messages_that_went_is_given_back() {
    let directory = directory();
    let bounded = StoreConfig {
        bytes_max: Some(1 << 20),
        ..config(&directory)
    };
    let (store, _) = Store::open(bounded).expect("a store");
    let committer = Committer::start(store, |_, position, outcome| {
        assert!(outcome.is_ok(), "{position:?}: {outcome:?}");
    })
    .expect("a thread");
    let slash = "/".into();
    committer.submit(&slash, vec![queue(1, "q"), queue(2, "stays")], Position(1));
    // Several times what there is room for.
    for round in 0..100 {
        let places = || round * 1000..(round + 1) * 1000;
        let body = vec![round as u8; 100];
        let come = places().map(|place| enqueued_content(1, place, &content(&body)));
        committer.submit(&slash, come.collect(), Position(2));
        while committer.waiting_bytes() > 0 {
            std::thread::yield_now();
        }
        let mut gone: Vec<_> = places().map(|place| dequeued(1, place)).collect();
        gone.push(enqueued(2, round));
        committer.submit(&slash, gone, Position(2));
    }
    committer.stop().expect("room");
    assert_eq!(kept(&directory).len(), 2 + 100);
    let bytes = segment_bytes(&path(&directory));
    assert!(bytes <= 1 << 20, "{bytes}");
}

#[test]
fn nothing_is_written_before_the_first_record() {
    let directory = directory();
    let (mut store, restored) = Store::open(config(&directory)).expect("a store");
    assert_eq!(restored, []);
    store.commit(&Batch::default()).expect("nothing to do");
    drop(store);
    let files = || fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(files(), 0);
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![enqueued(1, 1)]).expect("written");
    drop(store);
    assert_eq!(files(), 1, "one directory");
}

#[test]
fn the_records_of_a_rest_hold_until_the_vhost_continues() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let records = vec![queue(1, "q"), enqueued(1, 2), rested(1, -5), rested(1, 2)];
    commit(&mut store, records.clone()).expect("room");
    drop(store);
    let expected = [&records[..2], &records[3..]].concat();
    for _ in 0..2 {
        assert_eq!(kept(&directory), of_slash(&expected));
    }
    let (mut store, restored) = Store::open(config(&directory)).expect("a store");
    assert_eq!(restored.len(), 3);
    store.wake().expect("room");
    store.wake().expect("it is awake");
    // A crash.
    std::mem::forget(store);
    let copy = rig::directory();
    rig::copy(&path(&directory), &path(&copy));
    assert_eq!(kept(&copy), of_slash(&records[..2]));
    let (mut store, _) = Store::open(config(&copy)).expect("a store");
    commit(&mut store, vec![rested(1, 7)]).expect("room");
    drop(store);
    assert_eq!(kept(&copy).last(), of_slash(&[rested(1, 7)]).last());
}
