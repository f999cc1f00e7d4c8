//! What an outcome says, as figures: for the table and for the results file.

use serde_json::{Value, json};

use super::round::Outcome;
use super::witness::Account;
use crate::load::histogram::Latencies;
use crate::report::json::Row;

/// Of the witness, in the order of the table.
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
        let mut latencies = Latencies::default();
        latencies.add(&account.waits);
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

    /// Sessions of the witness that were closed, and connections of its that were not let in.
    pub(super) fn lost(&self) -> u64 {
        self.witness.values().map(|account| account.lost).sum()
    }

    /// The longest wait of all.
    pub(super) fn worst_ms(&self) -> f64 {
        let waits = KINDS.iter().filter_map(|kind| self.waits(kind));
        waits.map(|waits| waits.worst_ms).fold(0.0, f64::max)
    }

    /// What came of the attack itself, in words.
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

    /// As the results file has it.
    pub(super) fn row(&self, case: &str, subject: &str) -> Row {
        let mut metrics = serde_json::Map::new();
        let mut put = |name: String, value: Value| {
            metrics.insert(name, value);
        };
        for kind in KINDS {
            if let Some(waits) = self.waits(kind) {
                put(format!("{kind}_p99_ms"), json!(waits.p99_ms));
                put(format!("{kind}_worst_ms"), json!(waits.worst_ms));
            }
        }
        for (kind, account) in &self.witness {
            put(format!("{kind}_done"), json!(account.done));
            put(format!("{kind}_lost"), json!(account.lost));
        }
        put("worst_ms".to_owned(), json!(self.worst_ms()));
        put("lost".to_owned(), json!(self.lost()));
        if let Some(cpu_s) = self.cpu_s {
            put("cpu_s".to_owned(), json!(cpu_s));
        }
        if let Some(memory) = self.memory {
            put("rss_before_bytes".to_owned(), json!(memory.before));
            put("rss_most_bytes".to_owned(), json!(memory.most));
            put("rss_after_bytes".to_owned(), json!(memory.after));
        }
        if let Some(dropped) = self.dropped {
            put("events_dropped".to_owned(), json!(dropped));
        }
        if let Some(found) = &self.attack {
            put("attack_seconds".to_owned(), json!(found.seconds));
            put("made".to_owned(), json!(found.made));
            put("refused".to_owned(), json!(found.refused));
            put("cut".to_owned(), json!(found.cut));
        }
        put("words".to_owned(), json!(self.words()));
        Row {
            case: case.to_owned(),
            subject: subject.to_owned(),
            placement: None,
            round: None,
            metrics: Value::Object(metrics),
            valid: self.is_alive,
            why: match self.is_alive {
                true => String::new(),
                false => "it is no longer alive".to_owned(),
            },
        }
    }
}
