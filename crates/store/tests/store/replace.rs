//! A vhost of one store in the place of what another one has of it.

use std::path::Path;

use crosstie_queues::{Destination, Position, Record};
use crosstie_store::{Batch, Replaced, Store, StoreConfig, replace};

use crate::rig::*;

fn fill(path: &Path, vhosts: &[(&str, &[Record])]) {
    let (mut store, _) = Store::open(StoreConfig::new(path.to_owned())).expect("a store");
    let mut batch = Batch::default();
    for (vhost, records) in vhosts {
        batch.push(&(*vhost).into(), records.to_vec(), Position(1));
    }
    store.commit(&batch).expect("a commit");
}

/// Whether a setting belongs to the vhost `/`.
fn is_of_slash(key: &str) -> bool {
    key.ends_with(" /")
}

fn to(queue: &str) -> Destination {
    Destination::Queue(queue.into())
}

#[test]
fn a_vhost_is_replaced_and_others_are_as_they_were() {
    let (directory, beside) = (directory(), directory());
    let (store, copy) = (path(&directory), beside.path().join("copy"));
    let other = [queue(1, "other"), enqueued(1, 7)];
    // Numbers of queues and places of messages are used on both sides.
    let before = [
        exchange("gone"),
        queue(1, "gone"),
        queue(2, "q"),
        bound("gone", to("gone")),
        bound("amq.topic", to("q")),
        enqueued(1, 1),
        enqueued(2, 1),
    ];
    let now = [
        exchange("x"),
        queue(1, "q"),
        bound("x", to("q")),
        enqueued(1, 1),
        enqueued(1, 2),
        enqueued(1, 3),
    ];
    fill(&store, &[("/", &before), ("other", &other)]);
    fill(&copy, &[("/", &now)]);
    let expected = Replaced {
        queues: 1,
        messages: 3,
        queues_before: 2,
        messages_before: 2,
    };
    let replaced = replace(&store, "/", &copy, &is_of_slash).expect("a store");
    assert_eq!(replaced, expected);
    let of = |vhost: &str| {
        let kept = kept(&directory).into_iter();
        let found = kept.filter(|(name, _)| name == vhost);
        found.map(|(_, record)| record).collect::<Vec<_>>()
    };
    assert_eq!(of("/"), now);
    assert_eq!(of("other"), other);
    // Again it is the same; a vhost that the copy has not stays as it is, and so does one whose copy is not there.
    let again = replace(&store, "/", &copy, &is_of_slash).expect("a store");
    assert_eq!((again.queues_before, again.messages_before), (1, 3));
    for (vhost, from) in [("other", &copy), ("/", &beside.path().join("none"))] {
        let refused = replace(&store, vhost, from, &is_of_slash).expect_err("nothing is there");
        assert!(refused.to_string().contains("looking for"), "{refused}");
    }
    assert_eq!((of("/"), of("other")), (now.to_vec(), other.to_vec()));
}

#[test]
fn messages_without_a_queue_do_not_come_to_one_with_their_number() {
    let (directory, beside) = (directory(), directory());
    let copy = beside.path().join("copy");
    // A vhost had let those of a transient queue out of memory when it was killed.
    let other = [queue(1, "other"), enqueued(9, 1)];
    let before = [
        queue(1, "q"),
        enqueued(1, 1),
        enqueued(7, 1),
        enqueued(7, 2),
    ];
    let now = [queue(7, "r"), enqueued(7, 2), enqueued(7, 3)];
    fill(&path(&directory), &[("/", &before), ("other", &other)]);
    fill(&copy, &[("/", &now)]);
    replace(&path(&directory), "/", &copy, &is_of_slash).expect("a store");
    let of = |vhost: &str| {
        let kept = kept(&directory).into_iter();
        let found = kept.filter(|(name, _)| name == vhost);
        found.map(|(_, record)| record).collect::<Vec<_>>()
    };
    assert_eq!((of("/"), of("other")), (now.to_vec(), other.to_vec()));
}

#[test]
fn a_store_that_is_not_there_is_made() {
    let (directory, beside) = (directory(), directory());
    let copy = beside.path().join("copy");
    fill(&copy, &[("/", &[queue(1, "q"), enqueued(1, 1)])]);
    replace(&path(&directory), "/", &copy, &is_of_slash).expect("a store");
    assert_eq!(kept(&directory), of_slash(&[queue(1, "q"), enqueued(1, 1)]));
}

#[test]
fn an_open_store_is_refused() {
    let (directory, beside) = (directory(), directory());
    let copy = beside.path().join("copy");
    fill(&copy, &[("/", &[queue(1, "q")])]);
    fill(&path(&directory), &[("/", &[queue(1, "q")])]);
    let open = Store::open(config(&directory)).expect("a store");
    replace(&path(&directory), "/", &copy, &is_of_slash).expect_err("it is open");
    drop(open);
    replace(&path(&directory), "/", &copy, &is_of_slash).expect("it is not");
}

#[test]
fn settings_of_a_vhost_become_settings_of_the_broker() {
    let (directory, beside) = (directory(), directory());
    let copy = beside.path().join("copy");
    let setting = |key: &str, value: &str| Record::Setting {
        key: key.into(),
        value: Some(value.into()),
    };
    let begun = setting("begun", "");
    let records = [
        queue(1, "q"),
        begun,
        setting("a /", "2"),
        setting("c /", "3"),
    ];
    fill(&copy, &[("/", &records)]);
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let before = [("a /", "1"), ("b /", "1"), ("a other", "1")];
    let before = before.map(|(key, value)| (key.into(), Some(value.into())));
    store.put_settings(&before).expect("a commit");
    drop(store);
    replace(&path(&directory), "/", &copy, &is_of_slash).expect("a store");
    let (mut store, restored) = Store::open(config(&directory)).expect("a store");
    assert_eq!(restored.len(), 1);
    let settings = store.take_settings().into_iter();
    let settings: Vec<_> = settings
        .map(|of| format!("{}: {}", of.key, of.value))
        .collect();
    assert_eq!(settings, ["a /: 2", "a other: 1", "c /: 3"]);
}

#[test]
fn of_a_setting_of_a_vhost_the_last_value_is_kept() {
    let directory = directory();
    let setting = |key: &str, value: Option<&str>| Record::Setting {
        key: key.into(),
        value: value.map(Into::into),
    };
    let long = "x".repeat(60_000);
    let records = [
        queue(1, "q"),
        setting("a", Some("1")),
        setting("b", Some("1")),
        setting("long", Some(&long)),
    ];
    fill(&path(&directory), &[("/", &records), ("other", &records)]);
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let mut batch = Batch::default();
    let changes = vec![
        setting("a", Some("2")),
        setting("b", None),
        setting("absent", None),
    ];
    batch.push(&"/".into(), changes, Position(2));
    store.commit(&batch).expect("a commit");
    drop(store);
    let kept = kept(&directory).into_iter();
    let of_slash = kept.filter(|(name, _)| name == "/");
    let of_slash: Vec<_> = of_slash.map(|(_, record)| record).collect();
    let mut expected = vec![queue(1, "q"), setting("a", Some("2"))];
    expected.push(setting("long", Some(&long)));
    assert_eq!(of_slash, expected);
}
