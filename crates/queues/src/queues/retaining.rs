//! The messages that topics of MQTT retain, one for each routing key: in a hidden queue, so that restarts and failovers keep
//! them.
//!
//! ```text
//! retain ─▶ the last of its key, at once ─ the store has it ──▶ those before it are gone
//!                      │
//!                      └─ the store cannot have it (withdrawn) ─▶ the one before is the last again
//! ```
//!
//! A removal is a message without a body. It is gone with those before it once the store has it. So the store always has
//! the last message that was confirmed, and a removal that was confirmed does not come undone.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::mem;
use std::sync::Arc;

use crosstie_amqp::Properties;

use super::hidden::arguments;
#[cfg(test)]
use super::retained::Retained;
use super::retained::{RetainedMax, is_removal};
use super::role::Role;
use super::{Entry, Incoming, Queues};
use crate::ledger::Ledger;
use crate::{MessageContent, Position, QueueKey, Record, Time};

impl Queues {
    /// Retains a message for its routing key, or without a body removes that key's message. Returns the position and the
    /// content of the record, if there is one. A message without room removes the earlier one, which must not stay in its
    /// place: the record is that of a removal.
    pub(crate) fn retain(
        &mut self,
        now: Time,
        incoming: &mut Incoming<'_>,
        max: RetainedMax,
        ledger: &mut Ledger,
    ) -> Option<(Position, Arc<MessageContent>)> {
        self.forget_expired(now, ledger);
        let mut content = incoming.content();
        if !self.retained.has_room(&content, max) {
            self.retained.refused += 1;
            let (exchange, key, ..) = content.parts();
            let removal = MessageContent::of(exchange, key, Properties::EMPTY, b"");
            content = Arc::new(removal);
        }
        let is_known = self.retained.topics.contains_key(incoming.routing_key);
        if is_removal(&content) && !is_known {
            return None;
        }
        let ttl_ms = incoming.handling.ttl_ms;
        let expires_at = ttl_ms.map(|ttl_ms| Time(now.0.saturating_add(ttl_ms)));
        let key = match self.retained.queue {
            Some(key) => key,
            None => {
                let name = (Role::retained_name(), arguments());
                let key = self.add_hidden(now, name, true, Role::Retained, ledger);
                *self.retained.queue.insert(key)
            }
        };
        let queue = self.queues.find_mut(key)?;
        let entry = queue.new_entry(Arc::clone(&content), expires_at, ledger);
        let (position, place) = (ledger.journal.position, entry.place);
        let topic = self.retained.add(entry);
        self.retained.settling.push_back((position, topic, place));
        Some((position, content))
    }

    /// The message that a routing key retains.
    pub(crate) fn retained(&self, now: Time, routing_key: &str) -> Option<&Arc<MessageContent>> {
        let last = self.retained.topics.get(routing_key)?.back()?;
        let is_present = !last.is_expired(now) && !is_removal(&last.content);
        is_present.then_some(&last.content)
    }

    /// Number of retained messages, and their bytes.
    pub(crate) fn retained_counts(&self) -> (usize, usize) {
        self.retained.held
    }

    /// When the next one expires. While others wait for their commits, these look for expired ones.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        let first = self.retained.expiring.first();
        first
            .map(|(at, ..)| *at)
            .filter(|_| self.retained.settling.is_empty())
    }

    /// Number of messages that had no room.
    pub(crate) fn retained_refused(&self) -> u64 {
        self.retained.refused
    }

    /// Whether all of them are in memory. After a restart, many are read page by page.
    pub(crate) fn has_read_retained(&self) -> bool {
        let queue = self.retained.queue.and_then(|key| self.queues.find(key));
        queue.is_none_or(|queue| queue.messages.is_empty())
    }

    /// Makes a restored hidden queue the one of retained messages.
    pub(super) fn adopt_retained(&mut self, key: QueueKey) {
        self.retained.queue = Some(key);
    }

    /// Whether a hidden queue has the retained messages.
    pub(crate) fn has_retained(&self, key: QueueKey) -> bool {
        self.retained.queue == Some(key)
    }

    /// Forgets what the committed messages have replaced, and takes in those that were read from the store, as far as this
    /// input's steps allow.
    pub(crate) fn tend_retained(&mut self, now: Time, key: QueueKey, ledger: &mut Ledger) {
        let committed = ledger.committed;
        let is_committed = |(at, ..): &mut (Position, Arc<str>, i64)| *at <= committed;
        while let Some((_, topic, place)) = self.retained.settling.pop_front_if(is_committed) {
            let gone = self.retained.settle(&topic, place);
            self.forget_retained(&gone, ledger);
            if ledger.steps.is_over() {
                return self.postpone(key);
            }
        }
        while let Some(queue) = self.queues.find_mut(key) {
            queue.messages.surface();
            let Some(entry) = queue.pop() else {
                break;
            };
            let place = entry.place;
            let topic = self.retained.add(entry);
            let gone = self.retained.settle(&topic, place);
            self.forget_retained(&gone, ledger);
            if ledger.steps.is_over() {
                return self.postpone(key);
            }
        }
        self.want_page(key);
        self.forget_expired(now, ledger);
    }

    /// The store has committed everything up to a position: work follows if a retained message was among it.
    pub(super) fn settle_retained(&mut self, ledger: &Ledger) {
        let first = self.retained.settling.front();
        if first.is_some_and(|(at, ..)| *at <= ledger.committed)
            && let Some(key) = self.retained.queue
        {
            self.postpone(key);
        }
    }

    /// Takes out messages at these places, which the store cannot have.
    pub(super) fn withdraw_retained(
        &mut self,
        places: &HashSet<i64>,
        is_refused: impl Fn(&MessageContent) -> bool,
    ) -> Vec<Entry> {
        let is_gone = |entry: &Entry| places.contains(&entry.place) && is_refused(&entry.content);
        // The store has committed no other place.
        let settling = self.retained.settling.iter();
        let settling = settling.filter(|(.., place)| places.contains(place));
        let topics: BTreeSet<_> = settling.map(|(_, topic, _)| Arc::clone(topic)).collect();
        let mut gone = Vec::new();
        for topic in topics {
            self.retained.change(&topic, |entries| {
                let (refused, kept): (VecDeque<_>, _) =
                    mem::take(entries).into_iter().partition(is_gone);
                *entries = kept;
                gone.extend(refused);
            });
        }
        gone.iter()
            .for_each(|entry| self.retained.end_expiry(entry));
        gone
    }

    /// Forgets messages that have expired, as far as this input's steps allow.
    pub(crate) fn forget_expired(&mut self, now: Time, ledger: &mut Ledger) {
        while let Some((_, place, topic)) =
            self.retained.expiring.first().filter(|(at, ..)| *at <= now)
        {
            let (place, topic) = (*place, Arc::clone(topic));
            let gone = self.retained.change(&topic, |entries| {
                // Of several, one waits for its commit.
                let is_alone = entries.len() == 1;
                entries.pop_front_if(|entry| is_alone && entry.place == place)
            });
            let Some(gone) = gone else {
                return;
            };
            self.forget_retained(&[gone], ledger);
            if ledger.steps.is_over() {
                return;
            }
        }
    }

    fn forget_retained(&mut self, gone: &[Entry], ledger: &mut Ledger) {
        ledger.steps.spend(1 + gone.len());
        let queue = self.retained.queue.and_then(|key| self.queues.find(key));
        for entry in gone {
            if let Some(id) = queue.and_then(|queue| queue.id_of(entry)) {
                ledger.record(Record::dequeued(id, entry.place));
            }
            ledger.release(entry);
            self.retained.end_expiry(entry);
        }
    }

    #[cfg(test)]
    pub(crate) fn all_retained(&self) -> &Retained {
        &self.retained
    }
}
