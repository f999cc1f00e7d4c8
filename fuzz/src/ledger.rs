//! What a vhost's log says: entries, and the records of a batch.

use std::sync::Arc;

use crosstie_ledger::{
    Config, Effect, Ledger, Owner, Recovery, Release, Salvage, Sequence, decode_body, encode_body,
};
use crosstie_queues::{
    Destination, MessageContent, Position, QueueId, Record, StoredMessage, Time,
};

/// Entries, each with two octets of its length before it, and each as a batch's records too. What is read as
/// records is the same when it is written and read again.
pub fn batch(input: &[u8]) {
    let mut ledger = Ledger::new(Config::default());
    let mut salvage = Salvage::default();
    let mut rest = input;
    let mut sequence = 0;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (entry, behind) = behind.split_at(length);
        sequence += 1;
        let _ = ledger.handle_entry(Sequence(sequence), entry);
        salvage.take(Sequence(sequence), entry);
        if let Ok(records) = decode_body(entry) {
            let again = encode_body(records.iter().map(|(record, _)| record), &|id| {
                let deleted = |record: &Record| *record == Record::QueueDeleted { id };
                let named = records.iter().find(|(record, _)| deleted(record));
                named.and_then(|(_, name)| name.clone())
            });
            let again = decode_body(&again).expect("what was written");
            assert!(records.len() == again.len());
            let pairs = records.iter().zip(&again);
            assert!(pairs.into_iter().all(|((one, _), (other, _))| one == other));
        }
        rest = behind;
    }
    assert!(ledger.records().count() <= input.len());
    let (found, left) = salvage.finish();
    assert!(found.entries + found.unreadable == sequence && left.len() <= input.len());
}

/// The log of an owner with one of every record, and the same as bodies.
pub fn batch_seeds() -> Vec<Vec<u8>> {
    let (now, queue) = (Time(0), QueueId(1));
    let mut ledger = Ledger::new(Config::default());
    ledger.claim(now, &Owner::default(), 1);
    let mut log = Vec::new();
    drain(&mut ledger, &mut log);
    for (position, record) in (1..).zip(records(queue)) {
        ledger.submit(now, vec![record], Position(position));
        drain(&mut ledger, &mut log);
    }
    // Handed over, and recovered as it is.
    ledger.release(now, &Release::default());
    drain(&mut ledger, &mut log);
    let mut seeds = vec![log.clone()];
    let recovery = Recovery {
        by: "n".into(),
        from: "log".into(),
        replaced: vec![7],
    };
    let mut left = read(&log);
    left.recover_whole(now, recovery, 2);
    drain(&mut left, &mut log);
    seeds.push(log);
    for count in [4, 6, 8, 10, 15] {
        let records = records(queue);
        let body = encode_body(records.iter().take(count), &|_| Some("q".into()));
        let length = (body.len() as u16).to_be_bytes();
        seeds.push([&length, &*body].concat());
    }
    seeds
}

/// A follower of all of it.
fn read(log: &[u8]) -> Ledger {
    let mut ledger = Ledger::new(Config::default());
    let (mut rest, mut sequence) = (log, 0);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (entry, behind) = behind.split_at(usize::from(u16::from_be_bytes(*length)));
        sequence += 1;
        let read = ledger.handle_entry(Sequence(sequence), entry);
        read.expect("what was written");
        rest = behind;
    }
    ledger
}

fn drain(ledger: &mut Ledger, log: &mut Vec<u8>) {
    while let Some(effect) = ledger.next_effect() {
        if let Effect::Append { after, entry } = effect {
            log.extend_from_slice(&(entry.len() as u16).to_be_bytes());
            log.extend_from_slice(&entry);
            ledger.handle_appended(Time(0), Sequence(after.0 + 1));
        }
    }
}

fn setting(key: &str, value: Option<&str>) -> Record {
    Record::Setting {
        key: key.into(),
        value: value.map(Arc::from),
    }
}

fn records(queue: QueueId) -> Vec<Record> {
    let name: Arc<str> = "q".into();
    let message = StoredMessage {
        content: Arc::new(MessageContent::new("x", "k", &[0, 0], b"body")),
        expires_at: Some(Time(9)),
        deliveries: 1,
    };
    let enqueued = |place| Record::Enqueued {
        queue,
        place,
        message: message.clone(),
    };
    vec![
        Record::ExchangeDeclared {
            name: "x".into(),
            kind: "topic".into(),
            auto_delete: false,
            internal: true,
            arguments: Default::default(),
        },
        Record::QueueDeclared {
            id: queue,
            name: Arc::clone(&name),
            auto_delete: true,
            arguments: Default::default(),
        },
        Record::Bound {
            source: "x".into(),
            destination: Destination::Queue(Arc::clone(&name)),
            routing_key: "k".into(),
            arguments: Default::default(),
            order: 0,
        },
        Record::Bound {
            source: "x".into(),
            destination: Destination::Queue(Arc::clone(&name)),
            routing_key: "2".into(),
            arguments: Default::default(),
            order: 7,
        },
        enqueued(0),
        enqueued(1),
        Record::Delivered {
            queue,
            place: 1,
            deliveries: 2,
        },
        Record::dequeued(queue, 0),
        Record::Purged { queue },
        Record::Unbound {
            source: "x".into(),
            destination: Destination::Queue(name),
            routing_key: "k".into(),
            arguments: Default::default(),
        },
        Record::QueueDeleted { id: queue },
        Record::ExchangeDeleted { name: "x".into() },
        setting("a", Some("{}")),
        setting("b", Some("")),
        setting("a", None),
    ]
}
