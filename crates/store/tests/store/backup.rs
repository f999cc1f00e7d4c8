//! Copies of a store: of one in use, while it commits, and of one that nobody has open.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use crosstie_queues::{Position, Record};
use crosstie_store::{
    Backup, Batch, Committer, Store, StoreConfig, StoreError, StoreErrorKind, back_up,
};

use crate::rig::*;

fn target(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("backup.db")
}

/// What a copy has kept, opened as any store.
fn kept_in(path: PathBuf) -> Vec<Record> {
    let config = StoreConfig::new(path);
    let (_, restored) = Store::open(config).expect("a store");
    restored.into_iter().map(|kept| kept.record).collect()
}

fn asked(committer: &Committer, path: PathBuf) -> mpsc::Receiver<Result<Backup, StoreError>> {
    asked_with(committer, path, Batch::default)
}

fn asked_with(
    committer: &Committer,
    path: PathBuf,
    last: impl FnOnce() -> Batch + Send + 'static,
) -> mpsc::Receiver<Result<Backup, StoreError>> {
    let (done, made) = mpsc::channel();
    committer.back_up(path, last, move |backup| {
        done.send(backup).expect("somebody waits")
    });
    made
}

#[test]
fn a_copy_alone_has_the_records_of_its_end() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![queue(1, "q"), enqueued(1, 2)]).expect("room");
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    let last = || {
        let mut batch = Batch::default();
        let delivered = vec![returned(1, 2, 1), rested(1, 3)];
        batch.push(&"/".into(), delivered, Position(0));
        batch
    };
    let made = asked_with(&committer, target(&directory), last);
    made.recv().expect("an answer").expect("a copy");
    committer.stop().expect("written");
    let kept = kept_in(target(&directory));
    assert_eq!(kept.last(), Some(&rested(1, 3)));
    let deliveries = |records: &[Record]| {
        let of = records.iter().find_map(|record| match record {
            Record::Enqueued { message, .. } => Some(message.deliveries),
            _ => None,
        });
        of.expect("a message")
    };
    assert_eq!(deliveries(&kept), 1);
    let own = kept_in(path(&directory));
    assert_eq!((deliveries(&own), own.len()), (0, 2));
}

#[test]
fn a_store_with_a_damaged_declaration_makes_no_backup() {
    let directory = directory();
    let segments = StoreConfig {
        segment_bytes: 64 << 10,
        ..config(&directory)
    };
    let (mut store, _) = Store::open(segments).expect("a store");
    commit(&mut store, vec![queue(1, "declared")]).expect("room");
    for place in 0..10 {
        commit(&mut store, vec![long(place)]).expect("room");
    }
    let damage = || {
        let segment = path(&directory).join("0000000001.segment");
        let bytes = fs::read(&segment).expect("a segment");
        let name = bytes.windows(8).position(|bytes| bytes == b"declared");
        let file = fs::OpenOptions::new().write(true).open(&segment);
        let at = name.expect("a declaration") as u64 + 3;
        file.and_then(|file| file.write_all_at(b"L", at))
            .expect("written");
    };
    damage();
    // Whether the node runs or not.
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    let made = asked(&committer, target(&directory));
    let running = made.recv().expect("an answer");
    committer.stop().expect("written");
    for refused in [running, back_up(&path(&directory), &target(&directory))] {
        let error = refused.expect_err("a declaration is damaged");
        assert!(matches!(error.kind, StoreErrorKind::Loss { .. }), "{error}");
        assert!(error.path == path(&directory), "{error}");
        assert!(!target(&directory).exists());
    }
}

/// Long enough that a store of some hundred of them is copied in several slices.
fn long(place: i64) -> Record {
    let content = content(&vec![place as u8; 60_000]);
    enqueued_content(1, place, &content)
}

#[test]
fn a_copy_has_earlier_commits_and_a_prefix_of_later_ones() {
    let directory = directory();
    let (store, _) = Store::open(config(&directory)).expect("a store");
    let committed = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&committed);
    let committer = Committer::start(store, move |_, position, result| {
        assert!(result.is_ok());
        *seen.lock().expect("no panic") = position.0;
    })
    .expect("a thread");
    let vhost = "/".into();
    let submit = |place: u64| {
        let record = match place {
            0 => queue(1, "q"),
            place => long(place as i64),
        };
        committer.submit(&vhost, vec![record], Position(place));
    };
    const BEFORE: u64 = 200;
    (0..=BEFORE).for_each(submit);
    while *committed.lock().expect("no panic") < BEFORE {
        std::thread::yield_now();
    }
    let made = asked(&committer, target(&directory));
    // As fast as they can be written, so that it has to keep up.
    let mut place = BEFORE;
    let backup = loop {
        match made.try_recv() {
            Ok(backup) => break backup.expect("a backup"),
            Err(_) if committer.waiting_bytes() < 8 << 20 => {
                place += 1;
                submit(place);
            }
            Err(_) => std::thread::yield_now(),
        }
    };
    committer.stop().expect("all is written");
    assert_eq!(backup.path, target(&directory));
    assert_eq!(
        backup.bytes,
        fs::metadata(&backup.path).expect("a file").len()
    );
    let kept = kept_in(backup.path);
    let all: Vec<_> = std::iter::once(queue(1, "q"))
        .chain((1..=place as i64).map(long))
        .collect();
    assert!(kept.len() > BEFORE as usize, "{}", kept.len());
    assert_eq!(kept, all[..kept.len()]);
    assert_eq!(kept_in(path(&directory)), all, "the store itself");
    let names = fs::read_dir(&directory).expect("a directory");
    let mut drafts = names.map(|entry| entry.expect("a name").file_name());
    assert!(drafts.all(|name| !name.to_string_lossy().contains(".partial")));
}

#[test]
fn nothing_is_overwritten() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![exchange("x")]).expect("a commit");
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    for (ending, is_draft) in [("", false), (".partial", true)] {
        let mut there = target(&directory).into_os_string();
        there.push(ending);
        fs::write(&there, "mine").expect("a file");
        let refused = asked(&committer, target(&directory)).recv();
        let refused = refused.expect("an answer").expect_err(ending);
        assert_eq!(refused.path, PathBuf::from(&there));
        match is_draft {
            true => assert!(matches!(refused.kind, StoreErrorKind::Partial)),
            false => assert!(matches!(refused.kind, StoreErrorKind::Exists)),
        }
        assert_eq!(fs::read(&there).expect("a file"), b"mine");
        fs::remove_file(&there).expect("a file");
    }
    let nowhere = directory.path().join("missing/backup.db");
    let refused = asked(&committer, nowhere).recv().expect("an answer");
    assert!(matches!(
        refused.expect_err("nowhere").kind,
        StoreErrorKind::Io { .. }
    ));
    // And it commits as ever.
    let made = asked(&committer, target(&directory)).recv();
    made.expect("an answer").expect("a backup");
    committer.stop().expect("all is written");
    assert_eq!(kept_in(target(&directory)), [exchange("x")]);
}

#[test]
fn of_nothing_there_is_an_empty_store() {
    let directory = directory();
    let (store, _) = Store::open(config(&directory)).expect("a store");
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    let made = asked(&committer, target(&directory)).recv();
    made.expect("an answer").expect("a backup");
    committer.stop().expect("all is written");
    assert!(!path(&directory).exists());
    assert_eq!(kept_in(target(&directory)), []);
}

#[test]
fn a_store_that_is_not_open() {
    let directory = directory();
    let missing = back_up(&path(&directory), &target(&directory));
    assert!(matches!(
        missing.expect_err("no store").kind,
        StoreErrorKind::Io { .. }
    ));
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![exchange("x"), queue(1, "q"), long(1)]).expect("a commit");
    let in_use = back_up(&path(&directory), &target(&directory));
    assert!(matches!(
        in_use.expect_err("it is open").kind,
        StoreErrorKind::InUse
    ));
    drop(store);
    back_up(&path(&directory), &target(&directory)).expect("a backup");
    let all = [exchange("x"), queue(1, "q"), long(1)];
    assert_eq!(kept_in(target(&directory)), all);
    assert_eq!(kept_in(path(&directory)), all);
}
