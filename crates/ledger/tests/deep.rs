//! Queues whose messages only the log has.

#[allow(dead_code, reason = "other tests need the rest")]
mod support;

#[path = "deep/crowded.rs"]
mod crowded;

use std::sync::Arc;

use crosstie_amqp::{TableBuf, Value};
use crosstie_ledger::{Absent, Broken, Config, Effect, Ledger, Sequence};
use crosstie_queues::{Kept, LEVELED, Position, QueueId, Record};

use support::{CONFIG, NOW, message, owner};

const QUEUE: QueueId = QueueId(1);

/// Of more than three messages the log alone has the rest.
const DEEP: Config = Config {
    resident_bytes_max: 0,
    long_messages: 3,
    ..CONFIG
};

type Log = Vec<Arc<[u8]>>;

/// A message with that body.
fn enqueued(place: i64, body: &str) -> Record {
    let (queue, message) = (QUEUE, message(body.as_bytes()));
    Record::enqueued(queue, place, message)
}

fn declared(id: QueueId, arguments: TableBuf) -> Record {
    Record::queue_declared(id, format!("q{}", id.0), arguments)
}

fn prioritized() -> Record {
    declared(QUEUE, TableBuf::new().with("x-max-priority", Value::I32(3)))
}

fn dequeued(place: i64) -> Record {
    Record::dequeued(QUEUE, place)
}

/// Lets the log accept all appends; returns the positions that are committed.
fn settle(ledger: &mut Ledger, log: &mut Log) -> Vec<Position> {
    let mut committed = Vec::new();
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { after, entry } => {
                assert_eq!(after.0, log.len() as u64);
                log.push(entry);
                ledger.handle_appended(NOW, Sequence(log.len() as u64));
            }
            Effect::Committed(position) => committed.push(position),
            _ => {}
        }
    }
    committed
}

fn owning(config: Config) -> (Ledger, Log) {
    let mut ledger = Ledger::new(config);
    let mut log = Log::new();
    ledger.claim(NOW, &owner("a"), 99);
    settle(&mut ledger, &mut log);
    (ledger, log)
}

/// The messages of the queue between those places, read a few at a time: their places and bodies.
fn read(ledger: &Ledger, log: &Log, between: (i64, i64)) -> Result<Vec<(i64, String)>, Broken> {
    let mut found = Vec::new();
    let (mut from, to) = between;
    while from <= to {
        let mut excerpt = ledger.excerpt(QUEUE, (from, to), 200);
        while let Some((next, last)) = excerpt.next_read() {
            assert!(next <= last);
            excerpt.take(next, &log[next.0 as usize - 1])?;
        }
        let (messages, upto) = excerpt.finish().remove(0)?;
        from = upto + 1;
        found.extend(messages.into_iter().map(|(place, message)| {
            let body = String::from_utf8_lossy(message.content.body());
            (place, body.into_owned())
        }));
    }
    Ok(found)
}

#[test]
fn a_place_has_the_last_message_that_the_log_has_there() {
    let (mut ledger, mut log) = owning(DEEP);
    for place in 1..=20 {
        let body = format!("first {place}");
        ledger.submit(NOW, vec![enqueued(place, &body)], Position(place as u64));
        settle(&mut ledger, &mut log);
    }
    // A queue that was restored gives the places behind its last message again.
    for place in 15..=20 {
        ledger.submit(NOW, vec![dequeued(place)], Position(30));
    }
    settle(&mut ledger, &mut log);
    ledger.submit(NOW, vec![enqueued(15, "second 15")], Position(31));
    settle(&mut ledger, &mut log);
    assert!(ledger.is_deep());
    let body_bytes = (1..15).map(|n| format!("first {n}").len()).sum::<usize>() + 9;
    let kept = Kept {
        queue: QUEUE,
        from: 1,
        to: 15,
        messages: 15,
        body_bytes: body_bytes as u64,
    };
    assert_eq!(ledger.records().collect::<Vec<_>>(), [Record::Kept(kept)]);
    let expected = (1..15).map(|place| (place, format!("first {place}")));
    let mut expected: Vec<_> = expected.collect();
    expected.push((15, "second 15".to_owned()));
    let found = read(&ledger, &log, (1, 15)).expect("all are in the log");
    assert_eq!(found, expected);
    // A follower knows the same.
    let mut follower = Ledger::new(DEEP);
    for (sequence, entry) in (1..).zip(&log) {
        let read = follower.handle_entry(Sequence(sequence), entry);
        read.expect("the log is whole");
    }
    let found = read(&follower, &log, (3, 15)).expect("all are in the log");
    assert_eq!(found, expected[2..]);
}

#[test]
fn a_message_that_is_not_acknowledged_yet_cannot_be_read() {
    let (mut ledger, mut log) = owning(DEEP);
    let records = (1..=5).map(|place| enqueued(place, "m")).collect();
    ledger.submit(NOW, records, Position(1));
    assert_eq!(read(&ledger, &log, (1, 5)), Err(Broken::Missing));
    settle(&mut ledger, &mut log);
    let found = read(&ledger, &log, (1, 5));
    assert_eq!(found.map(|found| found.len()), Ok(5));
}

#[test]
fn a_clearance_removes_the_messages_before_it() {
    // As departures, and as one record.
    let ways = [(CONFIG, false), (DEEP, false), (CONFIG, true), (DEEP, true)];
    for (config, writes_clearances) in ways {
        let (mut ledger, mut log) = owning(config);
        ledger.write_clearances(writes_clearances);
        let records = (1..=100).map(|place| enqueued(place, "m")).collect();
        ledger.submit(NOW, records, Position(1));
        settle(&mut ledger, &mut log);
        let clearance = Record::Cleared {
            queue: QUEUE,
            from: 2,
            to: 101,
        };
        // The message before it in the batch is cleared, the one behind it is not.
        let records = vec![enqueued(101, "m"), clearance, enqueued(102, "n")];
        ledger.submit(NOW, records, Position(2));
        assert_eq!(settle(&mut ledger, &mut log), [Position(2)]);
        let expected = [(1, "m".to_owned()), (102, "n".to_owned())];
        assert_eq!(read(&ledger, &log, (0, 200)).as_deref(), Ok(&expected[..]));
        let mut follower = Ledger::new(config);
        for (sequence, entry) in (1..).zip(&log) {
            let read = follower.handle_entry(Sequence(sequence), entry);
            read.expect("the log is whole");
        }
        assert_eq!(
            read(&follower, &log, (0, 200)).as_deref(),
            Ok(&expected[..])
        );
    }
}

#[test]
fn each_batch_of_a_clearance_is_bounded_and_acknowledged_before_its_position() {
    let (mut ledger, mut log) = owning(DEEP);
    let records = (1..=1000).map(|place| enqueued(place, "m")).collect();
    ledger.submit(NOW, records, Position(1));
    settle(&mut ledger, &mut log);
    let (queue, from, to) = (QUEUE, 1, 1000);
    ledger.submit(NOW, vec![Record::Cleared { queue, from, to }], Position(2));
    let (mut batches, mut is_committed) = (0, false);
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { entry, .. } => {
                assert!(!is_committed, "the position is that of the last batch");
                batches += 1;
                assert!(
                    entry.len() <= 1000,
                    "one turn writes {} octets",
                    entry.len()
                );
                log.push(entry);
                let last = Sequence(log.len() as u64);
                ledger.handle_appended(NOW, last);
                assert_eq!(ledger.acknowledged(), last);
            }
            Effect::Committed(position) => {
                assert_eq!(position, Position(2));
                is_committed = true;
            }
            _ => {}
        }
    }
    assert!(is_committed && batches > 60, "{batches}");
}

#[test]
fn a_clearance_that_all_readers_know_is_one_record_and_delays_no_later_one() {
    let (mut ledger, mut log) = owning(DEEP);
    ledger.write_clearances(true);
    let records = (1..=1000).map(|place| enqueued(place, "m")).collect();
    ledger.submit(NOW, records, Position(1));
    settle(&mut ledger, &mut log);
    let before = log.len();
    let (queue, from, to) = (QUEUE, 2, 1000);
    ledger.submit(NOW, vec![Record::Cleared { queue, from, to }], Position(2));
    ledger.submit(NOW, vec![enqueued(1001, "other")], Position(3));
    let committed = settle(&mut ledger, &mut log);
    assert_eq!(committed.last(), Some(&Position(3)));
    let written = &log[before..];
    assert!(written.len() <= 2, "{} entries", written.len());
    let octets: usize = written.iter().map(|entry| entry.len()).sum();
    assert!(octets < 400, "{octets} octets");
    let expected = [(1, "m".to_owned()), (1001, "other".to_owned())];
    assert_eq!(read(&ledger, &log, (0, 2000)).as_deref(), Ok(&expected[..]));
    let mut follower = Ledger::new(DEEP);
    for (sequence, entry) in (1..).zip(&log) {
        let read = follower.handle_entry(Sequence(sequence), entry);
        read.expect("the log is whole");
    }
    let found = read(&follower, &log, (0, 2000));
    assert_eq!(found.as_deref(), Ok(&expected[..]));
    assert_eq!(follower.status().live_bytes, ledger.status().live_bytes);
}

#[test]
fn messages_are_copied_without_those_that_submitted_records_remove() {
    let (mut ledger, mut log) = owning(DEEP);
    let records = (1..=5).map(|place| enqueued(place, "m")).collect();
    ledger.submit(NOW, records, Position(1));
    settle(&mut ledger, &mut log);
    assert!(ledger.begin_filling());
    let absent = ledger.next_absent().expect("the log alone has them");
    let Absent {
        extent,
        entries: Some((first, last)),
    } = absent
    else {
        panic!("all of it is in the log: {absent:?}");
    };
    // One is in flight, and the other waits.
    ledger.submit(NOW, vec![dequeued(1)], Position(2));
    ledger.submit(NOW, vec![dequeued(4)], Position(3));
    let entries = (first.0..=last.0).map(|at| (Sequence(at), &*log[at as usize - 1]));
    let records = ledger.absent_messages(extent, entries);
    let expected = [2, 3, 5].map(|place| enqueued(place, "m"));
    assert_eq!(records.as_deref(), Ok(&expected[..]));
    assert_eq!(ledger.next_absent(), None);
}

#[test]
fn a_copy_that_is_never_filled_holds_up_the_log() {
    let (mut ledger, mut log) = owning(DEEP);
    let records = (1..=5).map(|place| enqueued(place, "m")).collect();
    ledger.submit(NOW, records, Position(1));
    assert!(ledger.begin_filling());
    let mut place = 5;
    while !ledger.is_held_up() {
        place += 1;
        ledger.submit(NOW, vec![enqueued(place, "m")], Position(2));
        ledger.submit(NOW, vec![dequeued(place)], Position(2));
        settle(&mut ledger, &mut log);
        assert!(place < 1000);
    }
    assert!(log.iter().map(|entry| entry.len()).sum::<usize>() > 8000);
    ledger.end_filling();
    assert!(!ledger.is_held_up());
}

#[test]
fn messages_at_places_of_an_earlier_version_stay_in_memory() {
    let (mut ledger, mut log) = owning(DEEP);
    let declared = prioritized();
    let mut records = vec![declared.clone()];
    records.extend((1..=3).map(|place| enqueued(place, "early")));
    records.extend((4..=9).map(|place| enqueued(2 * LEVELED + place, "m")));
    records.extend((4..=9).map(|place| enqueued(3 * LEVELED + place, "m")));
    ledger.submit(NOW, records, Position(1));
    settle(&mut ledger, &mut log);
    let kept = |level: i64| {
        Record::Kept(Kept {
            queue: QUEUE,
            from: level * LEVELED + 4,
            to: level * LEVELED + 9,
            messages: 6,
            body_bytes: 6,
        })
    };
    let mut expected = vec![declared];
    expected.extend((1..=3).map(|place| enqueued(place, "early")));
    expected.extend([kept(2), kept(3)]);
    assert_eq!(ledger.records().collect::<Vec<_>>(), expected);
}

#[test]
fn messages_of_an_earlier_version_before_their_declaration_are_of_the_lowest_priority() {
    let (mut ledger, mut log) = owning(DEEP);
    let mut records: Vec<_> = (1..=5).map(|place| enqueued(place, "early")).collect();
    records.push(prioritized());
    records.push(enqueued(6, "early"));
    records.extend((7..=9).map(|place| enqueued(LEVELED + place, "m")));
    records.extend((7..=9).map(|place| enqueued(3 * LEVELED + place, "m")));
    ledger.submit(NOW, records, Position(1));
    settle(&mut ledger, &mut log);
    let kept = |from, to, messages, body_bytes| {
        Record::Kept(Kept {
            queue: QUEUE,
            from,
            to,
            messages,
            body_bytes,
        })
    };
    let lowest = kept(1, LEVELED + 9, 9, 6 * 5 + 3);
    let highest = kept(3 * LEVELED + 7, 3 * LEVELED + 9, 3, 3);
    let found: Vec<_> = ledger.records().skip(1).collect();
    assert_eq!(found, [lowest, highest]);
    let found = read(&ledger, &log, (1, LEVELED + 9)).expect("all are in the log");
    let places = found.iter().map(|(place, _)| *place);
    assert!(places.eq((1..=6).chain(LEVELED + 7..=LEVELED + 9)));
}

#[test]
fn a_queue_without_messages_is_not_deep() {
    let (mut ledger, mut log) = owning(DEEP);
    let records = (1..=9).map(|place| enqueued(place, "m")).collect();
    ledger.submit(NOW, records, Position(1));
    settle(&mut ledger, &mut log);
    assert!(ledger.is_deep());
    ledger.submit(NOW, (1..=9).map(dequeued).collect(), Position(2));
    assert!(!ledger.is_deep());
    ledger.submit(NOW, vec![enqueued(10, "m")], Position(3));
    settle(&mut ledger, &mut log);
    assert_eq!(ledger.records().collect::<Vec<_>>(), [enqueued(10, "m")]);
    assert!(ledger.memory_bytes() < 3000, "{}", ledger.memory_bytes());
}

#[test]
fn a_standby_of_a_log_without_messages_takes_no_more_memory_as_the_log_goes_on() {
    let (mut ledger, mut log) = owning(DEEP);
    let (mut standby, mut longest) = (Ledger::new(DEEP), 0);
    for place in 1..2000 {
        ledger.submit(NOW, vec![enqueued(place, "m")], Position(1));
        settle(&mut ledger, &mut log);
        ledger.submit(NOW, vec![dequeued(place)], Position(2));
        settle(&mut ledger, &mut log);
    }
    for (sequence, entry) in (1..).zip(&log) {
        let read = standby.handle_entry(Sequence(sequence), entry);
        read.expect("the log is whole");
        longest = longest.max(standby.memory_bytes());
    }
    assert!(longest < 3000, "{longest} bytes");
}

/// Lets the log accept all appends up to the next read of cleaning; returns the entries to read.
fn until_fetch(ledger: &mut Ledger, log: &mut Log) -> Option<(Sequence, Sequence)> {
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { entry, .. } => {
                log.push(entry);
                ledger.handle_appended(NOW, Sequence(log.len() as u64));
            }
            Effect::Fetch { first, last } => return Some((first, last)),
            _ => {}
        }
    }
    None
}

#[test]
fn a_large_batch_is_written_again_in_small_ones_and_records_come_between() {
    let (mut ledger, mut log) = owning(DEEP);
    let body = "x".repeat(50);
    // One input, such as a transaction's commit.
    let records = (1..=100).map(|place| enqueued(place, &body)).collect();
    ledger.submit(NOW, records, Position(1));
    let mut place = 100;
    let (first, last) = loop {
        if let Some(found) = until_fetch(&mut ledger, &mut log) {
            break found;
        }
        place += 1;
        let passing = vec![enqueued(place, &body)];
        ledger.submit(NOW, passing, Position(1));
        ledger.submit(NOW, vec![dequeued(place)], Position(1));
        assert!(place < 1000, "the log is long");
    };
    let entries = (first.0..=last.0).map(|at| (Sequence(at), Arc::clone(&log[at as usize - 1])));
    let entries: Vec<_> = entries.collect();
    let entries = entries.iter().map(|(at, entry)| (*at, &entry[..]));
    ledger.handle_fetched(NOW, entries).expect("all are there");
    let (read_bytes, before) = (ledger.memory_bytes(), log.len());
    ledger.submit(NOW, vec![dequeued(90)], Position(2));
    let mut waited_bytes = 0;
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { entry, .. } => {
                waited_bytes += entry.len();
                log.push(entry);
                ledger.handle_appended(NOW, Sequence(log.len() as u64));
            }
            Effect::Committed(position) => {
                assert_eq!(position, Position(2));
                break;
            }
            _ => {}
        }
    }
    assert!(
        waited_bytes < 3000,
        "a record waits behind {waited_bytes} octets"
    );
    settle(&mut ledger, &mut log);
    let written: usize = log[before..].iter().map(|entry| entry.len()).sum();
    assert!(
        written > 3 * waited_bytes,
        "all is written again: {written}"
    );
    // What has left meanwhile is not.
    let expected: Vec<_> = (1..=100).filter(|place| *place != 90).collect();
    let places = |ledger: &Ledger| {
        let found = read(ledger, &log, (1, 1000)).expect("all are in the log");
        found
            .into_iter()
            .map(|(place, _)| place)
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&ledger), expected);
    assert!(
        ledger.memory_bytes() + 5000 < read_bytes,
        "it is on the account meanwhile"
    );
    let mut follower = Ledger::new(DEEP);
    for (sequence, entry) in (1..).zip(&log) {
        let read = follower.handle_entry(Sequence(sequence), entry);
        read.expect("the log is whole");
    }
    assert_eq!(places(&follower), expected);
}

#[test]
fn a_batch_that_is_not_whole_is_on_the_account() {
    let (mut ledger, mut log) = owning(CONFIG);
    ledger.submit(NOW, vec![enqueued(1, &"x".repeat(20_000))], Position(1));
    settle(&mut ledger, &mut log);
    let mut standby = Ledger::new(CONFIG);
    let (last, others) = log.split_last().expect("some entries");
    for (sequence, entry) in (1..).zip(others) {
        let read = standby.handle_entry(Sequence(sequence), entry);
        read.expect("the log is whole");
    }
    assert!(standby.memory_bytes() > 19_000);
    let read = standby.handle_entry(Sequence(log.len() as u64), last);
    read.expect("the log is whole");
    assert!(standby.memory_bytes() < 3000);
    assert!(standby.status().resident_bytes > 20_000);
}

#[test]
fn pages_of_interleaved_queues_are_read_together() {
    const QUEUES: u64 = 5;
    let (mut ledger, mut log) = owning(DEEP);
    for place in 1..=40_i64 {
        let records = (1..=QUEUES).map(|queue| Record::Enqueued {
            queue: QueueId(queue),
            place,
            message: message(format!("{queue}-{place}").as_bytes()),
        });
        ledger.submit(NOW, records.collect(), Position(1));
        settle(&mut ledger, &mut log);
    }
    let page = |queue| ledger.excerpt(QueueId(queue), (1, 1000), usize::MAX);
    let alone = page(1).bytes();
    let mut excerpt = page(1);
    for queue in 2..=QUEUES {
        assert!(excerpt.join(page(queue)));
    }
    assert_eq!(excerpt.bytes(), alone, "what they share is read once");
    let mut reads = 0;
    while let Some((next, _)) = excerpt.next_read() {
        reads += 1;
        let taken = excerpt.take(next, &log[next.0 as usize - 1]);
        taken.expect("it is what was written");
    }
    assert!(reads <= log.len(), "{reads}");
    for (queue, found) in (1..).zip(excerpt.finish()) {
        let (messages, upto) = found.expect("all are in the log");
        let bodies = messages.iter();
        let bodies = bodies.map(|(_, message)| message.content.body().to_vec());
        let expected = (1..=40).map(|place| format!("{queue}-{place}").into_bytes());
        assert!(bodies.eq(expected));
        assert_eq!(upto, 1000);
    }
}
