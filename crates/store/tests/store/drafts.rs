//! Directories beside a store: one that was made for a store and not needed is removed, and no other one.

use std::fs;

use crosstie_queues::{QueueId, Record};
use crosstie_store::{Store, StoreErrorKind, back_up, restore};

use crate::rig::*;

#[test]
fn a_replacement_that_was_cut_short_does_not_take_the_place_of_a_store_that_went_on() {
    let directory = filled();
    let beside = |ending: &str| directory.path().join(format!("crosstie.store{ending}"));
    let backup = directory.path().join("backup");
    back_up(&path(&directory), &backup).expect("a backup");
    restore(&backup, &path(&directory), true).expect("restored");
    assert!(beside(".former").is_dir() && !path(&directory).join("draft").exists());
    // As by a second one that ended before its first rename.
    copy(&path(&directory), &beside(".new"));
    fs::write(beside(".new").join("draft"), "").expect("written");
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    commit(&mut store, vec![Record::Purged { queue: QueueId(1) }]).expect("room");
    drop(store);
    fs::rename(path(&directory), directory.path().join("away")).expect("renamed");
    assert!(kept(&directory).is_empty());
    assert!(!beside(".new").exists());
}

#[test]
fn a_directory_that_was_not_made_for_a_store_is_left() {
    let directory = filled();
    let backup = directory.path().join("backup");
    back_up(&path(&directory), &backup).expect("a backup");
    for ending in [".draft", ".new"] {
        let beside = directory.path().join(format!("crosstie.store{ending}"));
        copy(&path(&directory), &beside);
        let before = snapshot(directory.path());
        let error = restore(&backup, &path(&directory), true).expect_err("it is in the way");
        assert!(matches!(error.kind, StoreErrorKind::InTheWay), "{error}");
        assert!(
            error.path == beside && error.to_string().contains("move it away"),
            "{error}"
        );
        // Nothing of the new store is left either.
        assert_eq!(snapshot(directory.path()), before);
        fs::remove_dir_all(&beside).expect("removed");
    }
    // Another store of such a name is no replacement.
    let new = directory.path().join("crosstie.store.new");
    fs::rename(path(&directory), &new).expect("renamed");
    fs::create_dir(directory.path().join("crosstie.store.former")).expect("made");
    assert!(kept(&directory).is_empty());
    assert!(new.join("manifest").exists());
}
