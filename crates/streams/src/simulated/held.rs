//! A keeper whose disk fails: messages that cannot be refused wait, with the departures that belong to them, and hold up
//! nothing else.

use std::collections::{BTreeMap, HashSet};
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
const OTHER: QueueId = QueueId(3);

/// Enough for a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// What a keeper reports.
#[derive(Debug)]
enum Report {
    Written(Written),
    /// The streams of which something is left after an attempt.
    Unwritten(Vec<QueueId>),
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
                unwritten.refuse(|content| content.body() == b"refused");
                unwritten.leave_out(&HashSet::new());
                let left = unwritten.streams().collect();
                sends(vhost, Report::Unwritten(left));
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
    fn unwritten(&self) -> Vec<QueueId> {
        match self.next().1 {
            Report::Unwritten(left) => left,
            report @ Report::Written(_) => panic!("it was written: {report:?}"),
        }
    }

    /// The records and the position of the next report.
    fn handed(&self) -> (Vec<Record>, Option<Position>) {
        let (_, written) = self.written();
        (written.records, written.position)
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
    Record::dequeued(QUEUE, place)
}

fn enqueued(place: i64) -> Record {
    let append = append(0, 1_000, b"other", StreamLimits::default());
    Record::enqueued(QUEUE, place, StoredMessage::new(append.content))
}

fn ends(written: &Written) -> Vec<(QueueId, u64)> {
    let streams = written.streams.iter();
    streams.map(|(id, extent, _)| (*id, extent.end)).collect()
}

#[test]
fn an_original_stays_until_its_dead_letter_is_written() {
    let rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"a letter");
    assert_eq!(rig.unwritten(), [STREAM]);
    let nothing = (vec![], Some(Position(0)));
    assert_eq!(rig.handed(), nothing, "the original is not removed alone");
    // Nothing else waits for it.
    for (position, record) in [(1, enqueued(7)), (2, dequeued(9))] {
        rig.submit_records("/", vec![], vec![record.clone()], position);
        assert_eq!(rig.handed(), (vec![record], Some(Position(position))));
    }
    assert!(rig.keeper.as_ref().map(Keeper::waiting_bytes) > Some(0));
    rig.disk.work_again();
    let (_, written) = rig.written();
    assert_eq!(written.records, [dequeued(0)]);
    assert_eq!((written.position, written.submissions), (None, 0));
    assert_eq!(ends(&written), [(STREAM, 1)]);
    assert!(written.is_going_on);
    assert!(rig.keeper.expect("runs").stop());
}

#[test]
fn messages_of_a_stream_keep_their_order_behind_a_letter_that_waits() {
    let rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"a letter");
    rig.unwritten();
    rig.handed();
    // Another stream, and this one, both with what is and what is not refused.
    for (offset, body) in [(1, &b"refused"[..]), (2, b"another letter")] {
        let append = append(offset, 1_000, body, StreamLimits::default());
        let change = StreamChange::Appended { id: OTHER, append };
        rig.submit_records("/", vec![change], vec![enqueued(offset as i64)], offset);
        let (_, written) = rig.written();
        assert_eq!(written.records, [enqueued(offset as i64)]);
        assert!(written.error.is_some() && !written.is_going_on);
    }
    rig.submit("/", 3, b"a third letter");
    rig.written();
    rig.disk.work_again();
    let (mut records, mut all) = (Vec::new(), BTreeMap::new());
    while all.len() < 2 {
        let (_, written) = rig.written();
        assert_eq!(written.position, None);
        all.extend(ends(&written));
        assert_eq!(written.is_going_on, all.len() == 2);
        records.extend(written.records);
    }
    assert_eq!(all, BTreeMap::from([(STREAM, 4), (OTHER, 3)]));
    assert_eq!(records, [dequeued(0), dequeued(3)]);
    assert!(rig.keeper.expect("runs").stop());
}

#[test]
fn a_letter_that_waits_goes_with_its_stream() {
    let rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"a letter");
    rig.unwritten();
    rig.handed();
    let gone = vec![StreamChange::Deleted { id: STREAM }];
    rig.submit_records("/", gone, vec![], 1);
    let (_, written) = rig.written();
    assert_eq!(written.records, [dequeued(0)]);
    assert_eq!(written.position, Some(Position(1)));
    assert!(written.is_going_on);
    assert!(rig.keeper.expect("runs").stop(), "nothing is left");
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
    rig.handed();
    rig.submit_records("other", vec![], vec![dequeued(5)], 1);
    let (vhost, written) = rig.written();
    assert_eq!((&*vhost, written.records), ("other", vec![dequeued(5)]));
}

#[test]
fn a_keeper_that_ends_does_not_remove_the_original_of_a_lost_letter() {
    let mut rig = Rig::start();
    rig.disk.fail_in(0, io::ErrorKind::StorageFull, u64::MAX);
    rig.submit("/", 0, b"a letter");
    rig.submit("/", 1, b"refused");
    rig.submit_records("/", vec![], vec![enqueued(7)], 2);
    let keeper = rig.keeper.take().expect("runs");
    assert!(!keeper.stop(), "not all is written");
    let written = rig
        .reports
        .try_iter()
        .filter_map(|(_, report)| match report {
            Report::Written(written) => Some(written),
            Report::Unwritten(_) => None,
        });
    let records: Vec<_> = written.flat_map(|written| written.records).collect();
    assert_eq!(records, [enqueued(7)]);
    assert_eq!(rig.disk.paths(), Vec::<String>::new());
}
