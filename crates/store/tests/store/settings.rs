//! Settings of the broker: written in commits of their own, kept by every copy of a store, and refused when damaged.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crosstie_queues::Position;
use crosstie_store::{
    Batch, Committer, NewSetting, Setting, Store, StoreConfig, StoreErrorKind, back_up, check,
    contents, restore, salvage,
};

use crate::rig::*;

fn put(key: &str, value: &str) -> NewSetting {
    (key.into(), Some(value.into()))
}

fn deleted(key: &str) -> NewSetting {
    (key.into(), None)
}

/// The settings of a store, as text.
fn settings(path: &Path) -> String {
    let (mut store, _) = Store::open(StoreConfig::new(path)).expect("a store");
    let settings = store.take_settings().into_iter();
    let settings = settings.map(|Setting { key, value }| format!("{key}={value}"));
    settings.collect::<Vec<_>>().join(" ")
}

/// A store with two settings and a message.
fn with_settings() -> tempfile::TempDir {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let first = [put("a", "1"), put("b", "2"), put("c", "3")];
    store.put_settings(&first).expect("room");
    commit(&mut store, vec![queue(1, "q"), enqueued(1, 1)]).expect("room");
    let second = [put("b", "two"), deleted("c"), deleted("never")];
    store.put_settings(&second).expect("room");
    directory
}

#[test]
fn settings_return_as_they_were_put_last() {
    let directory = with_settings();
    for _ in 0..2 {
        assert_eq!(settings(&path(&directory)), "a=1 b=two");
    }
    let (mut store, restored) = Store::open(config(&directory)).expect("a store");
    assert_eq!(restored.len(), 2, "a vhost is told of no setting");
    // The same key several times in one commit.
    let several = [put("a", "x"), deleted("a"), put("a", "y"), put("a", "z")];
    store.put_settings(&several).expect("room");
    drop(store);
    assert_eq!(settings(&path(&directory)), "a=z b=two");
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    store
        .put_settings(&[deleted("a"), deleted("b")])
        .expect("room");
    drop(store);
    assert_eq!(settings(&path(&directory)), "");
    assert_eq!(kept(&directory).len(), 2);
}

#[test]
fn settings_survive_segments_that_are_freed() {
    let directory = directory();
    let config = StoreConfig {
        segment_bytes: 64 << 10,
        ..config(&directory)
    };
    let (mut store, _) = Store::open(config.clone()).expect("a store");
    store.set_patience(Duration::ZERO);
    store.put_settings(&[put("a", "1")]).expect("room");
    commit(&mut store, vec![queue(1, "q")]).expect("room");
    let long = content(&[7; 4000]);
    for place in 0..200 {
        let come_and_gone = vec![enqueued_content(1, place, &long)];
        commit(&mut store, come_and_gone).expect("room");
        commit(&mut store, vec![dequeued(1, place)]).expect("room");
        if place % 20 == 0 {
            let value = place.to_string();
            store.put_settings(&[put("b", &value)]).expect("room");
        }
    }
    drop(store);
    assert_eq!(settings(&config.path), "a=1 b=180");
}

#[test]
fn copies_of_a_store_have_its_settings() {
    let directory = with_settings();
    let at = |name: &str| directory.path().join(name);
    back_up(&path(&directory), &at("backup")).expect("a backup");
    assert_eq!(check(&at("backup")).expect("readable").settings, 2);
    restore(&at("backup"), &at("restored"), false).expect("restored");
    assert_eq!(settings(&at("restored")), "a=1 b=two");
    salvage(&path(&directory), &at("salvaged")).expect("salvaged");
    assert_eq!(settings(&at("salvaged")), "a=1 b=two");
    let checked = check(&path(&directory)).expect("readable");
    assert!(checked.is_whole(), "{checked:?}");
    // The third one was deleted, and its record may still be there.
    assert_eq!(checked.settings, 2);
    assert_eq!(contents(&path(&directory)).expect("readable").len(), 2);
}

#[test]
fn a_damaged_setting_is_a_loss() {
    let directory = with_settings();
    let file = path(&directory).join("0000000001.segment");
    let segments = fs::read_dir(path(&directory)).expect("a directory");
    let segments = segments.map(|entry| entry.expect("an entry").path());
    let mut segments = segments.filter(|file| file.extension().is_some_and(|e| e == "segment"));
    let file = segments.next().unwrap_or(file);
    let mut bytes = fs::read(&file).expect("a segment");
    let value = bytes.windows(3).position(|bytes| bytes == b"two");
    bytes[value.expect("a value")] = b'T';
    fs::write(&file, bytes).expect("written");
    let refused = Store::open(config(&directory)).expect_err("a setting is lost");
    assert!(
        matches!(refused.kind, StoreErrorKind::Loss { .. }),
        "{refused}"
    );
    let checked = check(&path(&directory)).expect("readable");
    assert_eq!(checked.lost_declarations, 1);
    let is_told = checked.faults.iter().any(|fault| fault.is_loss);
    assert!(is_told, "{checked:?}");
    back_up(&path(&directory), &directory.path().join("backup")).expect_err("it would lack one");
    let accepting = StoreConfig {
        accepts_loss: true,
        ..config(&directory)
    };
    let (mut store, restored) = Store::open(accepting).expect("the rest");
    assert_eq!(store.take_settings().len(), 1);
    assert_eq!(restored.len(), 2);
    store.wake().expect("room");
    drop(store);
    assert_eq!(settings(&path(&directory)), "a=1");
}

#[test]
fn a_committer_tells_when_settings_are_written() {
    let directory = directory();
    let (store, _) = Store::open(config(&directory)).expect("a store");
    let committer = Committer::start(store, |_, _, _| {}).expect("a thread");
    let (tell, told) = mpsc::channel();
    for number in 0..3 {
        let tell = tell.clone();
        committer.put_settings(vec![put("a", &number.to_string())], move |written| {
            tell.send(written.is_ok()).expect("the test listens");
        });
    }
    for _ in 0..3 {
        let written = told.recv_timeout(Duration::from_secs(60));
        assert_eq!(written, Ok(true));
    }
    committer.stop().expect("written");
    assert_eq!(settings(&path(&directory)), "a=2");
}

#[test]
fn a_commit_of_settings_that_fails_leaves_those_before() {
    let directory = directory();
    let config = StoreConfig {
        segment_bytes: 64 << 10,
        bytes_max: Some(256 << 10),
        ..config(&directory)
    };
    let (mut store, _) = Store::open(config.clone()).expect("a store");
    store.put_settings(&[put("a", "1")]).expect("room");
    let long = "x".repeat(60_000);
    let mut written = 0;
    while store
        .put_settings(&[put(&format!("long{written}"), &long)])
        .is_ok()
    {
        written += 1;
        assert!(written < 100, "the bound holds");
    }
    store
        .put_settings(&[put("a", &long), put("b", &long)])
        .expect_err("there is no room");
    // What removes is written, in space that is reserved for it.
    store.put_settings(&[deleted("long0")]).expect("reserved");
    commit(&mut store, Vec::new()).expect("nothing to write");
    let mut batch = Batch::default();
    batch.push(&Arc::from("/"), Vec::new(), Default::default());
    drop(store);
    let (mut store, _) = Store::open(config).expect("a store");
    let found = store.take_settings();
    assert_eq!(found.len(), written, "one was deleted, and 'a' is there");
    assert_eq!(&*found[0].value, "1");
}

#[test]
fn vhosts_are_created_with_their_settings_or_not_at_all() {
    let directory = directory();
    let config = StoreConfig {
        segment_bytes: 64 << 10,
        bytes_max: Some(256 << 10),
        ..config(&directory)
    };
    let (mut store, _) = Store::open(config.clone()).expect("a store");
    let [first, second, third] = ["first", "second", "third"].map(Arc::<str>::from);
    let vhosts = [first, second];
    store
        .create_vhosts(&vhosts, &[put("a", "1")])
        .expect("room");
    // Vhosts that exist stay.
    store.create_vhosts(&vhosts, &[]).expect("room");
    let long = "x".repeat(300_000);
    store
        .create_vhosts(&[third], &[put("a", "2"), put("long", &long)])
        .expect_err("there is no room");
    drop(store);
    let (mut store, restored) = Store::open(config).expect("a store");
    let names: Vec<_> = restored.iter().map(|found| &*found.vhost).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(store.take_settings().len(), 1);
}

#[test]
fn settings_that_are_withdrawn_in_time_are_not_written() {
    let directory = directory();
    let (store, _) = Store::open(config(&directory)).expect("a store");
    let (begin, begun) = mpsc::channel();
    let (go_on, going_on) = mpsc::channel::<()>();
    let committer = Committer::start(store, move |_, _, _| {
        begin.send(()).expect("the test listens");
        going_on.recv().expect("the test goes on");
    });
    let committer = committer.expect("a thread");
    committer.submit(&"/".into(), vec![queue(1, "q")], Position(1));
    begun.recv().expect("the thread reports, and waits");
    let order = committer.put_settings(vec![put("a", "1")], |_| panic!("it is withdrawn"));
    assert!(order.withdraw());
    go_on.send(()).expect("the thread waits");
    let (tell, told) = mpsc::channel();
    let order = committer.put_settings(vec![put("b", "1")], move |written| {
        tell.send(written.is_ok()).expect("the test listens");
    });
    assert_eq!(told.recv(), Ok(true));
    assert!(!order.withdraw(), "it is written");
    committer.stop().expect("written");
    assert_eq!(settings(&path(&directory)), "b=1");
}
