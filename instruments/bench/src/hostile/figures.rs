//! An outcome as figures.

use serde_json::json;

use super::round::Outcome;
use super::watch::Memory;
use super::witness::Account;
use crate::figures::{Fault, Figures, Round, WORDS};
use crate::load::Latencies;

/// The witness's, in the order of the table.
pub(super) const KINDS: [&str; 8] = [
    "call", "event", "timeout", "join", "health", "message", "confirm", "connect",
];

/// Waits of one kind, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waits {
    pub(super) p99_ms: f64,
    pub(super) worst_ms: f64,
}

impl Waits {
    pub(super) fn of(account: &Account) -> Option<Self> {
        let latencies = Latencies::of(&account.waits);
        (latencies.count() > 0).then(|| Self {
            p99_ms: latencies.summary().p99 / 1e3,
            worst_ms: account.worst_ns as f64 / 1e6,
        })
    }
}

impl Outcome {
    pub(super) fn waits(&self, kind: &str) -> Option<Waits> {
        self.witness.get(kind).and_then(Waits::of)
    }

    /// Sessions of the witness that were closed, and its connections that were refused.
    pub(super) fn lost(&self) -> u64 {
        self.witness.values().map(|account| account.lost).sum()
    }

    pub(super) fn worst_ms(&self) -> f64 {
        let waits = KINDS.iter().filter_map(|kind| self.waits(kind));
        waits.map(|waits| waits.worst_ms).fold(0.0, f64::max)
    }

    /// The outcome of the attack itself, in words.
    pub(super) fn words(&self) -> String {
        let mut words = Vec::new();
        if let Some(found) = &self.attack {
            let made = found.made.iter();
            words.extend(made.map(|(what, count)| format!("{count} {what}")));
            let refused = found.refused.iter();
            words.extend(refused.map(|(why, count)| match count {
                1 => format!("refused: {why}"),
                count => format!("refused {count} times: {why}"),
            }));
            if found.cut {
                words.push("cut off at its limit".to_owned());
            }
        }
        for (kind, account) in &self.witness {
            if let Some(why) = &account.why {
                words.push(format!("witness lost {} of {kind}: {why}", account.lost));
            }
        }
        if !self.is_alive {
            words.push("it is no longer alive".to_owned());
        }
        words.join("; ")
    }

    /// As the frame's round.
    pub(super) fn into_round(self) -> Round {
        let mut found = Figures::new();
        for kind in KINDS {
            if let Some(waits) = self.waits(kind) {
                found.set(&format!("{kind}_p99_ms"), waits.p99_ms);
                found.set(&format!("{kind}_worst_ms"), waits.worst_ms);
            }
        }
        for (kind, account) in &self.witness {
            found.set(&format!("{kind}_done"), account.done as f64);
            found.set(&format!("{kind}_lost"), account.lost as f64);
        }
        let memory = |of: fn(Memory) -> u64| self.memory.map(|memory| of(memory) as f64);
        found = found
            .with("worst_ms", self.worst_ms())
            .with("lost", self.lost() as f64)
            .with_known("cpu_s", self.cpu_s)
            .with_known("rss_before_bytes", memory(|memory| memory.before))
            .with_known("rss_most_bytes", memory(|memory| memory.most))
            .with_known("rss_after_bytes", memory(|memory| memory.after))
            .with_known("events_dropped", self.dropped);
        if let Some(attack) = &self.attack {
            found = found
                .with("attack_seconds", attack.seconds)
                .with_other("made", json!(attack.made))
                .with_other("refused", json!(attack.refused))
                .with_other("cut", json!(attack.cut));
        }
        found = found.with_other(WORDS, json!(self.words()));
        match self.is_alive {
            true => Ok(found),
            false => Err(Fault::beside("it is no longer alive".to_owned(), found)),
        }
    }
}
