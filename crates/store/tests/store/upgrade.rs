//! A store of version 0.1.0 is read, written anew, and kept beside the new one.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use crosstie_amqp::{Properties, TableBuf};
use crosstie_queues::{Destination, QueueId, Record};
use crosstie_store::{Store, StoreConfig, StoreErrorKind, contents};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};

use crate::rig::*;

/// The tables of 0.1.0, as the program of that version made them.
const TABLES: &str = "
    CREATE TABLE vhost (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE exchange (
        vhost INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
        auto_delete INTEGER NOT NULL, internal INTEGER NOT NULL, arguments BLOB NOT NULL,
        PRIMARY KEY (vhost, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE queue (
        vhost INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL,
        auto_delete INTEGER NOT NULL, arguments BLOB NOT NULL,
        PRIMARY KEY (vhost, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE binding (
        vhost INTEGER NOT NULL, source TEXT NOT NULL, to_queue INTEGER NOT NULL,
        destination TEXT NOT NULL, routing_key TEXT NOT NULL, arguments BLOB NOT NULL,
        PRIMARY KEY (vhost, source, to_queue, destination, routing_key, arguments)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE message (
        vhost INTEGER NOT NULL, queue INTEGER NOT NULL, place INTEGER NOT NULL,
        expires_at INTEGER, deliveries INTEGER NOT NULL, content ANY NOT NULL,
        PRIMARY KEY (vhost, queue, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE shared_content (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE shared_content_user (
        number INTEGER PRIMARY KEY, messages INTEGER NOT NULL
    ) STRICT;
    PRAGMA application_id = 0x58544945;
    PRAGMA user_version = 1;
    PRAGMA journal_mode = WAL;
";

/// Bytes as 0.1.0 wrote a content.
fn bytes(exchange: &str, routing_key: &str, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    for part in [
        exchange.as_bytes(),
        routing_key.as_bytes(),
        Properties::EMPTY.bytes(),
    ] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(body);
    let checksum = crc32fast::hash(&out[4..]);
    out[..4].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// An earlier store, and what is in it.
fn earlier(path: &Path) -> Vec<Record> {
    let connection = Connection::open(path).expect("a file");
    connection.execute_batch(TABLES).expect("tables");
    let arguments = TableBuf::new();
    let none = arguments.as_table().bytes();
    let execute = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.execute(sql, values).expect("a row");
    };
    execute("INSERT INTO vhost VALUES (1, '/')", params![]);
    execute(
        "INSERT INTO exchange VALUES (1, 'x', 'topic', 0, 0, ?1)",
        params![none],
    );
    for (id, name) in [(3, "q"), (7, "r")] {
        execute(
            "INSERT INTO queue VALUES (1, ?1, ?2, 0, ?3)",
            params![id, name, none],
        );
    }
    execute(
        "INSERT INTO binding VALUES (1, 'x', 1, 'q', 'a.#', ?1)",
        params![none],
    );
    let mut records = vec![Record::ExchangeDeclared {
        name: "x".into(),
        kind: "topic".into(),
        auto_delete: false,
        internal: false,
        arguments: arguments.clone(),
    }];
    for (id, name) in [(3, "q"), (7, "r")] {
        records.push(Record::queue_declared(QueueId(id), name, arguments.clone()));
    }
    records.push(Record::Bound {
        source: "x".into(),
        destination: Destination::Queue("q".into()),
        routing_key: "a.#".into(),
        arguments,
        order: 0,
    });
    add_messages(&connection, &mut records);
    records
}

fn add_messages(connection: &Connection, records: &mut Vec<Record>) {
    let execute = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.execute(sql, values).expect("a row");
    };
    for place in 0..3000 {
        let body = format!("message {place}");
        let expires_at = (place % 2 == 0).then_some(1_700_000_000_000_i64);
        execute(
            "INSERT INTO message VALUES (1, 3, ?1, ?2, 0, ?3)",
            params![
                place,
                expires_at,
                bytes("amq.topic", "a.b", body.as_bytes())
            ],
        );
        records.push(enqueued(3, place));
    }
    // Two messages share a long content.
    let long = content(&[7; 5000]);
    execute(
        "INSERT INTO shared_content VALUES (1, ?1)",
        params![bytes("amq.topic", "a.b", &[7; 5000])],
    );
    for place in [1, 3] {
        execute(
            "INSERT INTO message VALUES (1, 7, ?1, NULL, 0, 1)",
            params![place],
        );
        records.push(enqueued_content(7, place, &long));
    }
}

#[test]
fn a_store_of_0_1_0_is_upgraded_and_kept() {
    let directory = directory();
    let records = earlier(&path(&directory));
    let before = fs::read(path(&directory)).expect("a file");
    // A command that only reads leaves it as it is.
    let read: Vec<_> = contents(&path(&directory))
        .expect("readable")
        .into_iter()
        .collect();
    assert_eq!(read.len(), records.len());
    assert!(path(&directory).is_file());
    let (mut store, restored) = Store::open(config(&directory)).expect("an upgrade");
    let restored: Vec<_> = restored.into_iter().map(|found| found.record).collect();
    assert_eq!(restored, records);
    assert!(path(&directory).is_dir());
    commit(&mut store, vec![dequeued(3, 0), enqueued(7, 8)]).expect("room");
    drop(store);
    let mut expected = records.clone();
    expected.remove(4);
    expected.push(enqueued(7, 8));
    assert_eq!(kept(&directory), of_slash(&expected));
    let former = directory.path().join("crosstie.store.former");
    assert_eq!(fs::read(&former).expect("the former one"), before);
    let kept: Vec<_> = contents(&former).expect("readable").into_iter().collect();
    assert_eq!(kept.len(), records.len());
}

/// One of several processes that start at once has the store, and no other changes anything of it.
#[test]
fn a_store_of_0_1_0_is_upgraded_once() {
    let model = directory();
    let records = earlier(&path(&model));
    let locked = File::open(path(&model)).expect("a file");
    rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let before = snapshot(model.path());
    let refused = Store::open(config(&model)).expect_err("it is locked");
    assert!(matches!(refused.kind, StoreErrorKind::InUse), "{refused}");
    assert_eq!(snapshot(model.path()), before);
    drop(locked);
    for _ in 0..5 {
        let directory = directory();
        fs::copy(path(&model), path(&directory)).expect("a copy");
        let together = Barrier::new(4);
        let outcomes: Vec<_> = thread::scope(|scope| {
            let open = || {
                together.wait();
                Store::open(config(&directory)).map(|(store, _)| store)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            let threads = threads.into_iter();
            threads
                .map(|thread| thread.join().expect("an outcome"))
                .collect()
        });
        let (opened, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!(opened.len(), 1);
        for refused in refused {
            let refused = refused.expect_err("one store is enough");
            assert!(matches!(refused.kind, StoreErrorKind::InUse), "{refused}");
        }
        drop(opened);
        assert_eq!(kept(&directory), of_slash(&records));
        let names = fs::read_dir(directory.path()).expect("readable");
        let names = names.map(|entry| entry.expect("readable").file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["crosstie.store", "crosstie.store.former"]);
    }
}

#[test]
fn the_way_back_to_0_1_0_is_the_former_file() {
    let directory = directory();
    let records = earlier(&path(&directory));
    let before = fs::read(path(&directory)).expect("a file");
    let (mut store, _) = Store::open(config(&directory)).expect("an upgrade");
    commit(&mut store, vec![enqueued(7, 8)]).expect("room");
    drop(store);
    // As the page about upgrades has it.
    let aside = directory.path().join("crosstie.store.0.2.0");
    fs::rename(path(&directory), &aside).expect("renamed");
    let former = directory.path().join("crosstie.store.former");
    fs::rename(&former, path(&directory)).expect("renamed");
    assert_eq!(fs::read(path(&directory)).expect("a file"), before);
    let connection = Connection::open(path(&directory)).expect("a file that 0.1.0 opens");
    let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    assert_eq!(one("PRAGMA integrity_check").expect("whole"), "ok");
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(
        number("PRAGMA application_id").expect("its mark"),
        0x5854_4945
    );
    assert_eq!(number("PRAGMA user_version").expect("its version"), 1);
    assert_eq!(number("SELECT count(*) FROM message").expect("rows"), 3002);
    drop(connection);
    // The messages since are in the other store alone, and the next upgrade finds its way again.
    let since: Vec<_> = contents(&aside).expect("readable").into_iter().collect();
    assert_eq!(since.len(), records.len() + 1);
    assert_eq!(kept(&directory), of_slash(&records));
    assert!(former.is_file());
}

#[test]
fn an_upgrade_that_was_cut_short_is_finished() {
    let directory = directory();
    let records = earlier(&path(&directory));
    drop(Store::open(config(&directory)).expect("an upgrade"));
    // As between the two renames.
    let draft = directory.path().join("crosstie.store.new");
    fs::rename(path(&directory), &draft).expect("renamed");
    fs::write(draft.join("draft"), "").expect("written");
    assert_eq!(kept(&directory), of_slash(&records));
    assert!(!draft.exists());
    // A draft that was never complete is not one.
    fs::remove_dir_all(path(&directory)).expect("removed");
    fs::rename(
        directory.path().join("crosstie.store.former"),
        path(&directory),
    )
    .expect("renamed");
    fs::create_dir(&draft).expect("made");
    fs::write(draft.join("0000000001.segment"), "half of it").expect("written");
    // Nor one that nobody made for this, which is left.
    let error = Store::open(config(&directory)).expect_err("it is in the way");
    assert!(matches!(error.kind, StoreErrorKind::InTheWay), "{error}");
    assert!(path(&directory).is_file());
    let half = directory.path().join("crosstie.store.draft");
    assert!(!half.exists(), "a refused upgrade leaves nothing");
    fs::write(draft.join("draft"), "").expect("written");
    assert_eq!(kept(&directory), of_slash(&records));
}

#[test]
fn a_damaged_store_of_0_1_0_is_refused_and_left_as_it_is() {
    let directory = directory();
    earlier(&path(&directory));
    let whole = fs::read(path(&directory)).expect("a file");
    let mut wrong = whole.clone();
    let at = wrong.windows(64).rposition(|bytes| *bytes == [7; 64]);
    wrong[at.expect("a body") + 30] = 2;
    for bytes in [&whole[..whole.len() / 2], &whole[..5000], &wrong] {
        fs::write(path(&directory), bytes).expect("written");
        let error = Store::open(StoreConfig::new(path(&directory))).expect_err("it is damaged");
        assert!(error.to_string().contains("is damaged"), "{error}");
        assert_eq!(fs::read(path(&directory)).expect("a file"), bytes);
        assert!(!directory.path().join("crosstie.store.former").exists());
    }
}

#[test]
fn damaged_messages_of_a_store_of_0_1_0_are_named_and_left_out_if_that_is_accepted() {
    let directory = directory();
    let mut records = earlier(&path(&directory));
    let log = directory.path().join("crosstie.store-wal");
    let connection = Connection::open(path(&directory)).expect("a file");
    let mut wrong = bytes("amq.topic", "a.b", b"message 5");
    wrong[30] ^= 1;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .expect("a log that stays");
    let damage = "UPDATE message SET content = ?1 WHERE queue = 3 AND place IN (5, 6)";
    connection.execute(damage, params![wrong]).expect("a row");
    let damage = "UPDATE shared_content SET bytes = ?1";
    connection.execute(damage, params![wrong]).expect("a row");
    drop(connection);
    assert!(log.is_file());
    let before = snapshot(directory.path());
    let named = "queue 'q' of vhost '/': 2 messages; queue 'r' of vhost '/': 2 messages";
    for error in [
        contents(&path(&directory)).expect_err("it is damaged"),
        Store::open(config(&directory)).expect_err("it is damaged"),
    ] {
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(snapshot(directory.path()), before, "after {error}");
    }
    let accepting = StoreConfig {
        accepts_loss: true,
        ..config(&directory)
    };
    let (store, restored) = Store::open(accepting).expect("an upgrade");
    assert_eq!(store.accepted().join("; "), named);
    let restored: Vec<_> = restored.into_iter().map(|found| found.record).collect();
    let is_damaged = |record: &Record| match record {
        Record::Enqueued { queue, place, .. } => queue.0 == 7 || [5, 6].contains(place),
        _ => false,
    };
    records.retain(|record| !is_damaged(record));
    assert_eq!(restored, records);
    assert!(!log.exists());
    let former = directory.path().join("crosstie.store.former");
    contents(&former).expect_err("it has its log's changes");
}
