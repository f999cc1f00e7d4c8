//! Pages of deep queues, as a vhost requests them after a restart.

use std::sync::mpsc;

use crosstie_amqp::{Method, Properties, TableBuf, Value};
use crosstie_queues::{
    Fault, LEVELED, Outbox, Page, QueueId, Record, Refused, Time, Vhost, VhostConfig, Want,
};
use crosstie_store::{Committer, Loaded, Store};

use crate::rig::{self, commit, config, directory, enqueued, few, queue};

struct Nobody;

impl Outbox<()> for Nobody {
    fn send(&mut self, _to: &(), _channel: u16, _method: &Method<'_>) {}

    fn send_content(
        &mut self,
        _to: &(),
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        _body: &[u8],
    ) -> Result<(), Refused> {
        Ok(())
    }

    fn send_owed(
        &mut self,
        _to: &(),
        _channel: u16,
        _method: &Method<'_>,
        _properties: Properties<'_>,
        _body: &[u8],
    ) -> Result<(), Refused> {
        Ok(())
    }

    fn close_channel(&mut self, _to: &(), _channel: u16, _fault: &Fault) {}

    fn hold(&mut self, _to: &(), _delta: isize) {}
}

/// A store with 50 messages of queue 1, of which only the extent is restored, and 20 of a queue that is not declared.
fn deep() -> (tempfile::TempDir, Store, Vhost<()>) {
    let directory = directory();
    {
        let (mut store, _) = Store::open(config(&directory)).expect("a store");
        let mut records = vec![queue(1, "deep")];
        records.extend((0..50).map(|place| enqueued(1, place)));
        records.extend((0..20).map(|place| enqueued(2, place)));
        commit(&mut store, records).expect("is written");
    }
    let (mut store, restored) = Store::open_deep(config(&directory), few(10)).expect("a store");
    store.wake().expect("is written");
    let of_first =
        |record: &Record| matches!(record, Record::Enqueued { queue, .. } if queue.0 == 1);
    assert!(!restored.iter().any(|found| of_first(&found.record)));
    let mut vhost = Vhost::new(VhostConfig::named("/"), 1);
    for found in restored {
        vhost.restore(Time(0), found.record);
    }
    vhost.restored(Time(0), &mut Nobody);
    (directory, store, vhost)
}

fn read(store: Store, want: Want, bytes_max: usize) -> Page {
    let (done, page) = mpsc::channel();
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    committer.read_page(&"/".into(), want, bytes_max, move |read| {
        done.send(read).expect("it is waited for");
    });
    page.recv().expect("an answer").expect("a page")
}

#[test]
fn a_page_ends_at_its_bound_and_says_where() {
    let (_directory, store, mut vhost) = deep();
    assert_eq!(
        vhost.queues().next().map(|queue| queue.messages_ready),
        Some(50)
    );
    let want = vhost.take_want().expect("a page is due");
    assert_eq!((want.from, want.to), (0, 49));
    let page = read(store, want, 1_000);
    let places: Vec<i64> = page.messages.iter().map(|paged| paged.place).collect();
    assert!((1..50).contains(&places.len()));
    assert_eq!(places, (0..places.len() as i64).collect::<Vec<i64>>());
    assert_eq!(page.upto, places.len() as i64 - 1);
    assert_eq!(vhost.handle_page(Time(0), &want, page, &mut Nobody), 0);
    assert_eq!(
        vhost.queues().next().map(|queue| queue.messages_ready),
        Some(50)
    );
}

#[test]
fn a_whole_page_has_all_messages_of_its_queue() {
    let (_directory, store, mut vhost) = deep();
    let want = vhost.take_want().expect("a page is due");
    let page = read(store, want, usize::MAX);
    assert_eq!((page.messages.len(), page.upto), (50, 49));
    let second = &page.messages[1].message;
    assert_eq!(second.content.body(), b"message 1");
    assert_eq!(vhost.handle_page(Time(0), &want, page, &mut Nobody), 0);
    assert!(vhost.take_want().is_none());
}

#[test]
fn pages_that_wait_are_read_together_and_each_has_its_own_messages() {
    // All queues are in one segment, or one after another in several.
    for queues_of_commit in [80, 1] {
        check_pages_that_wait(queues_of_commit);
    }
}

fn check_pages_that_wait(queues_of_commit: usize) {
    const QUEUES: u64 = 80;
    let directory = directory();
    {
        let mut config = config(&directory);
        config.segment_bytes = 64 << 10;
        let (mut store, _) = Store::open(config).expect("a store");
        let all: Vec<u64> = (1..=QUEUES).collect();
        let declared = all.iter().map(|id| queue(*id, &format!("q{id}")));
        commit(&mut store, declared.collect()).expect("is written");
        for ids in all.chunks(queues_of_commit) {
            // Queue 7 has every second place alone.
            let records = (0..30).flat_map(|place| {
                let ids = ids.iter().filter(move |id| **id != 7 || place % 2 == 0);
                ids.map(move |id| enqueued(*id, place))
            });
            commit(&mut store, records.collect()).expect("is written");
        }
    }
    let (mut store, restored) = Store::open_deep(config(&directory), few(10)).expect("a store");
    store.wake().expect("is written");
    let mut vhost = Vhost::new(VhostConfig::named("/"), 1);
    for found in restored {
        vhost.restore(Time(0), found.record);
    }
    vhost.restored(Time(0), &mut Nobody);
    let wants: Vec<Want> = std::iter::from_fn(|| vhost.take_want()).collect();
    assert_eq!(wants.len() as u64, QUEUES);
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    let (done, pages) = mpsc::channel();
    let (go_on, all_wait) = mpsc::channel::<()>();
    let mut all_wait = Some(all_wait);
    for want in wants {
        let (done, all_wait) = (done.clone(), all_wait.take());
        committer.read_page(&"/".into(), want, usize::MAX, move |read| {
            // The first is handed over once all others wait.
            all_wait.map(|all_wait| all_wait.recv());
            done.send((want, read)).expect("it is waited for");
        });
    }
    go_on.send(()).expect("it is waited for");
    for (want, read) in pages.iter().take(QUEUES as usize) {
        let page = read.expect("a page");
        let places: Vec<i64> = page.messages.iter().map(|paged| paged.place).collect();
        let step = if want.stored == Some(QueueId(7)) {
            2
        } else {
            1
        };
        assert_eq!(places, (0..30).step_by(step).collect::<Vec<i64>>());
        assert_eq!(page.upto, want.to);
        for paged in &page.messages {
            let body = format!("message {}", paged.place);
            assert_eq!(paged.message.content.body(), body.as_bytes());
        }
        assert_eq!(vhost.handle_page(Time(0), &want, page, &mut Nobody), 0);
    }
}

#[test]
fn messages_that_are_missing_are_counted() {
    let (_directory, store, mut vhost) = deep();
    let want = vhost.take_want().expect("a page is due");
    let mut page = read(store, want, usize::MAX);
    page.messages.truncate(47);
    assert_eq!(vhost.handle_page(Time(0), &want, page, &mut Nobody), 3);
    assert_eq!(
        vhost.queues().next().map(|queue| queue.messages_ready),
        Some(47)
    );
}

#[test]
fn a_queue_with_priorities_is_paged_by_each_of_them() {
    let directory = directory();
    let place = |level: i64, age: i64| (level + 1) * LEVELED + age;
    let ages = [(0, 10..30), (2, 30..60), (0, 60..70), (255, 70..71)];
    let places = ages
        .into_iter()
        .flat_map(|(level, ages)| ages.map(move |age| place(level, age)));
    {
        let (mut store, _) = Store::open(config(&directory)).expect("a store");
        let mut records = vec![Record::queue_declared(
            QueueId(1),
            "deep",
            TableBuf::new().with("x-max-priority", Value::I32(255)),
        )];
        // These have the places of an earlier version.
        records.extend((0..5).map(|place| enqueued(1, place)));
        records.extend(places.map(|place| enqueued(1, place)));
        commit(&mut store, records).expect("is written");
    }
    let (_, restored) = Store::open_deep(config(&directory), few(10)).expect("a store");
    let mut vhost = Vhost::new(VhostConfig::named("/"), 1);
    let mut handed_over = Vec::new();
    let mut kept = Vec::new();
    for found in restored {
        match &found.record {
            Record::Enqueued { place, .. } => handed_over.push(*place),
            Record::Kept(found) => kept.push((found.from, found.to, found.messages)),
            _ => {}
        }
        vhost.restore(Time(0), found.record);
    }
    assert_eq!(handed_over, [0, 1, 2, 3, 4]);
    let expected = [
        (place(0, 10), place(0, 69), 30),
        (place(2, 30), place(2, 59), 30),
        (place(255, 70), place(255, 70), 1),
    ];
    assert_eq!(kept, expected);
    vhost.restored(Time(0), &mut Nobody);
    let found = vhost.queues().next().map(|queue| queue.messages_ready);
    assert_eq!(found, Some(66));
    let want = vhost.take_want().expect("a page is due");
    assert_eq!((want.from, want.to), (place(255, 70), place(255, 70)));
}

#[test]
fn messages_of_an_undeclared_queue_are_gone_after_a_start() {
    let (directory, store, _) = deep();
    drop(store);
    let kept = rig::kept(&directory);
    let undeclared =
        |record: &Record| matches!(record, Record::Enqueued { queue, .. } if queue.0 == 2);
    assert!(!kept.iter().any(|(_, record)| undeclared(record)));
    assert_eq!(kept.len(), 51);
}

#[test]
fn a_start_reads_short_queues_only_as_far_as_there_is_memory() {
    let directory = directory();
    {
        let (mut store, _) = Store::open(config(&directory)).expect("a store");
        let mut records = Vec::new();
        for (id, messages) in [(1, 30), (2, 5), (3, 9)] {
            records.push(queue(id, &format!("q{id}")));
            records.extend((0..messages).map(|place| enqueued(id, place)));
        }
        commit(&mut store, records).expect("is written");
    }
    // The fewest messages first: those of 2, then of 3.
    for (bytes_max, expected) in [(0, vec![]), (2_000, vec![2]), (20_000, vec![2, 3])] {
        let loaded = Loaded {
            messages_max: 10,
            bytes_max,
        };
        let (_, restored) = Store::open_deep(config(&directory), loaded).expect("a store");
        let mut read: Vec<u64> = Vec::new();
        let mut kept = 0;
        for found in restored {
            match found.record {
                Record::Enqueued { queue, .. } => read.push(queue.0),
                Record::Kept(of) => kept += of.messages,
                _ => {}
            }
        }
        assert_eq!(read.len() + kept, 44);
        read.dedup();
        assert_eq!(read, expected, "{bytes_max}");
    }
}
