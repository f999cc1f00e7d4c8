//! A log that its owner releases, and one that an operator recovers.

mod support;

use std::sync::Arc;

use crosstie_amqp::TableBuf;
use crosstie_ledger::{
    Broken, Effect, Ledger, News, Recovery, Release, Remains, Role, Salvage, Salvaged, Sequence,
};
use crosstie_queues::{Position, QueueId, Record};

use support::{CONFIG, NOW, enqueued, owner};

/// A log with the numbers of its entries.
type Log = Vec<(u64, Arc<[u8]>)>;

fn declared() -> Record {
    Record::queue_declared(QueueId(1), "q", TableBuf::new())
}

fn recovery(by: &str, replaced: &[u64]) -> Recovery {
    Recovery {
        by: by.into(),
        from: "a test".into(),
        replaced: replaced.to_vec(),
    }
}

fn last(log: &Log) -> u64 {
    log.last().map_or(0, |(sequence, _)| *sequence)
}

/// Lets the log accept all appends, and carries out purges; returns the other effects.
fn settle(ledger: &mut Ledger, log: &mut Log) -> Vec<Effect> {
    let mut others = Vec::new();
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { after, entry } => {
                assert_eq!(after.0, last(log));
                log.push((after.0 + 1, entry));
                ledger.handle_appended(NOW, Sequence(after.0 + 1));
            }
            Effect::Purge { to } => {
                log.retain(|(sequence, _)| *sequence > to.0);
                ledger.handle_purged(NOW, to);
            }
            other => others.push(other),
        }
    }
    others
}

fn follow(log: &Log) -> Result<Ledger, Broken> {
    let mut ledger = Ledger::new(CONFIG);
    for (sequence, entry) in log {
        ledger.handle_entry(Sequence(*sequence), entry)?;
    }
    Ok(ledger)
}

fn salvage(log: &Log) -> (Salvaged, Vec<Record>) {
    let (mut salvage, mut counting) = (Salvage::default(), Salvage::counting());
    for (sequence, entry) in log {
        salvage.take(Sequence(*sequence), entry);
        counting.take(Sequence(*sequence), entry);
    }
    let (found, records) = salvage.finish();
    // A salvage that only counts has the same findings, and no records.
    assert_eq!(counting.finish(), (found.clone(), Vec::new()));
    (found, records)
}

/// Claims a log that was read.
fn claimed(log: &mut Log, node: &str, name: u64) -> Ledger {
    let mut ledger = follow(log).expect("a log");
    ledger.claim(NOW, &owner(node), name);
    assert_eq!(settle(&mut ledger, log), [Effect::Owning]);
    ledger
}

fn submit(ledger: &mut Ledger, log: &mut Log, records: Vec<Record>) {
    let committed = Effect::Committed(Position(1));
    ledger.submit(NOW, records, Position(1));
    assert_eq!(settle(ledger, log), [committed]);
}

/// A log with a queue and so many messages, each in an entry of its own.
fn filled(name: u64, messages: i64) -> (Ledger, Log) {
    let mut log = Log::new();
    let mut ledger = claimed(&mut log, "a", name);
    submit(&mut ledger, &mut log, vec![declared()]);
    for place in 1..=messages {
        submit(&mut ledger, &mut log, vec![enqueued(place, 3)]);
    }
    (ledger, log)
}

fn expected(places: impl IntoIterator<Item = i64>) -> Vec<Record> {
    let messages = places.into_iter().map(|place| enqueued(place, 3));
    std::iter::once(declared()).chain(messages).collect()
}

fn records(ledger: &Ledger) -> Vec<Record> {
    ledger.records().collect()
}

/// Rewrites a log behind the rest of the old one, and purges that.
fn write_anew(log: &mut Log, recovery: Recovery, name: u64, contents: &[Record]) {
    let (found, _) = salvage(log);
    let begins = last(log);
    let remains = Remains {
        last: Sequence(begins),
        epoch: found.epoch,
    };
    let mut ledger = Ledger::recover_anew(CONFIG, NOW, recovery, name, remains);
    settle(&mut ledger, log);
    for part in contents.chunks(2) {
        ledger.submit(NOW, part.to_vec(), Position(1));
        settle(&mut ledger, log);
    }
    ledger.recover_end(NOW);
    settle(&mut ledger, log);
    assert!(ledger.is_settled() && ledger.role() == Role::Recovering);
    log.retain(|(sequence, _)| *sequence > begins);
    let log_bytes: usize = log.iter().map(|(_, entry)| entry.len()).sum();
    assert_eq!(ledger.status().log_bytes, log_bytes as u64);
}

/// Corrects the checksum of an altered entry.
fn seal(entry: &mut [u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&entry[..36]);
    hasher.update(&entry[40..]);
    let checksum = hasher.finalize().to_be_bytes();
    entry[36..40].copy_from_slice(&checksum);
}

#[test]
fn an_owner_that_releases_writes_nothing_more() {
    let (mut first, mut log) = filled(9, 2);
    let rested = vec![(QueueId(1), 3), (QueueId(2), i64::MIN)];
    let release = Release {
        to: "b".into(),
        rested: Some(rested.clone()),
    };
    first.submit(NOW, vec![enqueued(3, 3)], Position(7));
    assert!(!first.release(NOW, &release), "an append is in flight");
    assert_eq!(
        settle(&mut first, &mut log),
        [Effect::Committed(Position(7))]
    );
    assert!(first.release(NOW, &release));
    assert!(!first.release(NOW, &release));
    first.submit(NOW, vec![enqueued(4, 3)], Position(8));
    assert_eq!(settle(&mut first, &mut log), [Effect::Released]);
    assert_eq!(first.role(), Role::Deposed);

    let mut other = follow(&log[..log.len() - 1].to_vec()).expect("a log");
    let (at, entry) = log.last().expect("entries");
    let news = other.handle_entry(Sequence(*at), entry);
    assert_eq!(news, Ok(News::Released(release)));
    // The named node claims it, or the previous owner does so again.
    for (node, epoch) in [("b", 2), ("a", 3)] {
        let mut next = claimed(&mut log, node, 1);
        assert_eq!(next.status().epoch, epoch);
        // The first owner after the release knows which messages were never delivered. The second one reads an owner's
        // log that does not name them.
        let known = next.rested().map(|record| match record {
            Record::Rested { queue, fresh_from } => (queue, fresh_from),
            other => panic!("{other:?}"),
        });
        let known: Vec<_> = known.collect();
        assert_eq!(known, if node == "b" { &rested[..] } else { &[] });
        assert_eq!(records(&next), expected(1..=3));
        assert!(next.release(NOW, &Release::default()));
        assert_eq!(settle(&mut next, &mut log), [Effect::Released]);
    }
}

#[test]
fn a_former_owner_follows_on_as_if_it_had_read_its_own_log() {
    let (mut owning, mut log) = filled(9, 3);
    let gone = Record::dequeued(QueueId(1), 2);
    submit(&mut owning, &mut log, vec![gone]);
    let rested = Some(vec![(QueueId(1), 3)]);
    let release = Release {
        to: "b".into(),
        rested,
    };
    for round in 0..3 {
        assert!(owning.release(NOW, &release));
        assert_eq!(settle(&mut owning, &mut log), [Effect::Released]);
        let mut former = owning.into_follower().expect("it has released the vhost");
        let reader = follow(&log).expect("a log");
        assert_eq!(former.status(), reader.status());
        assert_eq!(records(&former), records(&reader));
        // Another node owns the vhost for a while, or the former owner resumes ownership at once.
        if round == 1 {
            let written = log.len();
            let mut other = claimed(&mut log, "b", 1);
            submit(&mut other, &mut log, vec![enqueued(7, 3)]);
            assert!(other.release(NOW, &release));
            settle(&mut other, &mut log);
            for (sequence, entry) in &log[written..] {
                let read = former.handle_entry(Sequence(*sequence), entry);
                read.expect("the log goes on");
            }
            assert_eq!(records(&former), records(&follow(&log).expect("a log")));
        }
        former.claim(NOW, &owner("a"), 1);
        assert_eq!(settle(&mut former, &mut log), [Effect::Owning]);
        let known: Vec<_> = former.rested().collect();
        let fresh_from = 3;
        let queue = QueueId(1);
        assert_eq!(known, [Record::Rested { queue, fresh_from }]);
        submit(&mut former, &mut log, vec![enqueued(10 + round, 3)]);
        owning = former;
    }
}

#[test]
fn a_deposed_owner_does_not_follow_on() {
    let (mut first, mut log) = filled(9, 1);
    assert!(first.release(NOW, &Release::default()));
    let Some(Effect::Append { after, .. }) = first.next_effect() else {
        panic!("expected an append");
    };
    claimed(&mut log, "b", 1);
    first.handle_refused(NOW, after);
    first.next_effect();
    let (at, entry) = log.last().expect("entries");
    let at = Sequence(*at);
    first.handle_end(NOW, (after, at), [(at, &**entry)]);
    assert_eq!(first.role(), Role::Deposed);
    assert!(first.into_follower().is_none());
    let (owning, _) = filled(9, 1);
    assert!(owning.into_follower().is_none());
}

#[test]
fn entries_behind_a_release_break_the_log() {
    let (mut first, mut log) = filled(9, 1);
    let fresh = log[2].1.to_vec();
    assert!(first.release(NOW, &Release::default()));
    settle(&mut first, &mut log);
    let release = &log[3].1;
    // An entry that would follow in every other respect.
    let mut entry = fresh;
    entry[20..28].copy_from_slice(&5_u64.to_be_bytes());
    entry[32..36].copy_from_slice(&release[36..40]);
    seal(&mut entry);
    let mut reader = follow(&log).expect("a log");
    assert_eq!(reader.handle_entry(Sequence(5), &entry), Err(Broken::Chain));
    let mut claims = follow(&log).expect("a log");
    claims.claim(NOW, &owner("b"), 1);
    assert_eq!(settle(&mut claims, &mut log), [Effect::Owning]);
    let (at, entry) = log.last().expect("entries");
    let news = reader.handle_entry(Sequence(*at), entry);
    assert_eq!(news, Ok(News::Owned(owner("b"))));
}

#[test]
fn a_claim_before_the_release_prevents_it() {
    let (mut first, mut log) = filled(9, 1);
    assert!(first.release(NOW, &Release::default()));
    let Some(Effect::Append { after, .. }) = first.next_effect() else {
        panic!("expected an append");
    };
    claimed(&mut log, "b", 1);
    first.handle_refused(NOW, after);
    assert_eq!(first.next_effect(), Some(Effect::Read { after }));
    let (at, entry) = log.last().expect("entries");
    let at = Sequence(*at);
    first.handle_end(NOW, (after, at), [(at, &**entry)]);
    assert_eq!(first.next_effect(), Some(Effect::Deposed));
}

#[test]
fn a_shorter_log_that_was_accepted_is_recognized() {
    let (_, mut log) = filled(9, 5);
    let known = Some((9, Sequence(last(&log))));
    log.truncate(4);
    let mut left = follow(&log).expect("a log");
    let end = Sequence(last(&log));
    assert_eq!(left.check_end(end, known), Err(Broken::Shorter));
    left.recover_whole(NOW, recovery("a", &[9]), 12);
    assert_eq!(settle(&mut left, &mut log), []);
    assert!(left.is_settled());
    let reader = follow(&log).expect("a log");
    let end = Sequence(last(&log));
    assert_eq!(reader.check_end(end, known), Ok(()));
    assert!(reader.replaces(9) && !reader.replaces(8));
    assert_eq!(reader.recovery().map(|found| &*found.by), Some("a"));
    // A node that knows another log, or more of this one, does not accept it.
    assert_eq!(
        reader.check_end(end, Some((8, Sequence(1)))),
        Err(Broken::Foreign)
    );
    assert_eq!(
        reader.check_end(end, Some((12, Sequence(end.0 + 1)))),
        Err(Broken::Shorter)
    );
    let owner = claimed(&mut log, "b", 1);
    assert_eq!(records(&owner), expected(1..=2));
    assert_eq!(owner.status().log, 12);
}

#[test]
fn a_broken_log_is_rewritten_from_its_readable_entries() {
    let (_, mut log) = filled(9, 6);
    let mut changed = log[4].1.to_vec();
    changed[50] ^= 1;
    log[4].1 = changed.into();
    log.remove(6);
    assert_eq!(follow(&log).err(), Some(Broken::Checksum));
    let (found, left) = salvage(&log);
    assert_eq!(
        found,
        Salvaged {
            entries: 6,
            unreadable: 2,
            epoch: 1,
            logs: vec![9],
            is_of_later: false,
        }
    );
    // Messages of the third and the fifth entry behind the queue's are lost.
    assert_eq!(left, expected([1, 2, 4, 6]));
    write_anew(&mut log, recovery("a", &[9]), 13, &left);
    let owner = claimed(&mut log, "b", 1);
    assert_eq!(records(&owner), expected([1, 2, 4, 6]));
    assert!(owner.replaces(9));
    assert_eq!(owner.status().epoch, 3);
}

#[test]
fn a_log_that_is_being_rewritten_is_not_claimed() {
    let (mut first, mut log) = filled(9, 3);
    let whole = log.clone();
    write_anew(&mut log, recovery("a", &[9]), 13, &expected([1, 2]));
    log.splice(0..0, whole.clone());
    let begins = whole.len();
    for end in begins + 1..log.len() {
        let part = log[..end].to_vec();
        let mut reader = follow(&part).expect("a log");
        let end = Sequence(last(&part));
        assert_eq!(reader.check_end(end, None), Err(Broken::Unfinished));
        reader.claim(NOW, &owner("b"), 1);
        assert_eq!(reader.next_effect(), None);
        // A recovery from there has the records that were live before.
        assert_eq!(salvage(&part).1, expected(1..=3));
        let mut again = part.clone();
        write_anew(&mut again, recovery("b", &[13]), 14, &expected([3]));
        let owner = claimed(&mut again, "c", 1);
        assert_eq!(records(&owner), expected([3]));
        assert!(owner.replaces(13));
    }
    let reader = follow(&log).expect("a log");
    assert_eq!(records(&reader), expected([1, 2]));
    assert_eq!(salvage(&log).1, expected([1, 2]));
    // The previous owner finds that it is deposed.
    let after = Sequence(last(&whole));
    first.submit(NOW, vec![enqueued(9, 3)], Position(2));
    first.next_effect();
    first.handle_refused(NOW, after);
    first.next_effect();
    let behind = log[begins..].iter();
    let behind = behind.map(|(at, entry)| (Sequence(*at), &**entry));
    first.handle_end(NOW, (after, Sequence(last(&log))), behind);
    assert_eq!(first.next_effect(), Some(Effect::Deposed));
}

#[test]
fn the_names_of_replaced_logs_survive_cleaning() {
    let (_, mut log) = filled(9, 2);
    write_anew(&mut log, recovery("a", &[9]), 13, &expected([1, 2]));
    let mut left = follow(&log).expect("a log");
    left.recover_whole(NOW, recovery("b", &[77]), 14);
    settle(&mut left, &mut log);
    let mut owner = claimed(&mut log, "b", 1);
    let first = log[0].0;
    for place in 10..60 {
        submit(&mut owner, &mut log, vec![enqueued(place, 300)]);
        let gone = Record::dequeued(QueueId(1), place);
        submit(&mut owner, &mut log, vec![gone]);
    }
    assert!(log[0].0 > first + 50, "it was cleaned");
    let reader = follow(&log).expect("a log");
    for replaced in [9, 13, 77] {
        assert!(reader.replaces(replaced), "{replaced}");
    }
    assert_eq!(records(&reader), expected([1, 2]));
}

#[test]
fn the_number_of_replaced_logs_is_bounded() {
    let (_, mut log) = filled(100, 1);
    for name in 101..150 {
        let mut left = follow(&log).expect("a log");
        left.recover_whole(NOW, recovery("a", &[]), name);
        settle(&mut left, &mut log);
    }
    let reader = follow(&log).expect("a log");
    let replaced = reader.recovery().map(|found| found.replaced.clone());
    assert_eq!(replaced, Some((133..149).collect()));
}

#[test]
fn entries_of_a_later_version_are_not_discarded() {
    let (_, log) = filled(9, 1);
    let mut later = log[1].1.to_vec();
    later[1] = 77;
    assert!(follow(&vec![(1, later.clone().into())]).is_err());
    seal(&mut later);
    let log = vec![(1, Arc::clone(&log[0].1)), (2, later.into())];
    assert_eq!(follow(&log).err(), Some(Broken::Kind(77)));
    assert!(salvage(&log).0.is_of_later);
    let of_format = |format: u8| {
        let mut entry = log[0].1.to_vec();
        entry[0] = format;
        salvage(&vec![(1, entry.into())]).0.is_of_later
    };
    assert!(of_format(3) && !of_format(b'n'));
}
