//! Two appends in flight: what the log makes of them, and what the ledger makes of that.

mod support;

use std::sync::Arc;

use crosstie_ledger::{Effect, Ledger, News, Role, Salvage, Sequence};
use crosstie_queues::{Position, QueueId, Record, Time};

use support::{CONFIG, NOW, enqueued, owner};

type Entry = Arc<[u8]>;

/// A log that decides as JetStream does: by the number of its last entry alone.
#[derive(Clone, Default)]
struct Log {
    entries: Vec<Entry>,
}

impl Log {
    fn last(&self) -> Sequence {
        Sequence(self.entries.len() as u64)
    }

    fn accepts(&mut self, (after, entry): &(Sequence, Entry)) -> bool {
        let is_expected = *after == self.last();
        if is_expected {
            self.entries.push(Arc::clone(entry));
        }
        is_expected
    }

    fn behind(&self, after: Sequence) -> impl Iterator<Item = (Sequence, &[u8])> {
        let entries = (1..).zip(&self.entries).skip(after.0 as usize);
        entries.map(|(at, entry)| (Sequence(at), &**entry))
    }

    /// Answers a request to read the end.
    fn read(&self, ledger: &mut Ledger, after: Sequence) {
        ledger.handle_end(NOW, (after, self.last()), self.behind(after));
    }

    fn follow(&self) -> (Ledger, Vec<News>) {
        let mut ledger = Ledger::new(CONFIG);
        ledger.limit_appends(usize::MAX);
        let news = self.behind(Sequence(0)).map(|(at, entry)| {
            let news = ledger.handle_entry(at, entry);
            news.unwrap_or_else(|broken| panic!("entry {}: {broken}", at.0))
        });
        let news = news.collect();
        (ledger, news)
    }
}

fn effects(ledger: &mut Ledger) -> Vec<Effect> {
    std::iter::from_fn(|| ledger.next_effect()).collect()
}

/// The effects, all of which are appends.
fn appends(ledger: &mut Ledger) -> Vec<(Sequence, Entry)> {
    let effects = effects(ledger).into_iter();
    let appends = effects.map(|effect| match effect {
        Effect::Append { after, entry } => (after, entry),
        other => panic!("expected appends: {other:?}"),
    });
    appends.collect()
}

/// Lets the log accept all appends; returns the other effects.
fn settle(ledger: &mut Ledger, log: &mut Log) -> Vec<Effect> {
    let mut others = Vec::new();
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { after, entry } => {
                assert!(log.accepts(&(after, entry)));
                ledger.handle_appended(NOW, log.last());
            }
            other => others.push(other),
        }
    }
    others
}

fn claimed(log: &mut Log, node: &str) -> Ledger {
    let (mut ledger, _) = log.follow();
    ledger.claim(NOW, &owner(node), 99);
    assert_eq!(settle(&mut ledger, log), [Effect::Owning]);
    ledger
}

/// An owner whose first batch is in the log, as the claim and entry 2.
fn owning() -> (Ledger, Log) {
    let mut log = Log::default();
    let mut ledger = claimed(&mut log, "a");
    submit(&mut ledger, 1);
    assert_eq!(settle(&mut ledger, &mut log), [committed(1)]);
    (ledger, log)
}

/// Submits one message, whose place and position are that number.
fn submit(ledger: &mut Ledger, number: i64) {
    let position = Position(number.cast_unsigned());
    ledger.submit(NOW, vec![enqueued(number, 3)], position);
}

fn committed(position: u64) -> Effect {
    Effect::Committed(Position(position))
}

fn messages(places: &[i64]) -> Vec<Record> {
    places.iter().map(|place| enqueued(*place, 3)).collect()
}

/// The second of two appends of a deposed owner, accepted behind the claim of another node; and that node.
fn late() -> (Ledger, Ledger, Log) {
    let (mut first, mut log) = owning();
    submit(&mut first, 2);
    submit(&mut first, 3);
    let sent = appends(&mut first);
    let second = claimed(&mut log, "b");
    assert!(!log.accepts(&sent[0]), "the claim is in its place");
    assert!(log.accepts(&sent[1]), "the number is right");
    first.handle_appended(NOW, log.last());
    first.handle_refused(NOW, sent[0].0);
    (first, second, log)
}

#[test]
fn a_second_append_does_not_wait_for_the_first() {
    let (mut ledger, mut log) = owning();
    for number in 2..=5 {
        submit(&mut ledger, number);
    }
    let sent = appends(&mut ledger);
    let after = sent.iter().map(|(after, _)| after.0);
    assert_eq!(after.collect::<Vec<_>>(), [2, 3]);
    assert!(sent.iter().all(|append| log.accepts(append)));
    ledger.handle_appended(NOW, Sequence(3));
    // What has waited is one batch.
    let effects = effects(&mut ledger);
    let [first, Effect::Append { after, entry }] = &effects[..] else {
        panic!("expected a commit and an append: {effects:?}");
    };
    assert_eq!((first, after), (&committed(2), &Sequence(4)));
    assert!(log.accepts(&(*after, Arc::clone(entry))));
    ledger.handle_appended(NOW, Sequence(4));
    ledger.handle_appended(NOW, Sequence(5));
    settle(&mut ledger, &mut log);
    let news = log.follow().1.pop();
    assert_eq!(news, Some(News::Records(messages(&[4, 5]))));
}

#[test]
fn one_append_is_in_flight_beside_readers_of_an_earlier_version() {
    let (mut ledger, mut log) = owning();
    ledger.limit_appends(1);
    submit(&mut ledger, 2);
    submit(&mut ledger, 3);
    let sent = appends(&mut ledger);
    assert_eq!(sent.len(), 1);
    ledger.limit_appends(usize::MAX);
    submit(&mut ledger, 4);
    assert!(log.accepts(&sent[0]));
    assert_eq!(appends(&mut ledger).len(), 1, "and no more than two");
}

#[test]
fn the_first_entry_behind_a_claim_is_alone_in_flight() {
    let mut log = Log::default();
    let mut ledger = claimed(&mut log, "a");
    submit(&mut ledger, 1);
    submit(&mut ledger, 2);
    let sent = appends(&mut ledger);
    assert_eq!(sent.len(), 1);
    assert!(log.accepts(&sent[0]));
    ledger.handle_appended(NOW, Sequence(2));
    submit(&mut ledger, 3);
    let effects = effects(&mut ledger);
    assert_eq!(effects.len(), 3, "a commit and two appends: {effects:?}");
}

#[test]
fn an_acknowledgement_counts_once_those_before_it_have_theirs() {
    let (mut ledger, _) = owning();
    submit(&mut ledger, 2);
    submit(&mut ledger, 3);
    assert_eq!(appends(&mut ledger).len(), 2);
    ledger.handle_appended(NOW, Sequence(4));
    assert_eq!(effects(&mut ledger), []);
    ledger.handle_appended(NOW, Sequence(3));
    assert_eq!(effects(&mut ledger), [committed(2), committed(3)]);
    assert!(ledger.is_settled());
    // Late, repeated, or of nothing that was sent.
    for sequence in [0, 1, 3, 4, 5, u64::MAX] {
        ledger.handle_appended(NOW, Sequence(sequence));
        assert_eq!(effects(&mut ledger), []);
    }
}

#[test]
fn both_are_sent_again_if_the_first_is_lost() {
    let (mut ledger, mut log) = owning();
    submit(&mut ledger, 2);
    submit(&mut ledger, 3);
    let sent = appends(&mut ledger);
    assert!(!log.accepts(&sent[1]), "the first one is missing");
    ledger.handle_refused(NOW, sent[1].0);
    let after = Sequence(2);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    // While the end is read nothing is sent.
    submit(&mut ledger, 4);
    assert_eq!(effects(&mut ledger), []);
    log.read(&mut ledger, after);
    assert_eq!(appends(&mut ledger), sent);
    assert!(sent.iter().all(|append| log.accepts(append)));
    // The second one's answer is lost, and the log is read.
    ledger.handle_appended(NOW, Sequence(3));
    assert_eq!(effects(&mut ledger).len(), 2);
    ledger.handle_timeout(Time(NOW.0 + CONFIG.acknowledgement_ms));
    let after = Sequence(3);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    log.read(&mut ledger, after);
    assert_eq!(effects(&mut ledger)[0], committed(3));
}

#[test]
fn an_append_that_is_not_decided_is_not_asked_about_again_and_again() {
    let (mut ledger, mut log) = owning();
    submit(&mut ledger, 2);
    let sent = appends(&mut ledger);
    let after = Sequence(2);
    // Its first copy is with a leader that has no majority, and refuses the others.
    for _ in 0..2 {
        ledger.handle_refused(NOW, after);
        assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
        log.read(&mut ledger, after);
        assert_eq!(appends(&mut ledger), sent);
    }
    ledger.handle_refused(NOW, after);
    assert_eq!(effects(&mut ledger), []);
    let due = Time(NOW.0 + CONFIG.retry_ms);
    assert_eq!(ledger.next_timeout(), Some(due));
    assert!(log.accepts(&sent[0]));
    ledger.handle_timeout(due);
    assert_eq!(effects(&mut ledger), [Effect::Read { after }]);
    log.read(&mut ledger, after);
    assert_eq!(effects(&mut ledger), [committed(2)]);
}

#[test]
fn a_deposed_owner_does_not_confirm_its_late_entry() {
    let (mut first, _, log) = late();
    let after = Sequence(2);
    assert_eq!(effects(&mut first), [Effect::Read { after }]);
    log.read(&mut first, after);
    assert_eq!(effects(&mut first), [Effect::Deposed]);
    assert_eq!(first.role(), Role::Deposed);
}

#[test]
fn readers_pass_over_a_late_entry() {
    let (_, mut second, mut log) = late();
    let (reader, news) = log.follow();
    let expected = [
        News::Owned(owner("a")),
        News::Records(messages(&[1])),
        News::Owned(owner("b")),
        News::Nothing,
    ];
    assert_eq!(news, expected);
    assert_eq!(reader.records().collect::<Vec<_>>(), messages(&[1]));
    assert_eq!(
        reader.check_end(log.last(), Some((99, Sequence(4)))),
        Ok(())
    );
    let mut salvage = Salvage::default();
    for (at, entry) in log.behind(Sequence(0)) {
        salvage.take(at, entry);
    }
    let (found, records) = salvage.finish();
    assert_eq!((found.entries, found.unreadable), (4, 0));
    assert_eq!(records, messages(&[1]));

    // The new owner finds it in the place of its first entry, which it sends behind it.
    submit(&mut second, 1 << 40);
    submit(&mut second, 2 << 40);
    let sent = appends(&mut second);
    assert_eq!(sent.len(), 1);
    assert!(!log.accepts(&sent[0]));
    second.handle_refused(NOW, sent[0].0);
    let after = Sequence(3);
    assert_eq!(effects(&mut second), [Effect::Read { after }]);
    log.read(&mut second, after);
    let again = appends(&mut second);
    assert_eq!(again[0], (Sequence(4), Arc::clone(&sent[0].1)));
    assert!(again.iter().all(|append| log.accepts(append)));
    for (after, _) in &again {
        second.handle_appended(NOW, Sequence(after.0 + 1));
    }
    let others = effects(&mut second);
    assert_eq!(others, [committed(1 << 40), committed(2 << 40)]);
    let expected = messages(&[1, 1 << 40, 2 << 40]);
    let (reader, _) = log.follow();
    assert_eq!(reader.records().collect::<Vec<_>>(), expected);
    assert_eq!(reader.status().batch, second.status().batch);
    assert_eq!(reader.status().log_bytes, second.status().log_bytes);
    // The next owner's claim is behind all of it.
    let third = claimed(&mut log, "c");
    assert_eq!(third.records().collect::<Vec<_>>(), expected);
    assert_eq!(third.status().epoch, 3);
}

#[test]
fn only_the_entry_behind_a_claim_may_be_late() {
    let (_, mut second, mut log) = late();
    let late = Arc::clone(&log.entries[3]);
    log.entries.pop();
    submit(&mut second, 4);
    settle(&mut second, &mut log);
    for place in [2, 4, 5] {
        let mut wrong = log.clone();
        wrong
            .entries
            .insert(place.min(log.entries.len()), Arc::clone(&late));
        let mut reader = Ledger::new(CONFIG);
        let mut read = wrong.behind(Sequence(0));
        let broken = read.any(|(at, entry)| reader.handle_entry(at, entry).is_err());
        assert!(broken, "at place {place}");
    }
}

#[test]
fn a_late_entry_is_purged_with_the_claim_before_it() {
    let (_, mut second, mut log) = late();
    let mut first_left = 1;
    for place in 10..200 {
        let gone = Record::dequeued(QueueId(1), if place == 10 { 1 } else { place - 1 });
        for records in [vec![enqueued(place, 60)], vec![gone]] {
            second.submit(NOW, records, Position(1));
            for effect in drain(&mut second, &mut log) {
                if let Effect::Purge { to } = effect {
                    assert_ne!(to.0, 3, "the late entry would be the first one");
                    first_left = to.0 + 1;
                    second.handle_purged(NOW, to);
                }
            }
        }
    }
    assert!(first_left > 4, "it was purged");
    let mut reader = Ledger::new(CONFIG);
    for (at, entry) in log.behind(Sequence(first_left - 1)) {
        assert!(reader.handle_entry(at, entry).is_ok(), "{at:?}");
    }
    assert_eq!(
        reader.records().collect::<Vec<_>>(),
        second.records().collect::<Vec<_>>()
    );
}

#[test]
fn a_purge_waits_for_the_batch_that_made_it_possible() {
    let (mut ledger, mut log) = owning();
    let filling: Vec<_> = (10..20).map(|place| enqueued(place, 60)).collect();
    ledger.submit(NOW, filling, Position(2));
    settle(&mut ledger, &mut log);
    // They move: until the log has that, they are only where they were.
    let moved = (10..20).flat_map(|place| {
        let gone = Record::dequeued(QueueId(1), place);
        [gone, enqueued(place + 100, 60)]
    });
    let one = Record::dequeued(QueueId(1), 1);
    ledger.submit(NOW, moved.chain([one]).collect(), Position(3));
    let mut waiting = appends(&mut ledger);
    while !waiting.is_empty() {
        assert!(log.accepts(&waiting.remove(0)));
        ledger.handle_appended(NOW, log.last());
        for effect in effects(&mut ledger) {
            match effect {
                Effect::Append { after, entry } => waiting.push((after, entry)),
                Effect::Purge { to } => {
                    assert!(ledger.is_settled());
                    assert!(to < log.last());
                    return;
                }
                _ => {}
            }
        }
    }
    panic!("nothing was purged");
}

#[test]
fn a_log_is_cleaned_although_records_always_wait() {
    let (mut ledger, mut log) = owning();
    let mut in_flight = Vec::new();
    let mut longest = 0;
    for place in 10..2000 {
        let gone = Record::dequeued(QueueId(1), place - 5);
        ledger.submit(NOW, vec![enqueued(place, 60), gone], Position(2));
        for effect in effects(&mut ledger) {
            match effect {
                Effect::Append { after, entry } => in_flight.push((after, entry)),
                Effect::Purge { to } => ledger.handle_purged(NOW, to),
                _ => {}
            }
        }
        if place % 2 == 0 && !in_flight.is_empty() {
            assert!(log.accepts(&in_flight.remove(0)));
            ledger.handle_appended(NOW, log.last());
        }
        longest = longest.max(ledger.status().log_bytes);
    }
    assert!(!ledger.is_settled());
    assert!(longest < 4 * CONFIG.log_bytes_min, "{longest} octets");
}

/// Lets the log accept all appends, and returns the other effects.
fn drain(ledger: &mut Ledger, log: &mut Log) -> Vec<Effect> {
    let mut others = Vec::new();
    while let Some(effect) = ledger.next_effect() {
        match effect {
            Effect::Append { after, entry } => match log.accepts(&(after, entry)) {
                true => ledger.handle_appended(NOW, log.last()),
                false => ledger.handle_refused(NOW, after),
            },
            Effect::Read { after } => log.read(ledger, after),
            other => others.push(other),
        }
    }
    others
}
