//! Damage of a store that was confirmed: it is named, nothing is changed before it is accepted, and the rest is read.

use std::fs;
use std::path::{Path, PathBuf};

use crosstie_queues::{Position, QueueId, Record};
use crosstie_store::{
    Batch, Store, StoreConfig, StoreError, StoreErrorKind, back_up, check, contents, restore,
    salvage,
};

use crate::rig::*;

/// The only segment of a store.
fn segment(path: &Path) -> PathBuf {
    let files = snapshot(path).into_iter().map(|(file, _)| file);
    let mut segments = files.filter(|file| file.extension().is_some_and(|end| end == "segment"));
    segments.next().expect("a segment")
}

/// Changes a byte of the first message of queue 2, whose bodies are ones.
fn damage(path: &Path) {
    let segment = segment(path);
    let mut bytes = fs::read(&segment).expect("a segment");
    let body = bytes.windows(64).position(|bytes| *bytes == [1; 64]);
    bytes[body.expect("a body") + 40] = 2;
    fs::write(&segment, bytes).expect("written");
}

/// Fills a sector of the segment with zeros: nobody knows whose records were there.
fn lose_records(path: &Path) {
    let segment = segment(path);
    let mut bytes = fs::read(&segment).expect("a segment");
    bytes[20_480..20_992].fill(0);
    fs::write(&segment, bytes).expect("written");
}

fn accepting(directory: &tempfile::TempDir) -> StoreConfig {
    StoreConfig {
        accepts_loss: true,
        ..config(directory)
    }
}

fn refused(directory: &tempfile::TempDir) -> StoreError {
    let before = snapshot(&path(directory));
    let error = Store::open(config(directory)).expect_err("something is missing");
    assert!(matches!(error.kind, StoreErrorKind::Loss { .. }), "{error}");
    assert_eq!(snapshot(&path(directory)), before, "after {error}");
    error
}

#[test]
fn a_damaged_message_is_named_with_its_queue_and_the_rest_is_there() {
    let directory = filled();
    damage(&path(&directory));
    for _ in 0..2 {
        let (mut store, restored) = Store::open(config(&directory)).expect("the rest");
        assert_eq!(restored.len(), 3 + 2000 + 1);
        // Its queue is read page by page, up to the damage.
        let extent = &restored[2003].record;
        assert!(
            matches!(extent, Record::Kept(kept) if kept.messages == 10 && kept.queue == QueueId(2))
        );
        let damage = store.damage();
        assert_eq!(damage.len(), 1);
        assert_eq!((damage[0].id, damage[0].messages), (QueueId(2), 1));
        assert_eq!(damage[0].to_string(), "queue 'r' of vhost '/': 1 message");
        // It is still known after a start that was not told to forget it.
        store.wake().expect("room");
        commit(&mut store, vec![enqueued(1, 5000), dequeued(1, 5000)]).expect("room");
    }
    let checked = check(&path(&directory)).expect("readable");
    assert_eq!((checked.queues().count(), checked.whole()), (2, 2009));
    assert_eq!((checked.lost(), checked.unknown_records), (1, 0));
    let fault = &checked.faults[0];
    assert!(fault.is_loss, "{fault:?}");
    assert_eq!(fault.what, "queue 'r' of vhost '/': 1 message is damaged");
    contents(&path(&directory)).expect_err("it is not whole");
    let (mut store, restored) = Store::open(accepting(&directory)).expect("the rest");
    assert_eq!(restored.len(), 3 + 2000 + 9);
    store.wake().expect("room");
    drop(store);
    assert!(check(&path(&directory)).expect("readable").is_whole());
    assert_eq!(kept(&directory).len(), 3 + 2000 + 9);
}

#[test]
fn missing_records_are_a_loss_until_that_is_accepted() {
    let directory = filled();
    lose_records(&path(&directory));
    let error = refused(&directory).to_string();
    assert!(
        error.contains("records of segment 1, of queues that are not known"),
        "{error}"
    );
    assert!(error.contains("--accept-loss"), "{error}");
    let (mut store, restored) = Store::open(accepting(&directory)).expect("the rest");
    let left = restored.len();
    assert!((1900..2013).contains(&left), "{left}");
    store.wake().expect("room");
    commit(&mut store, vec![enqueued(1, 5000)]).expect("room");
    drop(store);
    for _ in 0..2 {
        assert_eq!(kept(&directory).len(), left + 1);
    }
}

#[test]
fn a_cut_or_missing_segment_is_a_loss() {
    for length in [None, Some(0), Some(64), Some(10_000)] {
        let directory = filled();
        let segment = segment(&path(&directory));
        match length {
            None => fs::remove_file(&segment).expect("removed"),
            Some(length) => {
                let bytes = fs::read(&segment).expect("a segment");
                fs::write(&segment, &bytes[..length]).expect("written");
            }
        }
        let error = refused(&directory);
        assert!(error.to_string().contains("record"), "{length:?}: {error}");
        let (mut store, _) = Store::open(accepting(&directory)).expect("the rest");
        store.wake().expect("room");
        commit(&mut store, vec![queue(9, "new")]).expect("room");
        drop(store);
        assert!(
            kept(&directory).contains(&("/".to_owned(), queue(9, "new"))),
            "{length:?}"
        );
    }
}

#[test]
fn a_missing_segment_with_an_index_names_its_queues() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![queue(1, "first"), queue(2, "second")]).expect("room");
    // Into several segments.
    for place in 0..40 {
        let body = vec![place as u8; 1 << 20];
        commit(
            &mut store,
            vec![enqueued_content(
                1 + place as u64 % 2,
                place,
                &content(&body),
            )],
        )
        .expect("room");
    }
    drop(store);
    fs::remove_file(path(&directory).join("0000000002.segment")).expect("a segment");
    let error = refused(&directory).to_string();
    assert!(
        error.contains("segment 2 is missing, with queue 'first' of vhost '/': ")
            && error.contains("queue 'second' of vhost '/': "),
        "{error}"
    );
    let (mut store, restored) = Store::open(accepting(&directory)).expect("the rest");
    assert!(restored.len() > 20);
    store.wake().expect("room");
    drop(store);
    assert_eq!(kept(&directory).len(), restored.len());
}

#[test]
fn messages_without_their_declaration_are_named_and_kept() {
    // Of the second queue, and of the vhost.
    for (bytes, expected, anew) in [
        (
            &b"second"[..],
            vec!["queue 2 of vhost 'tenant': 10 messages without"],
            ("tenant", "salvaged-2"),
        ),
        (
            &b"tenant"[..],
            vec![
                "queue 1 of vhost number 1: 5 messages without",
                "queue 2 of vhost number 1: 10 ",
            ],
            ("salvaged-1", "second"),
        ),
    ] {
        let directory = directory();
        let (mut store, _) = Store::open(config(&directory)).expect("a store");
        let mut records = vec![queue(1, "first"), queue(2, "second")];
        records.extend((0..5).map(|place| enqueued(1, place)));
        records.extend((0..10).map(|place| enqueued(2, place)));
        let mut batch = Batch::default();
        batch.push(&"tenant".into(), records, Position(1));
        store.commit(&batch).expect("written");
        drop(store);
        let segment = segment(&path(&directory));
        let mut whole = fs::read(&segment).expect("a segment");
        let at = whole.windows(bytes.len()).position(|found| found == bytes);
        whole[at.expect("a declaration")] ^= 1;
        fs::write(&segment, whole).expect("written");
        let error = refused(&directory).to_string();
        for clause in expected {
            assert!(error.contains(clause), "{error}");
        }
        assert!(error.contains("store salvage"), "{error}");
        let to = directory.path().join("salvaged");
        let salvaged = salvage(&path(&directory), &to).expect("the rest");
        assert_eq!(salvaged.messages, 15);
        let (vhost, name) = anew;
        let (mut store, restored) = Store::open(accepting(&directory)).expect("the rest");
        let accepted = store.accepted().join("; ");
        let clause = format!(
            "the declaration of queue number 2, whose 10 messages are now in queue '{name}' of vhost '{vhost}'"
        );
        assert!(accepted.contains(&clause), "{accepted}");
        store.wake().expect("written");
        drop(store);
        let of_second: Vec<_> = restored
            .into_iter()
            .filter(|found| match &found.record {
                Record::QueueDeclared { id, .. } => id.0 == 2,
                Record::Enqueued { queue, .. } => queue.0 == 2,
                _ => false,
            })
            .map(|found| (found.vhost.to_string(), found.record))
            .collect();
        assert_eq!(of_second.len(), 11);
        assert!(of_second.iter().all(|(of, _)| of == vhost));
        let Record::QueueDeclared { name: declared, .. } = &of_second[0].1 else {
            panic!("{of_second:?}");
        };
        assert_eq!(&**declared, name);
        // The next start is as any other.
        let again = kept(&directory);
        assert!(of_second.iter().all(|record| again.contains(record)));
        assert_eq!(again.len(), 17);
    }
}

#[test]
fn a_store_without_a_manifest_is_a_loss() {
    let directory = filled();
    fs::remove_file(path(&directory).join("manifest")).expect("a manifest");
    let error = refused(&directory).to_string();
    assert!(error.contains("its manifest cannot be read"), "{error}");
    let (mut store, restored) = Store::open(accepting(&directory)).expect("all of it");
    assert_eq!(restored.len(), 3 + 2000 + 10);
    store.wake().expect("room");
    drop(store);
    assert_eq!(kept(&directory).len(), 3 + 2000 + 10);
}

#[test]
fn what_can_be_read_is_salvaged() {
    let directory = filled();
    lose_records(&path(&directory));
    damage(&path(&directory));
    let before = snapshot(&path(&directory));
    let to = directory.path().join("salvaged");
    let salvaged = salvage(&path(&directory), &to).expect("the rest");
    assert_eq!(snapshot(&path(&directory)), before);
    let queues = salvaged.source.queues();
    // The sector has a part of one more message.
    let of_second = queues.filter(|queue| queue.number == 2);
    assert_eq!(of_second.map(|queue| queue.damaged).sum::<u64>(), 1);
    assert!(salvaged.source.unknown_records > 0 && salvaged.renamed.is_empty());
    let found = contents(&to).expect("a whole store");
    assert_eq!(found.len() as u64, 3 + salvaged.messages);
    salvage(&path(&directory), &to).expect_err("something is there");
}

#[test]
fn a_backup_is_restored_and_the_former_store_is_kept() {
    let directory = filled();
    let backup = directory.path().join("backup");
    let made = back_up(&path(&directory), &backup).expect("a backup");
    assert_eq!(
        (made.bytes, made.damaged),
        (fs::metadata(&backup).expect("a file").len(), 0)
    );
    let all = kept(&directory);
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![Record::Purged { queue: QueueId(1) }]).expect("room");
    let error = restore(&backup, &path(&directory), true).expect_err("it is open");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    drop(store);
    let before = snapshot(directory.path());
    let error = restore(&backup, &path(&directory), false).expect_err("a store is there");
    assert!(error.to_string().contains("--replace"), "{error}");
    assert_eq!(snapshot(directory.path()), before);
    let put_back = restore(&backup, &path(&directory), true).expect("restored");
    assert_eq!((put_back.queues, put_back.messages), (2, 2010));
    assert_eq!(kept(&directory), all);
    let former = put_back.former.expect("a former store");
    assert_eq!(contents(&former).expect("readable").len(), 3 + 10);
    // It continues as any store.
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let more = vec![queue(3, "s"), dequeued(1, 0), enqueued(3, 0)];
    commit(&mut store, more).expect("room");
    drop(store);
    assert_eq!(kept(&directory).len(), all.len() + 1);
    let elsewhere = directory.path().join("elsewhere");
    let put_back = restore(&backup, &elsewhere, false).expect("restored");
    assert_eq!(put_back.former, None);
    assert_eq!(contents(&elsewhere).expect("readable").len(), all.len());
    // In place of a store, as it was with earlier versions.
    let simply = directory.path().join("simply");
    fs::copy(&backup, &simply).expect("copied");
    let (_, restored) = Store::open(StoreConfig::new(&simply)).expect("a store");
    assert_eq!(restored.len(), all.len());
}

#[test]
fn a_damaged_backup_is_refused() {
    let directory = filled();
    let backup = directory.path().join("backup");
    back_up(&path(&directory), &backup).expect("a backup");
    let whole = fs::read(&backup).expect("a file");
    let to = directory.path().join("to");
    for (at, length) in [(70_000, whole.len()), (10, whole.len()), (70_000, 60_000)] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        bytes[at + 1] ^= 4;
        bytes.truncate(length);
        fs::write(&backup, bytes).expect("written");
        let before = snapshot(directory.path());
        let error = restore(&backup, &to, false).expect_err("it is damaged");
        assert!(error.to_string().contains("is damaged"), "{error}");
        assert_eq!(snapshot(directory.path()), before);
    }
}

#[test]
fn a_store_behind_a_link_stays_there() {
    let directory = directory();
    let volume = directory.path().join("volume");
    fs::create_dir(&volume).expect("made");
    let link = path(&directory);
    std::os::unix::fs::symlink("volume/store", &link).expect("a link");
    let records = [queue(1, "q"), enqueued(1, 1)];
    let (mut store, _) = Store::open(config(&directory)).expect("nothing");
    commit(&mut store, records.to_vec()).expect("written");
    drop(store);
    let real = volume.join("store");
    assert!(real.is_dir());
    let backup = directory.path().join("backup");
    back_up(&link, &backup).expect("a backup");
    let put_back = restore(&backup, &link, true).expect("in place");
    assert_eq!(put_back.former, Some(volume.join("store.former")));
    assert!(link.is_symlink() && real.is_dir());
    assert_eq!(kept(&directory), of_slash(&records));
}
