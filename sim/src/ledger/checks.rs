//! The conditions that must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crosstie_ledger::{Config, Ledger, News, Sequence};
use crosstie_queues::Record;

use super::log::Log;
use super::node::{Node, number};

/// Messages published, confirmed and consumed, and everything that was ever in the log.
#[derive(Default)]
pub(super) struct Ledgers {
    /// Every entry that the log has taken, read when it did.
    pub reference: Option<Ledger>,
    pub in_log: BTreeSet<u64>,
    /// How often each message, by its queue and place, was delivered in vain, as the log says.
    deliveries: BTreeMap<(u64, i64), u32>,
    /// Confirmed messages, and the queue that each was published to.
    pub confirmed: BTreeMap<u64, usize>,
    /// Taken by some client, or in a queue that one purged or deleted.
    pub gone: BTreeSet<u64>,
    /// The settings, as the log has them now.
    settings: BTreeMap<Arc<str>, Arc<str>>,
    /// All values that settings ever had in the log; without a value it was removed.
    set: BTreeSet<Setting>,
}

/// A key, and its value if it was not removed.
pub(super) type Setting = (Arc<str>, Option<Arc<str>>);

impl Ledgers {
    /// The log has taken an entry.
    pub(super) fn note(&mut self, sequence: Sequence, entry: &[u8]) -> Result<(), String> {
        let reference = self
            .reference
            .get_or_insert_with(|| Ledger::new(Config::default()));
        let news = reference.handle_entry(sequence, entry);
        let news = news.map_err(|broken| format!("entry {sequence:?}: {broken}"))?;
        if news == News::Recovered {
            self.settings = settings(reference.records());
        }
        if let News::Records(records) = news {
            for record in records {
                match record {
                    Record::Enqueued {
                        queue,
                        place,
                        message,
                    } => {
                        self.in_log.insert(number(message.content.body()));
                        self.deliveries.insert((queue.0, place), message.deliveries);
                    }
                    Record::Delivered {
                        queue,
                        place,
                        deliveries,
                    } => {
                        self.deliveries.insert((queue.0, place), deliveries);
                    }
                    Record::Setting { key, value } => {
                        match &value {
                            Some(value) => self.settings.insert(key.clone(), value.clone()),
                            None => self.settings.remove(&key),
                        };
                        self.set.insert((key, value));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A message is confirmed.
    pub(super) fn confirm(&mut self, message: u64, queue: Option<usize>) -> Result<(), String> {
        let Some(queue) = queue else { return Ok(()) };
        // One that was taken before it was written needs to be in no log.
        if !self.in_log.contains(&message) && !self.gone.contains(&message) {
            return Err(format!("{message} is confirmed, and was never in the log"));
        }
        self.confirmed.insert(message, queue);
        Ok(())
    }

    /// A setting is committed.
    pub(super) fn confirm_setting(&self, setting: &Setting) -> Result<(), String> {
        match self.set.contains(setting) {
            true => Ok(()),
            false => Err(format!(
                "{setting:?} is committed, and was never in the log"
            )),
        }
    }

    /// Checks the vhost of an owner: confirmed messages are present, in order, and the counts match.
    pub(super) fn check_owner(&self, node: &Node, log: &Log) -> Result<(), String> {
        // Its acknowledgement arrived so late that another node owns the vhost by now, and confirms.
        let epoch = self.reference.as_ref().map(|log| log.status().epoch);
        if epoch != Some(node.ledger.status().epoch) {
            return Ok(());
        }
        let found = settings(node.ledger.records());
        if found != self.settings {
            let expected = &self.settings;
            return Err(format!("an owner has {found:?}, expected {expected:?}"));
        }
        let mut queues: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut names = BTreeMap::new();
        for record in log.contents(&node.ledger)? {
            match record {
                Record::QueueDeclared { id, name, .. } => {
                    names.insert(id.0, name);
                }
                Record::Enqueued { queue, message, .. } => {
                    let messages = queues.entry(queue.0).or_default();
                    messages.push(number(message.content.body()));
                }
                _ => {}
            }
        }
        if let Some(unordered) = queues.values().find(|messages| !messages.is_sorted()) {
            return Err(format!("out of their order: {unordered:?}"));
        }
        let there: BTreeSet<u64> = queues.values().flatten().copied().collect();
        let mut confirmed = self.confirmed.keys();
        let lost =
            confirmed.find(|message| !there.contains(message) && !self.gone.contains(message));
        if let Some(lost) = lost {
            return Err(format!("{lost} was confirmed, and is lost: {queues:?}"));
        }
        for queue in node.vhost.queues() {
            let id = names.iter().find(|(_, name)| ***name == *queue.name);
            let kept = id.and_then(|(id, _)| queues.get(id)).map_or(0, Vec::len);
            if queue.messages_ready != kept {
                let (name, found) = (&queue.name, queue.messages_ready);
                return Err(format!("{name} has {found} messages, the ledger {kept}"));
            }
        }
        Ok(())
    }

    /// Checks that a cleaned log restores the same state as one that never was.
    pub(super) fn check_log(&self, log: &Log) -> Result<(), String> {
        let Some(reference) = &self.reference else {
            return Ok(());
        };
        let mut fresh = Ledger::new(Config::default());
        for (sequence, entry) in &log.entries {
            let read = fresh.handle_entry(Sequence(*sequence), entry);
            read.map_err(|broken| format!("the log's entry {sequence}: {broken}"))?;
        }
        for record in fresh.records() {
            if let Record::Enqueued {
                queue,
                place,
                message,
            } = &record
                && self.deliveries.get(&(queue.0, *place)) != Some(&message.deliveries)
            {
                return Err(format!("it was delivered otherwise: {record:?}"));
            }
        }
        let (found, expected) = (described(&fresh, log)?, described(reference, log)?);
        match found == expected {
            true => Ok(()),
            false => Err(format!("after cleaning {found:?}, expected {expected:?}")),
        }
    }
}

/// The settings among records.
fn settings(records: impl Iterator<Item = Record>) -> BTreeMap<Arc<str>, Arc<str>> {
    let settings = records.filter_map(|record| match record {
        Record::Setting { key, value } => Some((key, value?)),
        _ => None,
    });
    settings.collect()
}

pub(super) fn described(ledger: &Ledger, log: &Log) -> Result<Vec<String>, String> {
    let records = log.contents(ledger)?;
    let mut records: Vec<String> = records.iter().map(|r| format!("{r:?}")).collect();
    records.sort();
    Ok(records)
}
