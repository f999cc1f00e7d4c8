//! Records of other state machines: they return as they were put last, name their damage, and have one owner.

use std::path::Path;
use std::sync::mpsc;

use crosstie_store::{
    Change, FoundRecords, RecordStore, RecordStoreConfig, Store, StoreConfig, StoreError, check,
};

fn config(path: &Path) -> RecordStoreConfig {
    RecordStoreConfig {
        path: path.to_owned(),
        kind: "test",
        owner: "owner".into(),
        accepts_loss: false,
        disk_free_bytes_min: 0,
    }
}

fn open(path: &Path) -> Result<(RecordStore, FoundRecords), StoreError> {
    RecordStore::open(config(path))
}

/// Commits the inputs, each of them some changes, and closes the store.
fn write(path: &Path, inputs: Vec<Vec<Change>>) {
    let (store, _) = open(path).expect("a store");
    let (told, hears) = mpsc::channel();
    let tell = move |position, outcome: Result<(), &StoreError>| {
        outcome.expect("room");
        let _ = told.send(position);
    };
    let committer = store.start(tell, |_| {}).expect("a thread");
    let count = inputs.len() as u64;
    for (position, changes) in (1..).zip(inputs) {
        committer.submit(changes, position);
    }
    while hears.recv().expect("a report") < count {}
    committer.stop().expect("room");
}

/// The records as text.
fn text(found: &FoundRecords) -> Vec<String> {
    let records = found.records.iter();
    let records = records.map(|(group, place, content)| {
        let octets = String::from_utf8_lossy(content.body());
        format!("{group} {place} {octets}")
    });
    records.collect()
}

fn opened(group: u64, name: &str) -> Change {
    let name = name.into();
    Change::Opened { group, name }
}

fn put(group: u64, place: i64, text: &str) -> Change {
    let octets = text.as_bytes().to_vec();
    Change::Put {
        group,
        place,
        octets,
    }
}

fn removed(group: u64, place: i64) -> Change {
    Change::Removed { group, place }
}

#[test]
fn records_return_as_they_were_put_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    write(
        &path,
        vec![
            vec![
                opened(7, "seven"),
                put(7, -1, "one"),
                put(7, 1 << 60, "far"),
            ],
            vec![opened(u64::MAX, "last"), put(u64::MAX, 3, "x")],
            vec![put(7, -2, "two"), removed(7, -1)],
            vec![opened(8, "eight"), put(8, -3, "gone")],
        ],
    );
    let (_, found) = open(&path).expect("a store");
    assert_eq!(text(&found).len(), 4);
    write(
        &path,
        vec![
            vec![Change::Closed { group: 8 }],
            // Of a place that has none.
            vec![removed(7, 99)],
        ],
    );
    let (_, found) = open(&path).expect("a store");
    let far = format!("7 {} far", 1_i64 << 60);
    let expected = ["7 -2 two", &far, &format!("{} 3 x", u64::MAX)];
    assert_eq!(text(&found), expected);
    assert_eq!(found.groups.into_iter().collect::<Vec<_>>(), [7, u64::MAX]);
    assert!(found.lost.is_empty());
    assert!(check(&path).expect("a store").is_whole());
}

#[test]
fn another_owner_and_a_broker_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    write(&path, vec![vec![opened(1, "a"), put(1, 1, "x")]]);
    let refused = |config: RecordStoreConfig| {
        let opened = RecordStore::open(config);
        opened.map(drop).expect_err("another owner's").to_string()
    };
    let other = refused(RecordStoreConfig {
        owner: "other".into(),
        ..config(&path)
    });
    assert!(
        other.contains("test owner, expected those of test other"),
        "{other}"
    );
    let path = directory.path().join("broker");
    let (mut store, _) = Store::open(StoreConfig::new(&path)).expect("a store");
    let setting = ("user guest".into(), Some("{}".into()));
    store.put_settings(&[setting]).expect("room");
    drop(store);
    let broker = refused(config(&path));
    assert!(broker.contains("the records of a broker"), "{broker}");
}

#[test]
fn damage_is_named_by_group_and_accepted_by_word_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("records");
    write(
        &path,
        vec![
            vec![opened(1, "first"), put(1, 1, "whole"), put(1, 2, "torn")],
            vec![opened(2, "second"), put(2, 1, "whole")],
        ],
    );
    let files = std::fs::read_dir(&path).expect("a directory");
    let mut paths = files.map(|file| file.expect("a file").path());
    let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "segment");
    let segment = paths.find(is_segment).expect("a segment");
    let mut octets = std::fs::read(&segment).expect("a file");
    let at = octets.windows(4).position(|four| four == b"torn");
    octets[at.expect("is there")] ^= 1;
    std::fs::write(&segment, octets).expect("room");
    let refused = open(&path).map(drop).expect_err("is damaged").to_string();
    assert!(
        refused.contains("queue 'first' of vhost 'owner'"),
        "{refused}"
    );
    let accepting = RecordStoreConfig {
        accepts_loss: true,
        ..config(&path)
    };
    let (_, found) = RecordStore::open(accepting).expect("continues");
    assert_eq!(text(&found), ["1 1 whole", "2 1 whole"]);
    assert_eq!(found.lost.len(), 1);
    let (_, found) = open(&path).expect("is whole again");
    assert_eq!(text(&found), ["1 1 whole", "2 1 whole"]);
}
