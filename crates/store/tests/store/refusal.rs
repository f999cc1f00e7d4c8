//! Paths where something else is, or a store that another one has: an error that says so, and nothing is changed.

use std::fs;
use std::path::Path;

use crosstie_store::{Store, StoreConfig, StoreErrorKind};

use crate::rig::*;

/// The error of opening what is at a path, which is left as it is.
fn refused(path: &Path) -> String {
    let before = snapshot(path);
    let Err(error) = Store::open(StoreConfig::new(path)) else {
        panic!("{} was opened", path.display());
    };
    let error = error.to_string();
    assert_eq!(snapshot(path), before, "after {error}");
    assert!(error.contains(&path.display().to_string()), "{error}");
    error
}

#[test]
fn files_of_something_else() {
    let directory = directory();
    let file = directory.path().join("file");
    for bytes in [&b"x"[..], b"", b"some text\n", &[0; 100], &[0; 10_000]] {
        fs::write(&file, bytes).expect("written");
        let error = refused(&file);
        assert!(
            error.contains("is not a store of Crosstie (it is a file of something else)"),
            "{error}"
        );
    }
    let error = refused(directory.path());
    assert!(
        error.contains("(it is a directory of something else)"),
        "{error}"
    );
    fs::remove_file(&file).expect("removed");
    let other = rusqlite::Connection::open(&file).expect("another file");
    other
        .execute_batch("CREATE TABLE t (x)")
        .expect("another table");
    drop(other);
    let error = refused(&file);
    assert!(
        error.contains("(it is the SQLite file of something else)"),
        "{error}"
    );
    let error = refused(Path::new("/dev/null"));
    assert!(
        error.contains("(it is neither a directory nor a file)"),
        "{error}"
    );
    let error = refused(&directory.path().join("missing/file"));
    assert!(error.contains("looking for its directory"), "{error}");
}

#[test]
fn another_version() {
    let directory = filled();
    let manifest = path(&directory).join("manifest");
    let mut bytes = fs::read(&manifest).expect("a manifest");
    // In both copies: in one it is a wrong bit.
    for at in [7, bytes.len() / 2 + 7] {
        bytes[at] = 9;
    }
    fs::write(&manifest, bytes).expect("written");
    let error = refused(&path(&directory));
    assert!(
        error.contains("of version 9, this program reads version 1"),
        "{error}"
    );
}

#[test]
fn a_second_opener() {
    let directory = filled();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let error = Store::open(config(&directory)).expect_err("it is open");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    let error = error.to_string();
    assert!(
        error.contains("is in use by another process or another router"),
        "{error}"
    );
    commit(&mut store, vec![enqueued(1, 5000)]).expect("written");
    Store::open(config(&directory)).expect_err("it is still open");
    drop(store);
    assert_eq!(kept(&directory).len(), 2014);
}

/// A directory that somebody made before, such as a file system of its own, is one for a store.
#[test]
fn an_empty_directory_becomes_a_store() {
    let directory = directory();
    fs::create_dir(path(&directory)).expect("made");
    let (mut store, restored) = Store::open(config(&directory)).expect("an empty one");
    assert_eq!(restored, []);
    commit(&mut store, vec![queue(1, "q")]).expect("written");
    drop(store);
    assert_eq!(kept(&directory), of_slash(&[queue(1, "q")]));
}

#[test]
fn a_file_that_another_made_meanwhile() {
    let directory = directory();
    let (mut late, _) = Store::open(config(&directory)).expect("a store");
    let other = filled();
    copy(&path(&other), &path(&directory));
    let error = commit(&mut late, vec![enqueued(1, 2)]).expect_err("it is there");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    assert_eq!(kept(&directory), kept(&other));
}

#[test]
fn a_file_that_another_may_make() {
    let directory = directory();
    let (mut first, _) = Store::open(config(&directory)).expect("a store");
    assert!(first.obstacle().is_none());
    let (mut second, _) = Store::open(config(&directory)).expect("nothing to be read");
    let error = second.obstacle().expect("another has it");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    let error = commit(&mut second, vec![enqueued(1, 1)]).expect_err("another has it");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    let (beside, _) =
        Store::open(StoreConfig::new(directory.path().join("another"))).expect("a store");
    assert!(beside.obstacle().is_none(), "the directory is nobody's");
    let entries = fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(entries.count(), 0, "nothing is written for that");
    commit(&mut first, vec![enqueued(1, 2)]).expect("written");
    drop((first, second));
    assert_eq!(kept(&directory), of_slash(&[enqueued(1, 2)]));
}

#[test]
fn a_name_that_another_gave_up() {
    let directory = directory();
    let (first, _) = Store::open(config(&directory)).expect("a store");
    let (mut second, _) = Store::open(config(&directory)).expect("nothing to be read");
    drop(first);
    commit(&mut second, vec![enqueued(1, 1)]).expect("written");
    assert!(second.obstacle().is_none());
}

#[test]
fn a_directory_that_takes_no_file() {
    let (store, _) =
        Store::open(StoreConfig::new("/proc/self/crosstie.store")).expect("nothing to be read");
    let error = store.obstacle().expect("no place for files").to_string();
    assert!(
        error.starts_with("/proc/self/crosstie.store: making it: "),
        "{error}"
    );
}
