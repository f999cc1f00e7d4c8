//! The withdrawal of refused messages: a publisher that was told so publishes again, and the first one must not come, too.
//!
//! A store names the places of its messages. Other queues may have them without a record, and exchanges for later.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use super::delayed::near_bytes;
use super::role::Role;
use super::{Entry, Queues};
use crate::ledger::Ledger;
use crate::{MessageContent, QueueId, QueueKey, Record};

/// Messages that are withdrawn.
#[derive(Debug, Default)]
pub(crate) struct Withdrawn {
    /// Those that a store has, or will have.
    pub(crate) places: HashSet<(QueueId, i64)>,
    /// Those that are held elsewhere, too.
    contents: HashMap<*const MessageContent, Arc<MessageContent>>,
}

impl Withdrawn {
    pub(crate) fn add_content(&mut self, content: &Arc<MessageContent>) {
        if content.is_held() {
            let address = Arc::as_ptr(content);
            self.contents.insert(address, Arc::clone(content));
        }
    }

    /// Whether a message is one of these.
    pub(crate) fn has(&self, content: &Arc<MessageContent>) -> bool {
        self.contents.contains_key(&Arc::as_ptr(content))
    }

    /// Nothing holds any of them.
    pub(crate) fn is_done(&self) -> bool {
        !self.contents.values().any(|content| content.is_held())
    }
}

impl Queues {
    /// Takes ready and delayed messages out that are refused. The store is told to forget them, since it may have them, or
    /// get them, nevertheless.
    pub(crate) fn withdraw(
        &mut self,
        places: &[(QueueId, i64)],
        is_refused: impl Fn(&MessageContent) -> bool,
        ledger: &mut Ledger,
    ) -> Withdrawn {
        let mut withdrawn = Withdrawn::default();
        let (mut near, mut retained) = (HashSet::new(), HashSet::new());
        let mut retaining = None;
        let keys = self.ids();
        for (id, place) in places {
            let Some(key) = keys.get(id) else {
                continue;
            };
            let queue = self.queues.find_mut(*key);
            let Some(queue) = queue else {
                continue;
            };
            match queue.take_if(*place, &is_refused) {
                Some(entry) => self.end_withdrawn(*key, &entry, &mut withdrawn, ledger),
                None if queue.role.bucket().is_some() => drop(near.insert((*key, *place))),
                None if matches!(queue.role, Role::Retained) => {
                    retaining = Some(*key);
                    retained.insert(*place);
                }
                None => {}
            }
        }
        if !near.is_empty() {
            self.withdraw_near(
                |key, entry| near.contains(&(key, entry.place)) && is_refused(&entry.content),
                &mut withdrawn,
                ledger,
            );
        }
        if let Some(key) = retaining {
            for entry in self.withdraw_retained(&retained, &is_refused) {
                self.end_withdrawn(key, &entry, &mut withdrawn, ledger);
            }
        }
        withdrawn
    }

    /// Takes the same messages out of queues that have them without a record.
    pub(crate) fn withdraw_copies(&mut self, withdrawn: &mut Withdrawn, ledger: &mut Ledger) {
        let copies = mem::take(withdrawn);
        let keys: Vec<QueueKey> = self.queues.iter().map(|(key, _)| key).collect();
        for key in keys {
            if copies.is_done() {
                break;
            }
            let Some(queue) = self.queues.find_mut(key) else {
                continue;
            };
            ledger.steps.spend(1 + queue.messages.len() / 64);
            let found = queue.messages.iter_mut();
            let found = found.filter(|entry| copies.has(&entry.content));
            let places: Vec<i64> = found.map(|entry| entry.place).collect();
            for place in places {
                let queue = self.queues.find_mut(key);
                if let Some(entry) = queue.and_then(|queue| queue.take(place)) {
                    self.end_withdrawn(key, &entry, withdrawn, ledger);
                }
            }
        }
        if !copies.is_done() {
            self.withdraw_near(|_, entry| copies.has(&entry.content), withdrawn, ledger);
        }
        withdrawn.places.extend(&copies.places);
        withdrawn.contents = copies.contents;
    }

    fn withdraw_near(
        &mut self,
        is_refused: impl Fn(QueueKey, &Entry) -> bool,
        withdrawn: &mut Withdrawn,
        ledger: &mut Ledger,
    ) {
        let near = mem::take(&mut self.delays.near).into_vec();
        let (gone, kept): (Vec<_>, Vec<_>) = near
            .into_iter()
            .partition(|Reverse(near)| is_refused(near.bucket, &near.entry));
        self.delays.near = kept.into();
        for Reverse(near) in gone {
            self.delays.near_bytes -= near_bytes(&near.entry);
            if let Some(queue) = self.queues.find_mut(near.bucket) {
                queue.unacknowledged -= 1;
            }
            self.end_withdrawn(near.bucket, &near.entry, withdrawn, ledger);
        }
    }

    /// Forgets a message that was taken out.
    fn end_withdrawn(
        &mut self,
        key: QueueKey,
        entry: &Entry,
        withdrawn: &mut Withdrawn,
        ledger: &mut Ledger,
    ) {
        ledger.counts.dropped += 1;
        let place = entry.place;
        if let Some(queue) = self.queues.find(key).and_then(|queue| queue.id_of(entry)) {
            ledger.record(Record::dequeued(queue, place));
            withdrawn.places.insert((queue, place));
        }
        ledger.release(entry);
        withdrawn.add_content(&entry.content);
        self.end_message(key, ledger);
    }
}
