//! Files that are no stores, are damaged, or are somebody else's: an error that says so, and the
//! file is as it was.

mod rig;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crosstie_store::{Store, StoreConfig, StoreErrorKind};

use rig::*;

/// The error of opening the file, which leaves it as it is.
fn refused(path: &Path) -> String {
    let before = fs::read(path).ok();
    let config = StoreConfig {
        path: path.to_owned(),
        bytes_max: None,
    };
    let Err(error) = Store::open(config) else {
        panic!("{} was opened", path.display());
    };
    let error = error.to_string();
    assert_eq!(fs::read(path).ok(), before, "after {error}");
    assert!(error.contains(&path.display().to_string()), "{error}");
    error
}

/// A store with 2,000 messages, and some that do not fit into a page.
fn filled() -> tempfile::TempDir {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let mut records = vec![exchange("x"), queue(1, "q"), queue(2, "r")];
    records.extend((0..2000).map(|place| enqueued(1, place)));
    records.extend((0..10).map(|place| enqueued_content(2, place, &content(&[1; 20_000]))));
    commit(&mut store, records).expect("written");
    directory
}

#[test]
fn files_of_something_else() {
    let directory = directory();
    let file = directory.path().join("file");
    for bytes in [&b"x"[..], b"some text\n", &[0; 100], &[0; 10_000]] {
        fs::write(&file, bytes).expect("written");
        let error = refused(&file);
        assert!(
            error.contains("is not a store of Crosstie (it is no SQLite file)"),
            "{error}"
        );
    }
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
    let error = refused(directory.path());
    assert!(error.contains("(it is no file)"), "{error}");
    let error = refused(&directory.path().join("missing/file"));
    assert!(error.contains("looking for its directory"), "{error}");
}

#[test]
fn another_version() {
    let directory = filled();
    let other = rusqlite::Connection::open(path(&directory)).expect("the file");
    other
        .pragma_update(None, "user_version", 7)
        .expect("updated");
    drop(other);
    let error = refused(&path(&directory));
    assert!(
        error.contains("of version 7, this program reads version 4"),
        "{error}"
    );
}

#[test]
fn a_torn_file() {
    let directory = filled();
    let path = path(&directory);
    let whole = fs::read(&path).expect("a file");
    for length in [
        0,
        1,
        15,
        50,
        80,
        100,
        1000,
        4096,
        10_000,
        whole.len() / 2,
        whole.len() - 4096,
    ] {
        fs::write(&path, &whole[..length]).expect("written");
        let error = refused(&path);
        // Of one that ends in its first bytes nobody can tell what it was.
        let expected = if (1..16).contains(&length) {
            "is not a store"
        } else {
            "is damaged ("
        };
        assert!(error.contains(expected), "cut at {length}: {error}");
    }
    for page in 1..whole.len() / 4096 {
        for byte in [0, 0xFF] {
            let mut torn = whole.clone();
            torn[page * 4096..(page + 1) * 4096].fill(byte);
            fs::write(&path, &torn).expect("written");
            eprintln!("page {page} {byte} of {}", whole.len() / 4096);
            let error = refused(&path);
            assert!(
                error.contains("is damaged ("),
                "page {page} of {byte}: {error}"
            );
        }
    }
    fs::remove_file(&path).expect("removed");
    fs::write(directory.path().join("crosstie.store-wal"), &whole).expect("written");
    let error = refused(&path);
    assert!(
        error.contains("crosstie.store-wal is there without it"),
        "{error}"
    );
    fs::remove_file(directory.path().join("crosstie.store-wal")).expect("removed");
    fs::write(&path, &whole).expect("written");
    assert_eq!(
        kept(&directory).len(),
        3 + 2000 + 10,
        "the whole file is still one"
    );
}

#[test]
fn a_wrong_byte_in_a_body() {
    let directory = filled();
    let path = path(&directory);
    let mut wrong = fs::read(&path).expect("a file");
    let place = wrong.windows(64).rposition(|bytes| *bytes == [1; 64]);
    wrong[place.expect("a body") + 30] = 2;
    fs::write(&path, &wrong).expect("written");
    let error = refused(&path);
    assert!(
        error.contains("a message is not as it was written"),
        "{error}"
    );
}

#[test]
fn a_second_opener_in_this_process() {
    let directory = filled();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    // The file is not looked at here: who closes it in this process gives up its locks.
    let error = Store::open(config(&directory)).err().expect("an error");
    assert!(matches!(error.kind, StoreErrorKind::InUse), "{error}");
    let error = error.to_string();
    assert!(
        error.contains("is in use by another process or another router"),
        "{error}"
    );
    // The first one still has its lock, and its file.
    commit(&mut store, vec![enqueued(1, 5000)]).expect("written");
    let error = in_another_process(&path(&directory));
    assert!(error.contains("database is locked"), "{error}");
    drop(store);
    assert_eq!(in_another_process(&path(&directory)), "");
}

/// What Python's SQLite says when it wants to write.
fn in_another_process(path: &Path) -> String {
    let mut python = Command::new("python3")
        .arg("-")
        .arg(path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3");
    let program = b"import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
connection.execute('DELETE FROM message WHERE place = 5000')
connection.commit()
";
    let mut stdin = python.stdin.take().expect("piped");
    stdin.write_all(program).expect("written");
    drop(stdin);
    let output = python.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_file_that_another_made_meanwhile() {
    let directory = directory();
    let (mut late, _) = Store::open(config(&directory)).expect("a store");
    let other = filled();
    fs::copy(path(&other), path(&directory)).expect("copied");
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
    let (beside, _) = Store::open(StoreConfig {
        path: directory.path().join("another"),
        bytes_max: None,
    })
    .expect("a store");
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
    let (store, _) = Store::open(StoreConfig {
        path: "/proc/self/crosstie.store".into(),
        bytes_max: None,
    })
    .expect("nothing to be read");
    let error = store.obstacle().expect("no place for files").to_string();
    assert!(
        error.starts_with("/proc/self/crosstie.store: making it: "),
        "{error}"
    );
}
