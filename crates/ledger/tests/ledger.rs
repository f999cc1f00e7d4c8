//! A ledger beside a log under the test's control.

mod support;

use std::mem;
use std::sync::Arc;

use crosstie_ledger::{Broken, Effect, Ledger, News, Owner, Role, Sequence};
use crosstie_queues::{Destination, Position, QueueId, Record, Time};

use support::{CONFIG, NOW, enqueued, owner};

type Entry = Arc<[u8]>;

fn dequeued(place: i64) -> Record {
    Record::dequeued(QueueId(1), place)
}

fn effects(ledger: &mut Ledger) -> Vec<Effect> {
    std::iter::from_fn(|| ledger.next_effect()).collect()
}

/// The only effect, an append.
fn append(ledger: &mut Ledger) -> (Sequence, Entry) {
    match &effects(ledger)[..] {
        [Effect::Append { after, entry }] => (*after, Arc::clone(entry)),
        other => panic!("expected an append: {other:?}"),
    }
}

/// Lets the log accept all appends; returns the other effects.
fn settle(ledger: &mut Ledger, log: &mut Vec<Entry>) -> Vec<Effect> {
    let mut others = Vec::new();
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { after, entry } => {
                assert_eq!(after.0, log.len() as u64);
                log.push(entry);
                ledger.handle_appended(NOW, Sequence(log.len() as u64));
            }
            other => others.push(other),
        }
    }
    others
}

/// An owner of an empty log.
fn owning() -> (Ledger, Vec<Entry>) {
    let mut ledger = Ledger::new(CONFIG);
    let mut log = Vec::new();
    ledger.claim(NOW, &owner("a"), 99);
    assert_eq!(settle(&mut ledger, &mut log), [Effect::Owning]);
    (ledger, log)
}

/// A follower of all of it.
fn follow(log: &[Entry]) -> Result<(Ledger, Vec<News>), Broken> {
    let mut ledger = Ledger::new(CONFIG);
    let mut news = Vec::new();
    for (sequence, entry) in (1..).zip(log) {
        news.push(ledger.handle_entry(Sequence(sequence), entry)?);
    }
    Ok((ledger, news))
}

#[test]
fn a_batch_of_several_parts_is_complete_with_the_last() {
    let (mut ledger, mut log) = owning();
    let record = enqueued(1, 350);
    ledger.submit(NOW, vec![record.clone()], Position(5));
    let committed = settle(&mut ledger, &mut log);
    assert_eq!(committed, [Effect::Committed(Position(5))]);
    let (follower, news) = follow(&log).expect("a log");
    let expected = [
        News::Owned(owner("a")),
        News::Nothing,
        News::Nothing,
        News::Nothing,
        News::Nothing,
        News::Records(vec![record.clone()]),
    ];
    assert_eq!(news[..news.len() - 1], expected[..news.len() - 1]);
    assert_eq!(news.last(), expected.last());
    assert_eq!(follower.records().collect::<Vec<_>>(), [record]);
}

#[test]
fn an_incomplete_batch_of_a_former_owner_is_ignored() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 350)], Position(5));
    let (_, part) = append(&mut ledger);
    log.push(part);
    let (mut next, _) = follow(&log).expect("a log");
    next.claim(NOW, &owner("b"), 98);
    assert_eq!(settle(&mut next, &mut log), [Effect::Owning]);
    next.submit(NOW, vec![enqueued(2, 3)], Position(1));
    settle(&mut next, &mut log);
    let (follower, _) = follow(&log).expect("a log");
    assert_eq!(follower.records().collect::<Vec<_>>(), [enqueued(2, 3)]);
    assert_eq!(follower.status().owner, Some(owner("b")));
    assert_eq!(follower.status().epoch, 2);
}

#[test]
fn an_octet_changed_anywhere_is_noticed() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 20)], Position(1));
    settle(&mut ledger, &mut log);
    for index in 0..log.len() {
        for place in 0..log[index].len() {
            let mut changed = log.clone();
            let mut entry = changed[index].to_vec();
            entry[place] ^= 1;
            changed[index] = entry.into();
            assert!(follow(&changed).is_err(), "entry {index}, octet {place}");
        }
    }
}

#[test]
fn entries_that_are_missing_or_of_another_log_are_noticed() {
    let (mut ledger, mut log) = owning();
    for place in 1..4 {
        ledger.submit(NOW, vec![enqueued(place, 3)], Position(place as u64));
        settle(&mut ledger, &mut log);
    }
    let (mut other, mut others) = (Ledger::new(CONFIG), Vec::new());
    other.claim(NOW, &owner("a"), 100);
    settle(&mut other, &mut others);
    other.submit(NOW, vec![enqueued(1, 3)], Position(1));
    settle(&mut other, &mut others);

    let (mut follower, _) = follow(&log[..2]).expect("a log");
    let missed = follower.handle_entry(Sequence(4), &log[3]);
    assert_eq!(missed, Err(Broken::Missing));
    let mixed = [&log[..1], &others[1..2]].concat();
    assert_eq!(follow(&mixed).err(), Some(Broken::Foreign));
    let out_of_order = [&log[..1], &log[2..3]].concat();
    assert_eq!(follow(&out_of_order).err(), Some(Broken::Chain));
}

#[test]
fn unacknowledged_entries_are_sent_again_if_the_log_lacks_them() {
    let (mut ledger, log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    let sent = append(&mut ledger);
    let due = ledger
        .next_timeout()
        .expect("an acknowledgement is waited for");
    assert_eq!(due, Time(NOW.0 + CONFIG.acknowledgement_ms));
    ledger.handle_timeout(Time(due.0 - 1));
    assert_eq!(effects(&mut ledger), []);
    ledger.handle_timeout(due);
    let after = Sequence(log.len() as u64);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    // It is not there: the same entry is sent again.
    ledger.handle_end(due, (after, after), []);
    assert_eq!(append(&mut ledger), sent);
    ledger.handle_refused(due, after);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    // It is there after all.
    let last = Sequence(after.0 + 1);
    ledger.handle_end(due, (after, last), [(last, &*sent.1)]);
    assert_eq!(effects(&mut ledger), [Effect::Committed(Position(1))]);
    assert!(ledger.is_settled());
}

#[test]
fn the_end_is_read_at_once_over_a_new_connection_if_an_append_is_out() {
    let (mut ledger, log) = owning();
    ledger.handle_connected(NOW);
    assert_eq!(effects(&mut ledger), [], "nothing is out");
    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    let sent = append(&mut ledger);
    let after = Sequence(log.len() as u64);
    // The first read may have been lost with its connection, too.
    for _ in 0..2 {
        ledger.handle_connected(NOW);
        assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    }
    ledger.handle_end(NOW, (after, after), []);
    assert_eq!(append(&mut ledger), sent);
}

#[test]
fn a_deposed_owner_writes_and_confirms_nothing_more() {
    let (mut ledger, mut log) = owning();
    let (mut next, _) = follow(&log).expect("a log");
    next.claim(NOW, &owner("b"), 1);
    settle(&mut next, &mut log);

    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    let (after, _) = append(&mut ledger);
    ledger.handle_refused(NOW, after);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    ledger.handle_end(NOW, (after, Sequence(2)), [(Sequence(2), &*log[1])]);
    assert_eq!(effects(&mut ledger), [Effect::Deposed]);
    assert_eq!(ledger.role(), Role::Deposed);
    ledger.submit(NOW, vec![enqueued(2, 3)], Position(2));
    ledger.handle_appended(NOW, Sequence(2));
    ledger.handle_timeout(Time(u64::MAX));
    assert_eq!(effects(&mut ledger), []);
}

#[test]
fn a_log_that_lost_an_acknowledged_entry_is_broken() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    settle(&mut ledger, &mut log);
    ledger.submit(NOW, vec![enqueued(2, 3)], Position(2));
    let (after, _) = append(&mut ledger);
    ledger.handle_refused(NOW, after);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    ledger.handle_end(NOW, (after, Sequence(1)), []);
    let broken = Effect::Broken(Sequence(1), Broken::Shorter);
    assert_eq!(effects(&mut ledger), [broken]);
}

#[test]
fn a_rival_makes_an_idle_owner_read_the_log() {
    let (mut ledger, _) = owning();
    ledger.handle_rival(NOW, 1);
    assert_eq!(effects(&mut ledger), []);
    ledger.handle_rival(NOW, 2);
    let after = Sequence(1);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
}

#[test]
fn a_short_lived_message_is_not_written_and_commits_in_its_turn() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    let (_, first) = append(&mut ledger);
    // While that is in flight.
    ledger.submit(NOW, vec![enqueued(2, 3)], Position(2));
    ledger.submit(NOW, vec![dequeued(2)], Position(3));
    assert_eq!(effects(&mut ledger), []);
    log.push(first);
    ledger.handle_appended(NOW, Sequence(2));
    let committed = [1, 3].map(|position| Effect::Committed(Position(position)));
    assert_eq!(effects(&mut ledger), committed);
    assert!(ledger.is_settled());
}

#[test]
fn a_long_log_is_cleaned_without_loss() {
    let (mut ledger, mut log) = owning();
    // Lasting records, and then many that are deleted.
    let staying: Vec<_> = (0..5).map(|place| enqueued(place, 10)).collect();
    ledger.submit(NOW, staying.clone(), Position(1));
    let mut purged = 0;
    for round in 10..200 {
        ledger.submit(NOW, vec![enqueued(round, 60)], Position(2));
        let mut others = settle(&mut ledger, &mut log);
        ledger.submit(NOW, vec![dequeued(round)], Position(3));
        others.extend(settle(&mut ledger, &mut log));
        for effect in mem::take(&mut others) {
            if let Effect::Purge { to } = effect {
                purged = to.0;
                ledger.handle_purged(NOW, to);
            }
        }
    }
    let status = ledger.status();
    assert!(purged > 300, "up to {purged}");
    assert!(status.log_bytes < 3 * CONFIG.log_bytes_min, "{status:?}");
    assert!(purged < log.len() as u64, "the last entry stays");
    let mut fresh = Ledger::new(CONFIG);
    for (sequence, entry) in (1..).zip(&log).skip(purged as usize) {
        let read = fresh.handle_entry(Sequence(sequence), entry);
        assert!(read.is_ok(), "{sequence}: {read:?}");
    }
    assert_eq!(fresh.records().collect::<Vec<_>>(), staying);
    assert_eq!(ledger.records().collect::<Vec<_>>(), staying);
}

#[test]
fn a_log_without_live_records_keeps_its_last_entry() {
    let (mut ledger, mut log) = owning();
    for round in 0..100 {
        for record in [enqueued(round, 60), dequeued(round)] {
            ledger.submit(NOW, vec![record], Position(1));
            for effect in settle(&mut ledger, &mut log) {
                if let Effect::Purge { to } = effect {
                    assert!(to.0 < log.len() as u64, "{to:?} of {}", log.len());
                    ledger.handle_purged(NOW, to);
                }
            }
        }
    }
}

#[test]
fn a_log_not_read_to_its_end_is_not_claimed() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    settle(&mut ledger, &mut log);
    let (read, _) = follow(&log).expect("a log");
    let empty = Ledger::new(CONFIG);
    let known = |log, sequence| Some((log, Sequence(sequence)));
    for (name, ledger, last, known, expected) in [
        ("all of it", &read, 2, None, Ok(())),
        ("as known", &read, 2, known(99, 2), Ok(())),
        ("longer than known", &read, 2, known(99, 1), Ok(())),
        ("a new one", &empty, 0, None, Ok(())),
        ("not to its end", &read, 3, None, Err(Broken::Missing)),
        (
            "numbers without entries",
            &empty,
            2,
            None,
            Err(Broken::Missing),
        ),
        ("less than was read", &read, 1, None, Err(Broken::Shorter)),
        (
            "less than is known",
            &read,
            2,
            known(99, 3),
            Err(Broken::Shorter),
        ),
        ("made anew", &empty, 0, known(99, 2), Err(Broken::Shorter)),
        ("another one", &read, 2, known(98, 2), Err(Broken::Foreign)),
    ] {
        let found = ledger.check_end(Sequence(last), known);
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn an_entry_names_the_new_owner() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 3)], Position(1));
    settle(&mut ledger, &mut log);
    assert_eq!(Owner::of(&log[0]), Ok(Some((1, owner("a")))));
    assert_eq!(Owner::of(&log[1]), Ok(None));
    let mut later = log[1].to_vec();
    later[0] = 9;
    assert_eq!(Owner::of(&later), Err(Broken::Format(9)));
}

fn setting(key: &str, value: Option<&str>) -> Record {
    Record::Setting {
        key: key.into(),
        value: value.map(Arc::from),
    }
}

#[test]
fn of_a_setting_the_last_value_stays_and_a_removed_one_is_gone() {
    let (mut ledger, mut log) = owning();
    let records = vec![
        setting("a", Some("1")),
        setting("b", Some("x")),
        setting("c", Some("")),
    ];
    ledger.submit(NOW, records, Position(3));
    let records = vec![setting("a", Some("2")), setting("b", None)];
    ledger.submit(NOW, records, Position(5));
    settle(&mut ledger, &mut log);
    let expected = [setting("a", Some("2")), setting("c", Some(""))];
    assert_eq!(ledger.records().collect::<Vec<_>>(), expected);
    // The log is cleaned behind messages that come and go.
    for place in 0..200 {
        ledger.submit(NOW, vec![enqueued(place, 50)], Position(6));
        settle(&mut ledger, &mut log);
        ledger.submit(NOW, vec![dequeued(place)], Position(7));
        settle(&mut ledger, &mut log);
    }
    let (follower, _) = follow(&log).expect("a log");
    assert_eq!(follower.records().collect::<Vec<_>>(), expected);
    let removed = vec![setting("a", None), setting("c", None)];
    ledger.submit(NOW, removed, Position(8));
    settle(&mut ledger, &mut log);
    assert_eq!(ledger.records().count(), 0);
    assert_eq!(ledger.status().live_bytes, 0);
}

#[test]
fn a_setting_has_the_epoch_of_the_owner_that_has_set_it() {
    fn epochs(ledger: &Ledger) -> Vec<(&str, u64)> {
        let epochs = ledger.setting_epochs();
        epochs.map(|(key, epoch)| (&**key, epoch)).collect()
    }
    let (mut ledger, mut log) = owning();
    let records = ["a", "b", "c"].map(|key| setting(key, Some("1")));
    ledger.submit(NOW, records.to_vec(), Position(1));
    settle(&mut ledger, &mut log);
    let (mut next, _) = follow(&log).expect("a log");
    next.claim(NOW, &owner("b"), 98);
    settle(&mut next, &mut log);
    assert_eq!(epochs(&next), [("a", 1), ("b", 1), ("c", 1)]);
    // The same value, and another one.
    let records = vec![setting("b", Some("1")), setting("c", Some("2"))];
    next.submit(NOW, records, Position(1));
    settle(&mut next, &mut log);
    let (mut follower, _) = follow(&log).expect("a log");
    let read = log.len();
    // The log is cleaned: all are written again.
    for place in 0..200 {
        next.submit(NOW, vec![enqueued(place, 50)], Position(2));
        settle(&mut next, &mut log);
        next.submit(NOW, vec![dequeued(place)], Position(3));
        settle(&mut next, &mut log);
    }
    for (sequence, entry) in (1..).zip(&log).skip(read) {
        follower
            .handle_entry(Sequence(sequence), entry)
            .expect("a log");
    }
    for ledger in [&next, &follower] {
        assert_eq!(epochs(ledger), [("a", 1), ("b", 2), ("c", 2)]);
    }
}

#[test]
fn only_a_batch_with_settings_has_a_format_that_version_0_1_0_refuses() {
    let (mut ledger, mut log) = owning();
    ledger.submit(NOW, vec![enqueued(1, 20)], Position(1));
    settle(&mut ledger, &mut log);
    let before = log.len();
    // Of several parts each has it.
    let long = "x".repeat(300);
    ledger.submit(NOW, vec![setting("a", Some(&long))], Position(2));
    settle(&mut ledger, &mut log);
    let formats = |entries: &[Entry]| entries.iter().map(|entry| entry[0]).collect::<Vec<_>>();
    assert!(formats(&log[..before]).iter().all(|format| *format == 1));
    assert_eq!(formats(&log[before..]), [2; 4]);
    let (follower, _) = follow(&log).expect("a log");
    assert_eq!(follower.records().count(), 2);
    let mut later = log[before].to_vec();
    later[0] = 3;
    let mut ledger = Ledger::new(CONFIG);
    let refused = ledger.handle_entry(Sequence(1), &later);
    assert_eq!(refused, Err(Broken::Format(3)));
}

#[test]
fn the_order_of_bindings_is_in_the_log() {
    let bound = |key: &str, order| Record::Bound {
        source: "x".into(),
        destination: Destination::Queue("q".into()),
        routing_key: key.into(),
        arguments: Default::default(),
        order,
    };
    let (mut ledger, mut log) = owning();
    let records = vec![bound("1", 3), bound("2", 0), bound("4", u64::MAX)];
    ledger.submit(NOW, records.clone(), Position(3));
    settle(&mut ledger, &mut log);
    let (follower, news) = follow(&log).expect("a log");
    assert_eq!(news.last(), Some(&News::Records(records.clone())));
    let mut live: Vec<_> = follower.records().collect();
    live.sort_by_key(|record| match record {
        Record::Bound { routing_key, .. } => routing_key.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(live, records);
}
