//! A keeper whose disk fails: what cannot be refused waits, and the records behind it.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosstie_disk::simulated::SimulatedDisk;
use crosstie_queues::{Position, QueueId, Record, StoredMessage, StreamChange, StreamLimits};

use super::append;
use crate::{Directory, Keeper, Unwritten, Written};

const STREAM: QueueId = QueueId(1);
const QUEUE: QueueId = QueueId(2);

/// Enough for a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// What a keeper reports.
#[derive(Debug)]
enum Report {
    Written(Written),
    /// The departures of that attempt.
    Unwritten(Vec<Record>),
}

struct Rig {
    disk: SimulatedDisk,
    keeper: Option<Keeper>,
    reports: Receiver<(Arc<str>, Report)>,
}

impl Rig {
    /// Publications with the body `refused` are refused.
    fn start() -> Self {
        let disk = SimulatedDisk::new(1, u64::MAX);
        let directory = Directory::on(Arc::new(disk.clone()));
        let (sender, reports) = channel();
        let sender = Arc::new(Mutex::new(sender));
        let send = move |vhost: &Arc<str>, report| {
            let sender = sender.lock().expect("no test panics while it holds this");
            // The test may have ended.
            let _ = sender.send((Arc::clone(vhost), report));
        };
        let sends = send.clone();
        let keeper = Keeper::start(
            directory,
            move |vhost, written| send(vhost, Report::Written(written)),
            move |vhost, mut unwritten: Unwritten<'_>| {
                let departures = unwritten.take_departures();
                unwritten.refuse(|content| content.body() == b"refused");
                unwritten.leave_out(&HashSet::new());
                sends(vhost, Report::Unwritten(departures));
            },
            |_, _| {},
            |_, _, _| {},
        );
        Self {
            disk,
            keeper: Some(keeper.expect("is started")),
            reports,
        }
    }

    /// Appends a message to the stream, whose original leaves a queue.
    fn submit(&self, vhost: &str, offset: u64, body: &[u8]) {
        let append = append(offset, 1_000, body, StreamLimits::default());
        let change = StreamChange::Appended { id: STREAM, append };
        self.submit_records(vhost, vec![change], vec![dequeued(offset as i64)], offset);
    }

    fn submit_records(
        &self,
        vhost: &str,
        changes: Vec<StreamChange>,
        records: Vec<Record>,
        position: u64,
    ) {
        let keeper = self.keeper.as_ref().expect("runs");
        keeper.submit(&vhost.into(), changes, records, Position(position));
    }

    fn next(&self) -> (Arc<str>, Report) {
        self.reports
            .recv_timeout(SOON)
            .expect("something is reported")
    }

    /// The next attempt that fails.
    fn unwritten(&self) -> Vec<Record> {
        match self.next().1 {
            Report::Unwritten(departures) => departures,
            report @ Report::Written(_) => panic!("it was written: {report:?}"),
        }
    }

    /// The next write, whatever failed before.
    fn written(&self) -> (Arc<str>, Written) {
        loop {
            if let (vhost, Report::Written(written)) = self.next() {
                return (vhost, written);
            }
        }
    }
}

fn dequeued(place: i64) -> Record {
    Record::Dequeued {
        queue: QUEUE,
        place,
    }
}

fn enqueued(place: i64) -> Record {
    let append = append(0, 1_000, b"other", StreamLimits::default());
    Record::Enqueued {
        queue: QUEUE,
        place,
        message: StoredMessage {
            content: append.content,
            expires_at: None,
            deliveries: 0,
        },
    }
}

#[test]
fn an_original_stays_until_its_dead_letter_is_written() {
    let rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"a letter");
    assert_eq!(rig.unwritten(), [], "the original is not removed alone");
    // Later records wait, too; those that only remove may make room at once.
    rig.submit_records("/", vec![], vec![enqueued(7)], 1);
    rig.submit_records("/", vec![], vec![dequeued(9)], 2);
    while rig.unwritten() != [dequeued(9)] {}
    let waiting = rig.keeper.as_ref().map(Keeper::waiting_bytes);
    assert!(waiting > Some(0));
    rig.disk.work_again();
    let (_, written) = rig.written();
    assert_eq!(written.records, [dequeued(0), enqueued(7), dequeued(9)]);
    assert_eq!(
        (written.position, written.submissions),
        (Some(Position(2)), 3)
    );
    let extents = written
        .streams
        .iter()
        .map(|(id, extent, _)| (*id, extent.end));
    assert_eq!(extents.collect::<Vec<_>>(), [(STREAM, 1)]);
    assert_eq!(written.error, None);
    assert!(rig.keeper.expect("runs").stop());
}

#[test]
fn refused_publications_hold_nothing_back() {
    let rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"refused");
    let (_, written) = rig.written();
    assert_eq!(written.records, [dequeued(0)]);
    assert!(written.error.is_some() && written.streams.is_empty());
    // A later failure must not bring it back.
    rig.disk.work_again();
    rig.submit("/", 1, b"kept");
    let (_, written) = rig.written();
    let extents = written
        .streams
        .iter()
        .map(|(_, extent, _)| (extent.first, extent.end));
    assert_eq!(extents.collect::<Vec<_>>(), [(1, 2)]);
}

#[test]
fn other_vhosts_are_written_while_one_waits() {
    let rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("one", 0, b"a letter");
    rig.unwritten();
    rig.submit_records("other", vec![], vec![dequeued(5)], 1);
    let (vhost, written) = rig.written();
    assert_eq!((&*vhost, written.records), ("other", vec![dequeued(5)]));
}

#[test]
fn a_keeper_that_ends_hands_over_no_record_behind_a_lost_letter() {
    let mut rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"a letter");
    rig.submit("/", 1, b"refused");
    rig.submit_records("/", vec![], vec![enqueued(7)], 2);
    let keeper = rig.keeper.take().expect("runs");
    assert!(!keeper.stop(), "not all is written");
    let written = |(_, report): (_, Report)| matches!(report, Report::Written(_));
    assert!(!rig.reports.try_iter().any(written));
    assert_eq!(rig.disk.paths(), Vec::<String>::new());
}
