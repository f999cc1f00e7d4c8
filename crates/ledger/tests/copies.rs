//! Copies that are filled with what only the log has, from seeds: an owner writes, cleans, and is succeeded meanwhile.
//!
//! A copy gets each message once, and in the end has what the vhost has. The messages of deep queues can be read at any
//! time, and the log is cleaned although most of it is of deep queues.
//!
//! `SEEDS=10000 cargo test -p crosstie-ledger --test copies` runs that many.

#[allow(dead_code, reason = "other tests need the rest")]
mod support;

#[path = "simulation/chance.rs"]
mod chance;

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::sync::Arc;

use chance::Chance;
use crosstie_amqp::{TableBuf, Value};
use crosstie_ledger::{Broken, Config, Effect, Found, Ledger, Release, Role, Sequence};
use crosstie_queues::{LEVELED, Position, QueueId, Record, StoredMessage, Time};

use support::{CONFIG, message, owner};

const DEEP: Config = Config {
    extent_bytes: 500,
    resident_bytes_max: 300,
    long_messages: 3,
    purge_bytes_min: 400,
    ..CONFIG
};

const QUEUES: usize = 4;

/// Messages by their places: the number and the deliveries of each.
type Messages = BTreeMap<(QueueId, i64), (u64, u32)>;

#[derive(Default)]
struct Contents(Messages);

/// What has been requested, and is to be answered.
enum Asked {
    Fetch(Sequence, Sequence),
    Fill(u64, Sequence, Sequence),
    Page(Box<crosstie_ledger::Excerpt>),
}

struct Run {
    now: Time,
    chance: Chance,
    ledger: Ledger,
    /// All entries, and the number of those that are purged.
    log: Vec<Arc<[u8]>>,
    purged: u64,
    /// Entries that are in the log and not acknowledged yet.
    unanswered: VecDeque<u64>,
    purging: Option<Sequence>,
    asked: Vec<Asked>,
    /// The queues, with the age of the next message; those with an odd number have priorities.
    queues: [(QueueId, i64); QUEUES],
    next_queue: u64,
    next_message: u64,
    position: u64,
    expected: Contents,
    copy: Option<Contents>,
    is_filling: bool,
    /// All is read that is requested.
    is_calm: bool,
    met: BTreeMap<&'static str, u64>,
}

fn number(message: &StoredMessage) -> u64 {
    let body = str::from_utf8(message.content.body()).expect("a number");
    body.parse().expect("a number")
}

impl Contents {
    /// Takes a record as a store does, but no message twice.
    fn take(&mut self, record: &Record) {
        match record {
            Record::Enqueued {
                queue,
                place,
                message,
            } => {
                let found = (number(message), message.deliveries);
                let before = self.0.insert((*queue, *place), found);
                assert_eq!(before, None, "{queue:?} {place} is there already");
            }
            Record::Dequeued { queue, place } => drop(self.0.remove(&(*queue, *place))),
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => {
                if let Some(found) = self.0.get_mut(&(*queue, *place)) {
                    found.1 = *deliveries;
                }
            }
            Record::Purged { queue } | Record::QueueDeleted { id: queue } => {
                self.0.retain(|(of, _), _| of != queue);
            }
            Record::Cleared { queue, from, to } => {
                let within = |place: i64| (*from..=*to).contains(&place);
                self.0
                    .retain(|(of, place), _| of != queue || !within(*place));
            }
            _ => {}
        }
    }

    fn of(&self, queue: QueueId) -> Vec<(i64, u64, u32)> {
        let of_queue = self.0.range((queue, i64::MIN)..=(queue, i64::MAX));
        of_queue
            .map(|((_, place), (number, deliveries))| (*place, *number, *deliveries))
            .collect()
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut run = Self {
            now: Time(1000),
            chance: Chance::new(seed),
            ledger: Ledger::new(DEEP),
            log: Vec::new(),
            purged: 0,
            unanswered: VecDeque::new(),
            purging: None,
            asked: Vec::new(),
            queues: [(QueueId(0), 0); QUEUES],
            next_queue: 1,
            next_message: 1,
            position: 0,
            expected: Contents::default(),
            copy: None,
            is_filling: false,
            is_calm: false,
            met: BTreeMap::new(),
        };
        run.claim();
        let declared = (0..QUEUES).map(|at| run.declare(at)).collect();
        run.submit(declared);
        run
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }

    fn declare(&mut self, at: usize) -> Record {
        let id = QueueId(self.next_queue);
        self.next_queue += 1;
        // The ages of a queue begin anywhere.
        self.queues[at] = (id, self.chance.within(1..200) as i64);
        let mut arguments = TableBuf::new();
        if at % 2 == 1 {
            arguments = arguments.with("x-max-priority", Value::I32(3));
        }
        Record::queue_declared(id, format!("q{at}"), arguments)
    }

    fn submit(&mut self, records: Vec<Record>) {
        self.position += 1;
        for record in &records {
            self.expected.take(record);
            if let Some(copy) = &mut self.copy {
                copy.take(record);
            }
        }
        let position = Position(self.position);
        self.ledger.submit(self.now, records, position);
    }

    fn enqueue(&mut self, at: usize) -> Record {
        let (queue, age) = self.queues[at];
        self.queues[at].1 += 1;
        let level = self.chance.within(0..3) as i64;
        // An earlier version gave places without levels.
        let is_early = age < 100;
        let place = match at % 2 == 1 && !is_early {
            true => (level + 1) * LEVELED + age,
            false => age,
        };
        let number = self.next_message;
        self.next_message += 1;
        let message = message(format!("{number:04}").as_bytes());
        Record::enqueued(queue, place, message)
    }

    /// Records about a queue, of which the first grows.
    fn write(&mut self) {
        let at = self.chance.within(0..QUEUES as u64) as usize;
        let queue = self.queues[at].0;
        let live = self.expected.of(queue);
        let mut places: Vec<i64> = live.iter().map(|(place, ..)| *place).collect();
        let mut records = Vec::new();
        let is_growing = at < 2 && live.len() < 40;
        match self.chance.within(0..100) {
            0..60 => {
                for _ in 0..self.chance.within(1..5) {
                    records.push(self.enqueue(at));
                }
            }
            60..85 if is_growing => {}
            60..85 => {
                for _ in 0..self.chance.within(1..6) {
                    if let Some(place) = self.chance.one_of(&places) {
                        places.retain(|found| *found != place);
                        records.push(Record::dequeued(queue, place));
                    }
                }
            }
            85..95 => {
                if let Some(place) = self.chance.one_of(&places) {
                    let (.., deliveries) = live[places.binary_search(&place).expect("sorted")];
                    records.push(Record::Delivered {
                        queue,
                        place,
                        deliveries: deliveries + 1,
                    });
                }
            }
            95..97 => {
                let (from, to) = (self.chance.one_of(&places), self.chance.one_of(&places));
                if let (Some(from), Some(to)) = (from, to) {
                    records.push(Record::Cleared { queue, from, to });
                }
            }
            97 => records.push(Record::Purged { queue }),
            98 => {
                records.push(Record::QueueDeleted { id: queue });
                records.push(self.declare(at));
            }
            _ => {}
        }
        if !records.is_empty() {
            self.submit(records);
        }
    }

    /// Carries out the ledger's effects; the log's answers come later.
    fn act(&mut self) {
        while let Some(effect) = self.ledger.next_effect() {
            match effect {
                Effect::Append { after, entry } => {
                    assert_eq!(after.0, self.log.len() as u64);
                    self.log.push(entry);
                    self.unanswered.push_back(self.log.len() as u64);
                }
                Effect::Purge { to } => self.purging = Some(to),
                Effect::Fetch { first, last } => self.asked.push(Asked::Fetch(first, last)),
                Effect::Owning | Effect::Committed(_) | Effect::Released => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn acknowledge(&mut self) {
        if let Some(sequence) = self.unanswered.pop_front() {
            self.ledger.handle_appended(self.now, Sequence(sequence));
            self.act();
        }
    }

    fn purge(&mut self) {
        if let Some(to) = self.purging.take() {
            self.purged = to.0;
            self.ledger.handle_purged(self.now, to);
            self.act();
            self.meet("purged");
        }
    }

    /// The entries that the log has between those, without the purged ones at its front.
    fn entries(&self, first: Sequence, last: Sequence) -> Vec<(Sequence, Arc<[u8]>)> {
        let between = first.0.max(self.purged + 1)..=last.0;
        between
            .map(|at| (Sequence(at), Arc::clone(&self.log[at as usize - 1])))
            .collect()
    }

    /// Requests an extent for the copy, or a page.
    fn ask(&mut self) {
        let is_asked = |asked: &Asked| matches!(asked, Asked::Fill(..));
        if self.is_filling && !self.asked.iter().any(is_asked) && self.chance.percent(40) {
            match self.ledger.next_absent() {
                None => {
                    self.ledger.end_filling();
                    self.is_filling = false;
                    self.meet("filled");
                    self.check_copy();
                }
                Some(absent) => {
                    if let Some((first, last)) = absent.entries {
                        self.asked.push(Asked::Fill(absent.extent, first, last));
                    }
                }
            }
        }
        if self.chance.percent(10) {
            let at = self.chance.within(0..QUEUES as u64) as usize;
            let mut excerpt = self.excerpt(self.queues[at].0, i64::MIN);
            let other = self.excerpt(self.queues[(at + 1) % QUEUES].0, i64::MIN);
            excerpt.join(other);
            self.asked.push(Asked::Page(Box::new(excerpt)));
        }
    }

    fn excerpt(&mut self, queue: QueueId, from: i64) -> crosstie_ledger::Excerpt {
        let bytes_max = self.chance.within(50..800) as usize;
        self.ledger.excerpt(queue, (from, i64::MAX), bytes_max)
    }

    fn answer(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let at = self.chance.within(0..self.asked.len() as u64) as usize;
        let is_lost = !self.is_calm && self.chance.percent(10);
        match self.asked.swap_remove(at) {
            Asked::Fetch(..) if is_lost => self.ledger.handle_not_fetched(self.now),
            Asked::Fetch(first, last) => {
                let entries = self.entries(first, last);
                let entries = entries.iter().map(|(at, entry)| (*at, &**entry));
                let handled = self.ledger.handle_fetched(self.now, entries);
                handled.expect("they are what was written");
                self.meet("fetched");
                self.act();
            }
            Asked::Fill(..) if is_lost => {}
            Asked::Fill(extent, first, last) => {
                let entries = self.entries(first, last);
                let entries = entries.iter().map(|(at, entry)| (*at, &**entry));
                let found = self.ledger.absent_messages(extent, entries);
                let found = found.expect("they are what was written");
                let copy = self.copy.as_mut().expect("it is being filled");
                found.iter().for_each(|record| copy.take(record));
            }
            // What it had to read may be written again by now.
            Asked::Page(excerpt) => drop(self.read(*excerpt)),
        }
    }

    /// Reads the first page: messages, and the place up to which there are no others.
    fn read(&self, mut excerpt: crosstie_ledger::Excerpt) -> Result<Found, Broken> {
        while let Some((first, last)) = excerpt.next_read() {
            let entries = self.entries(first, last);
            if entries.is_empty() {
                return Err(Broken::Missing);
            }
            for (at, entry) in entries {
                excerpt.take(at, &entry)?;
            }
        }
        excerpt.finish().remove(0)
    }

    /// All that the vhost has submitted is in the log.
    fn settle(&mut self) {
        while !self.unanswered.is_empty() {
            self.acknowledge();
        }
        self.purge();
    }

    /// Holds what can be read of each queue against what it has.
    fn check(&mut self) {
        self.settle();
        for (queue, _) in self.queues {
            let mut found = Vec::new();
            let mut from = i64::MIN;
            loop {
                let excerpt = self.excerpt(queue, from);
                let (messages, upto) = self.read(excerpt).expect("all is in the log");
                for (place, message) in messages {
                    found.push((place, number(&message), message.deliveries));
                }
                if upto == i64::MAX {
                    break;
                }
                from = upto + 1;
            }
            assert_eq!(found, self.expected.of(queue), "{queue:?}");
        }
        self.check_copy();
    }

    fn check_copy(&self) {
        if let Some(copy) = self.copy.as_ref().filter(|_| !self.is_filling) {
            assert_eq!(copy.0, self.expected.0, "the copy has something else");
        }
    }

    fn claim(&mut self) {
        self.ledger
            .limit_appends(1 + self.chance.within(0..2) as usize);
        self.ledger.write_clearances(self.chance.percent(50));
        self.ledger.claim(self.now, &owner("a"), 99);
        self.act();
        while self.ledger.role() != Role::Owning {
            self.acknowledge();
        }
        let mut copy = Contents::default();
        let mut kept = BTreeMap::<QueueId, usize>::new();
        for record in self.ledger.records() {
            copy.take(&record);
            match record {
                Record::Enqueued { queue, .. } => *kept.entry(queue).or_default() += 1,
                Record::Kept(found) => *kept.entry(found.queue).or_default() += found.messages,
                _ => {}
            }
        }
        for (queue, _) in self.queues {
            let kept = kept.get(&queue).copied().unwrap_or_default();
            assert_eq!(kept, self.expected.of(queue).len(), "{queue:?}");
        }
        self.copy = Some(copy);
        self.is_filling = self.ledger.begin_filling();
        if self.is_filling {
            self.meet("begun to fill");
        } else {
            self.check_copy();
        }
    }

    /// Another node owns the vhost, or the same one again.
    fn succeed(&mut self) {
        self.settle();
        self.asked.clear();
        if self.chance.percent(30) && self.release() {
            self.meet("released");
            return self.claim();
        }
        let mut next = Ledger::new(DEEP);
        for at in self.purged..self.log.len() as u64 {
            let read = next.handle_entry(Sequence(at + 1), &self.log[at as usize]);
            read.expect("the log is whole");
        }
        self.ledger = next;
        self.meet("succeeded");
        self.claim();
    }

    fn release(&mut self) -> bool {
        let release = Release {
            to: "a".into(),
            rested: None,
        };
        if !self.ledger.release(self.now, &release) {
            return false;
        }
        self.act();
        self.settle();
        let released = std::mem::replace(&mut self.ledger, Ledger::new(DEEP));
        self.ledger = released.into_follower().expect("it has released the vhost");
        true
    }

    fn step(&mut self) {
        self.now.0 += 10;
        match self.chance.within(0..100) {
            0..30 => self.write(),
            30..60 => self.acknowledge(),
            60..65 => self.purge(),
            65..80 => self.ask(),
            80..97 => self.answer(),
            97..99 => self.check(),
            _ => self.succeed(),
        }
        self.act();
    }

    /// Nothing is written any more: the copy is filled, and the log is cleaned.
    fn finish(&mut self) {
        self.is_calm = true;
        for left in (0..4000).rev() {
            self.now.0 += 10;
            match self.chance.within(0..3) {
                0 => self.ask(),
                1 => self.answer(),
                _ => self.settle(),
            }
            // The log is cleaned as records come, and as they are written.
            if left > 500 && left % 100 == 0 {
                let (queue, place) = (QueueId(1), i64::MAX);
                self.submit(vec![Record::dequeued(queue, place)]);
            }
            self.act();
        }
        self.check();
        assert!(!self.is_filling, "the copy is not filled");
        let status = self.ledger.status();
        let (log, live) = (status.log_bytes, status.live_bytes);
        let max = DEEP.log_bytes_min.max(2 * live) + 2 * DEEP.batch_bytes_max as u64;
        assert!(log <= max, "{log} octets in the log, {live} of them live");
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "more seeds are run without a change"
)]
fn a_copy_gets_each_message_once() {
    let seeds = env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let mut met = BTreeMap::<&str, u64>::new();
    for seed in 0..seeds.unwrap_or(150) {
        // Printed if it fails.
        eprintln!("seed {seed}");
        let mut run = Run::new(seed);
        for _ in 0..1200 {
            run.step();
        }
        run.finish();
        for (what, times) in run.met {
            *met.entry(what).or_default() += times;
        }
    }
    eprintln!("{met:?}");
    let expected = [
        "begun to fill",
        "fetched",
        "filled",
        "purged",
        "released",
        "succeeded",
    ];
    assert_eq!(met.keys().copied().collect::<Vec<_>>(), expected);
}
