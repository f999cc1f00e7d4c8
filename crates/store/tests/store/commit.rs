//! The committer: who is told what, in which order, and what happens while a store fails.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use crosstie_queues::{Position, Record};
use crosstie_store::{Committer, CommitterConfig, NotCommitted, Store, StoreConfig};

use crate::rig::*;

/// What was told: a vhost's position, and an error.
type Told = (String, u64, Option<String>);

fn start(config: StoreConfig) -> (Committer, Receiver<Told>) {
    let committer = CommitterConfig {
        retry_ms: 1,
        commit_bytes_max: 10_000,
        ..CommitterConfig::default()
    };
    start_with(config, committer)
}

fn start_with(store: StoreConfig, config: CommitterConfig) -> (Committer, Receiver<Told>) {
    let (store, _) = Store::open(store).expect("a store");
    let (tell, told) = mpsc::channel();
    let on_committed =
        move |vhost: &str, position: Position, outcome: Result<(), NotCommitted<'_>>| {
            let error = outcome.err().map(|failed| failed.error.to_string());
            // Nobody listens any more at the end of some tests.
            let _ = tell.send((vhost.to_owned(), position.0, error));
        };
    let committer = Committer::start_with(store, config, on_committed, |_| {});
    (committer.expect("a thread"), told)
}

fn next(told: &Receiver<Told>) -> Told {
    // A test that waits for what never comes says so.
    told.recv_timeout(Duration::from_secs(60))
        .expect("somebody is told")
}

/// Waits until the vhost is told that a position is kept.
fn await_committed(told: &Receiver<Told>, vhost: &str, position: u64) {
    loop {
        let (name, reached, error) = next(told);
        if name == vhost && reached >= position && error.is_none() {
            return;
        }
    }
}

#[test]
fn positions_are_told_in_order_and_are_on_the_disk_then() {
    let directory = directory();
    let (committer, told) = start(config(&directory));
    let vhosts: Vec<Arc<str>> = vec!["a".into(), "b".into()];
    let mut waiting = 0;
    for place in 1..=1000 {
        for vhost in &vhosts {
            waiting = waiting.max(committer.submit(
                vhost,
                vec![enqueued(1, place)],
                Position(place as u64),
            ));
        }
    }
    assert!(waiting > 0);
    let mut reached = [0, 0];
    let mut commits = 0;
    while reached != [1000, 1000] {
        let (vhost, position, error) = next(&told);
        let known = &mut reached[usize::from(vhost == "b")];
        assert!(*known < position, "{known} and then {position}");
        assert_eq!(error, None);
        *known = position;
        commits += 1;
    }
    assert!(commits < 1000, "many are committed at once");
    committer.stop().expect("all is written");
    let expected = |vhost: &str| {
        (1..=1000)
            .map(|place| (vhost.to_owned(), enqueued(1, place)))
            .collect::<Vec<_>>()
    };
    assert_eq!(kept(&directory), [expected("a"), expected("b")].concat());
}

#[test]
fn waiting_records_are_written_at_the_end() {
    let directory = directory();
    let (committer, _) = start(config(&directory));
    let all: Vec<Record> = (1..=3000).map(|place| enqueued(1, place)).collect();
    for (index, record) in all.iter().enumerate() {
        committer.submit(
            &"/".into(),
            vec![record.clone()],
            Position(index as u64 + 1),
        );
    }
    drop(committer);
    assert_eq!(kept(&directory), of_slash(&all));
}

#[test]
fn a_position_without_records_is_told() {
    let directory = directory();
    let (committer, told) = start(config(&directory));
    committer.submit(&"/".into(), vec![], Position(7));
    assert_eq!(next(&told), ("/".to_owned(), 7, None));
    committer.stop().expect("nothing is written");
    assert!(!path(&directory).exists());
}

#[test]
fn records_gather_in_a_pause() {
    let directory = directory();
    let pausing = CommitterConfig {
        pause_ms: 3_600_000,
        pause_bytes_max: 10_000,
        ..CommitterConfig::default()
    };
    let (committer, told) = start_with(config(&directory), pausing);
    let submit = |position: u64, count: i64| {
        let first = position as i64 * 1000;
        let records = (first..first + count).map(|place| enqueued(1, place));
        committer.submit(&"/".into(), records.collect(), Position(position));
    };
    // The first has no commit before it.
    submit(1, 1);
    assert_eq!(next(&told), ("/".to_owned(), 1, None));
    for position in 2..=9 {
        submit(position, 1);
    }
    assert_eq!(told.try_recv(), Err(TryRecvError::Empty));
    submit(10, 100);
    assert_eq!(next(&told), ("/".to_owned(), 10, None), "in one commit");
    submit(11, 1);
    committer.stop().expect("all is written");
    assert_eq!(next(&told), ("/".to_owned(), 11, None));
    assert_eq!(kept(&directory).len(), 1 + 8 + 100 + 1);
}

#[test]
fn a_full_store_fails_and_recovers_when_there_is_room() {
    let directory = directory();
    let bounded = StoreConfig {
        bytes_max: Some(200 << 10),
        ..config(&directory)
    };
    let (committer, told) = start(bounded);
    let slash = "/".into();
    let large = |place| enqueued_content(1, place, &content(&[9; 50_000]));
    committer.submit(&slash, vec![large(1)], Position(1));
    await_committed(&told, "/", 1);
    assert!(!committer.is_failing());
    committer.submit(
        &slash,
        vec![large(2), large(3), large(4), large(5)],
        Position(2),
    );
    let (_, position, error) = next(&told);
    assert_eq!(position, 2);
    let error = error.expect("it does not fit");
    assert!(error.contains("no space left for it"), "{error}");
    assert!(committer.is_failing());
    assert!(committer.waiting_bytes() > 200_000, "what failed is kept");
    // It is told once; a later position is told that it failed, too.
    committer.submit(&slash, vec![enqueued(2, 1)], Position(3));
    let (_, position, error) = next(&told);
    assert_eq!((position, error.is_some()), (3, true));
    // What is kept already can be taken out even now, and what is not never has to be written.
    committer.submit(
        &slash,
        vec![dequeued(1, 4), dequeued(1, 1), dequeued(1, 5)],
        Position(4),
    );
    await_committed(&told, "/", 4);
    assert!(!committer.is_failing());
    assert_eq!(committer.waiting_bytes(), 0);
    committer.stop().expect("all is written");
    let expected = [large(2), large(3), enqueued(2, 1)];
    assert_eq!(kept(&directory), of_slash(&expected));
}

#[test]
fn a_full_store_takes_messages_away_though_the_rest_does_not_fit() {
    let directory = directory();
    let bounded = StoreConfig {
        bytes_max: Some(400 << 10),
        ..config(&directory)
    };
    let (committer, told) = start(bounded);
    let slash = "/".into();
    let shared = content(&[7; 5_000]);
    let mut records: Vec<_> = (1..=600).map(|place| enqueued(1, place)).collect();
    records.extend((1..=1300).map(|place| enqueued_content(2, place, &shared)));
    records.push(enqueued_content(3, 1, &shared));
    records.extend([enqueued(4, 1), enqueued(4, 2)]);
    committer.submit(&slash, records, Position(1));
    await_committed(&told, "/", 1);
    // What is too large, and what goes.
    let too_large = enqueued_content(5, 1, &content(&[9; 500_000]));
    committer.submit(&slash, vec![too_large], Position(2));
    assert!(next(&told).2.is_some(), "it does not fit");
    committer.submit(&slash, vec![purged(1)], Position(3));
    committer.submit(&slash, vec![purged(2), dequeued(4, 1)], Position(4));
    // It comes with something that has to be kept.
    committer.submit(&slash, vec![enqueued(6, 1), dequeued(4, 2)], Position(5));
    while next(&told).1 < 5 {}
    committer.stop().expect_err("it is full");
    let expected = [enqueued_content(3, 1, &shared), enqueued(4, 2)];
    assert_eq!(kept(&directory), of_slash(&expected));
}

#[test]
fn a_store_that_fails_until_the_end_reports_it_and_keeps_its_state() {
    let directory = directory();
    let bounded = StoreConfig {
        bytes_max: Some(200 << 10),
        ..config(&directory)
    };
    let (committer, told) = start(bounded);
    committer.submit(&"/".into(), vec![enqueued(1, 1)], Position(1));
    await_committed(&told, "/", 1);
    let too_large = enqueued_content(1, 2, &content(&[9; 500_000]));
    committer.submit(&"/".into(), vec![too_large], Position(2));
    let error = committer.stop().expect_err("it is full");
    assert!(
        error.to_string().contains("no space left for it"),
        "{error}"
    );
    assert_eq!(kept(&directory), of_slash(&[enqueued(1, 1)]));
}

#[test]
fn a_file_that_cannot_be_made_is_made_when_it_can() {
    let directory = directory();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).expect("made");
    let config = StoreConfig::new(inner.join("crosstie.store"));
    let (committer, told) = start(config.clone());
    fs::remove_dir(&inner).expect("removed");
    committer.submit(&"/".into(), vec![enqueued(1, 1)], Position(1));
    let (_, _, error) = next(&told);
    let error = error.expect("there is no directory");
    assert!(error.contains("inner/crosstie.store: making it"), "{error}");
    fs::create_dir(&inner).expect("made");
    await_committed(&told, "/", 1);
    committer.stop().expect("all is written");
    let (_, restored) = Store::open(config).expect("a store");
    assert_eq!(restored.len(), 1);
}
