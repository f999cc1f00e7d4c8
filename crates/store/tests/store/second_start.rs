//! A start after one that has mended something finds the same.

use std::fs;
use std::path::{Path, PathBuf};

use crosstie_queues::{QueueId, Record};
use crosstie_store::{Store, StoreConfig, check};

use crate::rig::*;

/// Segments of a mebibyte.
fn small(directory: &tempfile::TempDir) -> StoreConfig {
    StoreConfig {
        bytes_max: Some(4 << 20),
        ..config(directory)
    }
}

/// A store whose later segments have acknowledgements of messages in the first one.
fn acknowledged() -> tempfile::TempDir {
    let directory = directory();
    let (mut store, _) = Store::open(small(&directory)).expect("a store");
    commit(&mut store, vec![queue(1, "q"), queue(2, "r")]).expect("room");
    let mut records: Vec<_> = (0..12).map(|place| enqueued(1, place)).collect();
    let body = vec![7; 60_000];
    for step in 0..50 {
        records.push(enqueued_content(2, step, &content(&body)));
        if step >= 20 && step % 5 == 0 {
            records.push(dequeued(1, step / 5));
        }
        commit(&mut store, std::mem::take(&mut records)).expect("room");
    }
    drop(store);
    directory
}

/// The places of queue 1.
fn places(directory: &tempfile::TempDir) -> Vec<i64> {
    let (mut store, restored) = Store::open(small(directory)).expect("a store");
    store.wake().expect("room");
    let places = restored.iter().filter_map(|found| match &found.record {
        Record::Enqueued { queue, place, .. } if queue.0 == 1 => Some(*place),
        _ => None,
    });
    places.collect()
}

fn file(path: &Path, name: &str) -> PathBuf {
    path.join(name)
}

#[test]
fn an_index_that_is_written_anew_changes_nothing() {
    let directory = acknowledged();
    let before = places(&directory);
    assert_eq!(before, [0, 1, 2, 3, 10, 11]);
    let index = file(&path(&directory), "0000000001.index");
    let mut bytes = fs::read(&index).expect("an index");
    bytes[70] ^= 1;
    fs::write(&index, bytes).expect("written");
    for start in 1..4 {
        assert_eq!(places(&directory), before, "start {start}");
        let (_, extents) = Store::open_deep(small(&directory), few(1)).expect("a store");
        let mut counted = extents.iter().filter_map(|found| match &found.record {
            Record::Kept(kept) if kept.queue.0 == 1 => Some(kept.messages),
            _ => None,
        });
        assert_eq!(counted.next(), Some(6), "start {start}");
    }
    // Nothing is left of it, and its segment goes with the last message.
    let (mut store, _) = Store::open(small(&directory)).expect("a store");
    let purged = [1, 2].map(|id| Record::Purged { queue: QueueId(id) });
    commit(&mut store, purged.to_vec()).expect("room");
    drop(store);
    assert!(places(&directory).is_empty());
    assert!(check(&path(&directory)).expect("readable").is_whole());
}

#[test]
fn acknowledgements_of_a_missing_segment_stay_accepted() {
    let directory = acknowledged();
    let before = places(&directory);
    fs::remove_file(file(&path(&directory), "0000000002.segment")).expect("a segment");
    let accepting = StoreConfig {
        accepts_loss: true,
        ..small(&directory)
    };
    let (mut store, _) = Store::open(accepting).expect("the rest");
    store.wake().expect("room");
    drop(store);
    for start in 2..4 {
        assert_eq!(places(&directory), before, "start {start}");
    }
}

#[test]
fn one_wrong_bit_of_a_manifest_is_no_other_version() {
    let directory = acknowledged();
    let before = places(&directory);
    let manifest = file(&path(&directory), "manifest");
    let bytes = fs::read(&manifest).expect("a manifest");
    for bit in [0, 7 * 8 + 1, 8 * 8, 100] {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        fs::write(&manifest, wrong).expect("written");
        assert_eq!(places(&directory), before, "bit {bit}");
    }
    for cut in 1..bytes.len() / 2 {
        fs::write(&manifest, &bytes[..bytes.len() - cut]).expect("written");
        assert_eq!(places(&directory), before, "{cut} bytes cut off");
    }
}

#[test]
fn half_a_copy_is_never_taken_for_a_store() {
    let directory = acknowledged();
    // An earlier upgrade left this, and a later copy was cut short.
    copy(
        &path(&directory),
        &directory.path().join("crosstie.store.former"),
    );
    copy(
        &path(&directory),
        &directory.path().join("crosstie.store.draft"),
    );
    fs::remove_file(
        directory
            .path()
            .join("crosstie.store.draft/0000000002.segment"),
    )
    .expect("a segment");
    fs::remove_dir_all(path(&directory)).expect("moved away");
    assert!(places(&directory).is_empty());
}

#[test]
fn a_segment_of_another_store_is_a_loss() {
    let (one, other) = (acknowledged(), acknowledged());
    for name in ["0000000002.segment", "0000000002.index"] {
        fs::copy(file(&path(&other), name), file(&path(&one), name)).expect("copied");
    }
    let checked = check(&path(&one)).expect("readable");
    assert!(checked.lost() + checked.unknown_records > 0, "{checked:?}");
    Store::open(small(&one)).expect_err("a segment is missing");
}
