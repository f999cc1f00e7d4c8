//! A memory that is nearly full: the log alone has the messages of all queues but the shortest.

use std::ops::RangeInclusive;

use crosstie_amqp::TableBuf;
use crosstie_ledger::{Config, Ledger, Sequence};
use crosstie_queues::{Kept, LEVELED, Position, QueueId, Record};

use super::support::{CONFIG, NOW, message};
use super::{QUEUE, declared, enqueued, owning, prioritized, read, settle};

/// While memory is crowded, the log alone has the messages of queues with more than four.
const CROWDED: Config = Config {
    batch_bytes_max: 1 << 20,
    part_bytes_max: 1 << 20,
    log_bytes_min: 1 << 40,
    crowded_messages: 4,
    ..CONFIG
};

/// A queue with messages at these places.
fn filled(queue: u64, places: RangeInclusive<i64>) -> Vec<Record> {
    let (queue, message) = (QueueId(queue), message(b"m"));
    let mut records = vec![declared(queue, TableBuf::new())];
    records.extend(places.map(|place| Record::Enqueued {
        queue,
        place,
        message: message.clone(),
    }));
    records
}

#[test]
fn a_crowded_memory_leaves_the_messages_of_all_but_the_shortest_queues_to_the_log() {
    let (mut ledger, mut log) = owning(CROWDED);
    // More than one call takes out of memory, at rest; and a short queue.
    let records = (1..=5_000).flat_map(|queue| filled(queue, 1..=5));
    let records = records.chain(filled(5_001, 1..=4));
    ledger.submit(NOW, records.collect(), Position(1));
    settle(&mut ledger, &mut log);
    let mut follower = Ledger::new(CROWDED);
    for (sequence, entry) in (1..).zip(&log) {
        let read = follower.handle_entry(Sequence(sequence), entry);
        read.expect("the log is whole");
    }
    let per_message = ledger.status().resident_bytes / 25_004;
    for ledger in [&mut ledger, &mut follower] {
        let resident = |ledger: &Ledger| ledger.status().resident_bytes / per_message;
        assert_eq!(resident(ledger), 25_004);
        ledger.set_crowded(true);
        assert!((5_000..10_000).contains(&resident(ledger)), "in parts");
        ledger.set_crowded(true);
        assert_eq!(resident(ledger), 4);
        let kept = ledger.records();
        let kept = kept.filter(|record| matches!(record, Record::Kept(kept) if kept.messages == 5));
        assert_eq!(kept.count(), 5_000);
        let found = read(ledger, &log, (1, 5)).expect("all are in the log");
        assert_eq!(found.len(), 5);
    }
    let resident = |ledger: &Ledger| ledger.status().resident_bytes / per_message;
    ledger.submit(NOW, filled(5_002, 1..=10), Position(2));
    settle(&mut ledger, &mut log);
    assert_eq!(resident(&ledger), 4);
    ledger.set_crowded(false);
    ledger.submit(NOW, filled(5_003, 1..=10), Position(3));
    settle(&mut ledger, &mut log);
    assert_eq!(resident(&ledger), 14);
}

#[test]
fn a_relief_that_has_begun_goes_on_when_memory_is_not_crowded_any_more() {
    let (mut ledger, mut log) = owning(CROWDED);
    let records = (1..=64).flat_map(|queue| filled(queue, 1..=700));
    ledger.submit(NOW, records.collect(), Position(1));
    settle(&mut ledger, &mut log);
    let per_message = ledger.status().resident_bytes / 44_800;
    let resident = |ledger: &Ledger| ledger.status().resident_bytes / per_message;
    ledger.set_crowded(true);
    assert!((20_000..30_000).contains(&resident(&ledger)), "in parts");
    ledger.set_crowded(false);
    assert!((10_000..20_000).contains(&resident(&ledger)));
    // Queues that were looked at may not grow meanwhile.
    ledger.submit(NOW, filled(0, 1..=10), Position(2));
    settle(&mut ledger, &mut log);
    ledger.set_crowded(true);
    ledger.set_crowded(false);
    assert_eq!(resident(&ledger), 0);
    ledger.submit(NOW, filled(65, 1..=10), Position(3));
    settle(&mut ledger, &mut log);
    assert_eq!(resident(&ledger), 10);
    ledger.set_crowded(true);
    assert_eq!(resident(&ledger), 0);
}

#[test]
fn messages_of_one_queue_are_freed_in_parts() {
    let (mut ledger, mut log) = owning(CROWDED);
    ledger.submit(NOW, filled(1, 1..=50_000), Position(1));
    let delivered = Record::Delivered {
        queue: QUEUE,
        place: 7,
        deliveries: 3,
    };
    ledger.submit(NOW, vec![delivered], Position(2));
    settle(&mut ledger, &mut log);
    let all = ledger.resident_bytes() as usize;
    let mut left = all + ledger.memory_bytes();
    let mut parts = Vec::new();
    while parts.last().is_none_or(|part| *part > 0) {
        ledger.set_crowded(true);
        // No queue has them.
        assert_eq!(ledger.resident_bytes(), 0);
        let before = left;
        left = ledger.memory_bytes();
        parts.push((before - left) * 50_000 / all);
        // The log alone has them from the first part on.
        let mut excerpt = ledger.excerpt(QUEUE, (7, 7), 1);
        while let Some((next, _)) = excerpt.next_read() {
            let taken = excerpt.take(next, &log[next.0 as usize - 1]);
            taken.expect("it is what was written");
        }
        let (messages, _) = excerpt.finish().remove(0).expect("it is in the log");
        assert_eq!(messages[0].1.deliveries, 3);
    }
    assert_eq!(parts.len(), 5);
    assert!(parts.iter().all(|part| *part < 30_000), "{parts:?}");
    ledger.set_crowded(false);
    ledger.submit(NOW, filled(2, 1..=10_000), Position(3));
    let purged = Record::Purged { queue: QueueId(2) };
    ledger.submit(NOW, vec![purged], Position(4));
    settle(&mut ledger, &mut log);
    assert_eq!(ledger.resident_bytes(), 0);
    let purged = ledger.memory_bytes();
    ledger.set_crowded(false);
    assert!(ledger.memory_bytes() + all / 10 < purged);
}

#[test]
fn memory_that_is_about_to_be_free_leaves_no_queue_to_the_log() {
    let config = Config {
        resident_bytes_max: 1 << 20,
        long_body_bytes: 100_000,
        ..CROWDED
    };
    let (mut ledger, mut log) = owning(config);
    ledger.submit(NOW, filled(1, 1..=50_000), Position(1));
    settle(&mut ledger, &mut log);
    assert!(ledger.resident_bytes() > 4 << 20);
    let long = |place| Record::Enqueued {
        queue: QueueId(2),
        place,
        message: message(&[7; 60_000]),
    };
    let purged = Record::Purged { queue: QueueId(1) };
    ledger.submit(NOW, vec![purged, long(1), long(2)], Position(2));
    settle(&mut ledger, &mut log);
    // It is not free yet.
    assert!(ledger.memory_bytes() > 4 << 20);
    assert!(!ledger.is_deep());
    let freed = [1, 2, 3, 4].map(|_| {
        ledger.set_crowded(false);
        ledger.memory_bytes()
    });
    assert!(freed.is_sorted_by(|a, b| a > b), "{freed:?}");
    assert!(freed[3] < 100_000);
}

#[test]
fn the_relief_of_a_crowded_memory_waits_for_the_declaration_of_a_queue() {
    for is_swept in [false, true] {
        let (mut ledger, mut log) = owning(CROWDED);
        ledger.set_crowded(!is_swept);
        let mut records: Vec<_> = (1..=3).map(|place| enqueued(place, "early")).collect();
        records.extend((4..=9).map(|place| enqueued(2 * LEVELED + place, "m")));
        ledger.submit(NOW, records, Position(1));
        settle(&mut ledger, &mut log);
        ledger.set_crowded(true);
        assert!(!ledger.is_deep());
        let declared = prioritized();
        ledger.submit(NOW, vec![declared.clone()], Position(2));
        settle(&mut ledger, &mut log);
        let mut expected = vec![declared];
        expected.extend((1..=3).map(|place| enqueued(place, "early")));
        expected.push(Record::Kept(Kept {
            queue: QUEUE,
            from: 2 * LEVELED + 4,
            to: 2 * LEVELED + 9,
            messages: 6,
            body_bytes: 6,
        }));
        assert_eq!(ledger.records().collect::<Vec<_>>(), expected);
    }
}
