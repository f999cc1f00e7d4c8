//! The parts of one submission become durable in an order: the messages of its streams, then its records. A transaction
//! over streams and queues is one submission.

use std::sync::{Arc, Mutex};

use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{Position, QueueId, Record, StreamChange, StreamDeclared, StreamLimits};

use super::append;
use crate::{Directory, Keeper};

const STREAMS: [QueueId; 2] = [QueueId(1), QueueId(2)];
const QUEUE: QueueId = QueueId(3);
const TRANSACTIONS: u64 = 3;
/// Of one transaction, for each stream.
const MESSAGES: u64 = 4;

/// The messages of both streams, as a start finds them.
fn found(disk: SimulatedDisk) -> [u64; 2] {
    let mut directory = Directory::on(Arc::new(disk));
    let declared = STREAMS.map(|id| StreamDeclared {
        id,
        name: "q".into(),
        limits: StreamLimits::default(),
    });
    let (found, orphans) = directory.open(&"/".into(), &declared).expect("is opened");
    assert!(orphans.is_empty(), "{orphans:?}");
    STREAMS.map(|id| {
        let stream = found.iter().find(|stream| stream.id == id);
        stream.map_or(0, |stream| {
            assert!(stream.damages.is_empty(), "{:?}", stream.damages);
            stream.extent.end
        })
    })
}

/// Commits transactions until the process ends after so many operations of its disk. Returns how many transactions had
/// their records handed to the store.
fn commit_all(disk: &SimulatedDisk, operations: u64) -> u64 {
    disk.end_in(Some(operations));
    let handed = Arc::new(Mutex::new(0));
    let (of_thread, of_process) = (Arc::clone(&handed), disk.clone());
    let keeper = Keeper::start(
        Directory::on(Arc::new(disk.clone())),
        move |_, written| {
            // A process that has ended hands over nothing.
            if !of_process.has_ended() {
                let records = written.records.len() as u64;
                *of_thread.lock().expect("no thread panics with it") += records;
            }
        },
        |_, _| {},
        |_, _| {},
        |_, _, _| {},
    );
    let keeper = keeper.expect("is started");
    for nth in 0..TRANSACTIONS {
        let offsets = nth * MESSAGES..(nth + 1) * MESSAGES;
        let changes = STREAMS.into_iter().flat_map(|id| {
            offsets.clone().map(move |offset| {
                let append = append(offset, 1_000, &[b'.'; 600], StreamLimits::default());
                StreamChange::Appended { id, append }
            })
        });
        let gone = Record::dequeued(QUEUE, nth as i64);
        keeper.submit(
            &"/".into(),
            changes.collect(),
            vec![gone],
            Position(nth + 1),
        );
    }
    keeper.stop();
    *handed.lock().expect("no thread panics with it")
}

#[test]
fn no_record_of_a_transaction_is_handed_over_before_all_of_its_streams_have_their_messages() {
    let (mut in_part, mut between) = (0, 0);
    for seed in 0..10 {
        for operations in 0..10_000 {
            let disk = SimulatedDisk::new(seed, u64::MAX);
            let handed = commit_all(&disk, operations);
            let is_whole = !disk.has_ended();
            for after in [disk.kill(), disk.lose_power()] {
                after.end_in(None);
                let found = found(after);
                let what = format!("seed {seed}, {operations} operations: {handed}, {found:?}");
                assert!(found.iter().all(|end| *end >= handed * MESSAGES), "{what}");
                in_part += u64::from(found[0] != found[1]);
                between += u64::from(handed == 0 && found.iter().all(|end| *end > 0));
            }
            if is_whole {
                assert_eq!(handed, TRANSACTIONS);
                break;
            }
        }
    }
    // The crashes that matter: between the streams, and between these and the store.
    assert!(in_part > 20 && between > 5, "{in_part} {between}");
}
