//! The witness: well-behaved sessions of every kind in a process of their own, each repeating one small operation.
//! Their waiting times and lost connections are the measure of an attack.
//!
//! Each has a thread, with one operation at a time. A session that stalls for a second cannot begin anything in that
//! second, and one long wait among thousands of short ones would hardly show. So operations that could not begin are
//! counted too, as if they had begun in time.

mod amqp;
mod pages;
mod wamp;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ways::Ways;
use crate::load::{Latencies, Recorded};
use crate::process::{WorkerError, instruction, say};

pub(crate) const ROLE: &str = "hostile-witness";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) ways: Ways,
    /// How long any of its operations may wait before it counts as lost.
    pub(crate) patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// Discard the results so far.
    Begin,
    /// Finish the current operations, and report the results.
    Finish,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum WitnessReport {
    /// Every part has completed one operation, except those listed.
    Ready {
        without: Vec<String>,
    },
    Found(BTreeMap<String, Account>),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) waits: Recorded,
    pub(crate) worst_ns: u64,
    pub(crate) done: u64,
    /// Sessions that were closed, and connections that were refused.
    pub(crate) lost: u64,
    /// The reason of the first of these.
    pub(crate) why: Option<String>,
}

/// A small operation with a round trip, on persistent connections.
trait Act: Send {
    /// Its name, and the name of its waits.
    fn name(&self) -> &'static str;

    /// The pause after it.
    fn pause(&self) -> Duration;

    /// Does it once and records its waits. After an error it reconnects.
    fn act(&mut self, note: &mut Note) -> Result<(), WorkerError>;
}

/// The recorded waits of one turn.
#[derive(Default)]
struct Note(Vec<(&'static str, Duration)>);

impl Note {
    fn waited(&mut self, name: &'static str, since: Instant) {
        self.0.push((name, since.elapsed()));
    }
}

#[derive(Default)]
struct Ledger(BTreeMap<&'static str, Tally>);

#[derive(Default)]
struct Tally {
    waits: Latencies,
    account: Account,
}

/// Interval of attempts to reconnect, so that a router that refuses all clients is not flooded.
const RETRY: Duration = Duration::from_millis(100);

struct Witness {
    finishing: AtomicBool,
    ledgers: Vec<Mutex<Ledger>>,
}

pub(crate) fn work(order: Order) -> Result<(), WorkerError> {
    let mut acts = wamp::acts(&order);
    acts.extend(pages::acts(&order));
    acts.extend(amqp::acts(&order));
    let mut without = Vec::new();
    acts.retain_mut(|act| match act.act(&mut Note::default()) {
        Ok(()) => true,
        Err(error) => {
            without.push(format!("{}: {error}", act.name()));
            false
        }
    });
    let witness = Witness {
        finishing: AtomicBool::new(false),
        ledgers: acts.iter().map(|_| Mutex::default()).collect(),
    };
    thread::scope(|scope| {
        for (act, ledger) in acts.into_iter().zip(&witness.ledgers) {
            scope.spawn(|| go_on(act, ledger, &witness.finishing));
        }
        say(&WitnessReport::Ready { without });
        let told = loop {
            match instruction::<Instruction>() {
                Ok(Some(Instruction::Begin)) => witness.ledgers.iter().for_each(forget),
                Ok(Some(Instruction::Finish)) => break Ok(()),
                Ok(None) => break Err(WorkerError::Closed("telling the witness to finish")),
                Err(error) => break Err(error),
            }
        };
        witness.finishing.store(true, Ordering::Relaxed);
        told
    })?;
    let mut found = BTreeMap::new();
    for ledger in witness.ledgers {
        let ledger = ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (name, Tally { waits, account }) in ledger.0 {
            let waits = waits.recorded();
            found.insert(name.to_owned(), Account { waits, ..account });
        }
    }
    say(&WitnessReport::Found(found));
    Ok(())
}

fn forget(ledger: &Mutex<Ledger>) {
    *ledger.lock().unwrap_or_else(PoisonError::into_inner) = Ledger::default();
}

fn go_on(mut act: Box<dyn Act>, ledger: &Mutex<Ledger>, finishing: &AtomicBool) {
    let mut note = Note::default();
    while !finishing.load(Ordering::Relaxed) {
        let outcome = act.act(&mut note);
        let pause = match outcome {
            Ok(()) => act.pause(),
            Err(_) => RETRY,
        };
        let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, wait) in note.0.drain(..) {
            ledger.note(name, wait, act.pause());
        }
        if let Err(error) = outcome {
            ledger.note_loss(act.name(), &error);
        }
        drop(ledger);
        thread::sleep(pause);
    }
}

impl Ledger {
    fn note(&mut self, name: &'static str, wait: Duration, interval: Duration) {
        let tally = self.0.entry(name).or_default();
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        tally.account.done += 1;
        tally.account.worst_ns = tally.account.worst_ns.max(ns(wait));
        tally.waits.record_standstill(ns(wait), ns(interval));
    }

    fn note_loss(&mut self, name: &'static str, error: &WorkerError) {
        let account = &mut self.0.entry(name).or_default().account;
        account.lost += 1;
        account.why.get_or_insert_with(|| error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_that_could_not_begin_are_counted() {
        let mut ledger = Ledger::default();
        let interval = Duration::from_millis(10);
        for _ in 0..99 {
            ledger.note("call", Duration::from_millis(1), interval);
        }
        ledger.note("call", Duration::from_secs(1), interval);
        let tally = &ledger.0["call"];
        assert_eq!((tally.account.done, tally.waits.count()), (100, 199));
        assert_eq!(tally.account.worst_ns, 1_000_000_000);
        // During the second, a hundred could not begin: half of all.
        assert!(tally.waits.summary().p99 > 900_000.0);
    }
}
