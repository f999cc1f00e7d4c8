//! Queues and their messages: ready messages, bounds, expiry, dead letters.
//!
//! ```text
//! add ─▶ find_mut ─▶ keep ─▶ push, or hold_one (a channel has it) ─▶ next_ready ─▶ settle_one
//!            │                                                           │             │
//!            └▶ rejected, over a bound, expired ─▶ die ─▶ dead letters   │             ├▶ forget
//!                                                                        └◀ give_back ◀┘
//! ```
//!
//! It borrows the ledger, and the confirms, which are told of each stored message that is forgotten. Callers pass
//! whether a queue has consumers. *Never:* a channel, a consumer, an exchange.

mod arrive;
mod bounds;
mod dead_letters;
mod deaths;
mod incoming;
mod lane;
mod leave;
mod messages;
mod queue;
mod rest;
mod restore;

pub(crate) use self::dead_letters::{DeadLetter, DeadLetters, FOLLOWING_MAX, Reason};
pub(crate) use self::deaths::Deaths;
pub(crate) use self::incoming::{Enqueued, Handling, Incoming};
pub(crate) use self::messages::Messages;
pub(crate) use self::queue::{Entry, Queue};

use std::collections::{BTreeMap, VecDeque};

use crate::keys::OfQueue;
use crate::ledger::Ledger;
use crate::slab::Slab;
use crate::timers::Timers;
use crate::{QueueId, QueueKey, Record};

#[derive(Debug)]
pub(crate) struct Queues {
    queues: Slab<OfQueue, Queue>,
    timers: Timers<QueueTimer>,
    next_id: QueueId,
    /// By their ids in the store; only during a restore.
    restoring: BTreeMap<QueueId, QueueKey>,
    /// The place from which on each queue's messages were never delivered; only during a restore.
    rested: BTreeMap<QueueId, i64>,
    /// Queues that have messages to send or to drop later.
    postponed: VecDeque<QueueKey>,
    /// The messages of queues that were purged or deleted.
    remains: VecDeque<Remains>,
    dead: DeadLetters,
}

/// The timers of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueTimer {
    /// Its first message may have expired.
    Head(QueueKey),
    /// It may have been unused for its expiry time.
    Unused(QueueKey),
}

#[derive(Debug)]
struct Remains {
    messages: Messages,
    /// The queue's id, if the store is told of each message.
    id: Option<QueueId>,
}

/// Adding and removing of queues.
impl Queues {
    pub(crate) fn new() -> Self {
        Self {
            queues: Slab::new(),
            timers: Timers::new(),
            next_id: QueueId(1),
            restoring: BTreeMap::new(),
            rested: BTreeMap::new(),
            postponed: VecDeque::new(),
            remains: VecDeque::new(),
            dead: DeadLetters::default(),
        }
    }

    /// The store's id of the next durable queue.
    pub(crate) fn take_id(&mut self) -> QueueId {
        let id = self.next_id;
        self.next_id.0 += 1;
        id
    }

    pub(crate) fn add(&mut self, queue: Queue) -> QueueKey {
        self.queues.insert(queue)
    }

    /// Removes a queue. [`Self::clear_one`] removes its messages; a store forgets them with the queue.
    pub(crate) fn remove(&mut self, key: QueueKey, ledger: &mut Ledger) -> Option<Queue> {
        let mut queue = self.queues.remove(key)?;
        if let Some(id) = queue.id {
            ledger.record(Record::QueueDeleted { id });
        }
        self.leave(std::mem::take(&mut queue.messages), None);
        Some(queue)
    }

    /// Removes all ready messages, without dead letters; returns how many. `is_settled`: no dead letters or purged messages
    /// of the queue are left. Then, if none are unacknowledged either, the store is told once, otherwise of each message.
    pub(crate) fn purge(&mut self, key: QueueKey, is_settled: bool, ledger: &mut Ledger) -> usize {
        let Some(queue) = self.queues.find_mut(key) else {
            return 0;
        };
        let messages = queue.take_messages();
        let is_all = queue.unacknowledged == 0 && is_settled;
        let id = queue.id;
        if is_all
            && let Some(queue) = id
            && !messages.is_empty()
        {
            ledger.record(Record::Purged { queue });
        }
        let message_count = messages.len();
        self.leave(messages, id.filter(|_| !is_all));
        message_count
    }

    fn leave(&mut self, messages: Messages, id: Option<QueueId>) {
        if !messages.is_empty() {
            self.remains.push_back(Remains { messages, id });
        }
    }

    /// Removes a message of a purged or deleted queue; returns whether there was one.
    pub(crate) fn clear_one(&mut self, ledger: &mut Ledger) -> bool {
        let Some(remains) = self.remains.front_mut() else {
            return false;
        };
        match remains.messages.pop() {
            None => drop(self.remains.pop_front()),
            Some(entry) => {
                if let Some(queue) = remains.id.filter(|_| entry.is_stored) {
                    let place = entry.place;
                    ledger.record(Record::Dequeued { queue, place });
                }
                ledger.release(&entry);
            }
        }
        true
    }
}

/// Postponed work.
impl Queues {
    /// Postpones attending to a queue.
    #[cold]
    pub(crate) fn postpone(&mut self, key: QueueKey) {
        if let Some(queue) = self.queues.find_mut(key)
            && !queue.is_postponed
        {
            queue.is_postponed = true;
            self.postponed.push_back(key);
        }
    }

    /// Takes a queue that is to be attended to now.
    pub(crate) fn next_postponed(&mut self) -> Option<QueueKey> {
        let key = self.postponed.pop_front()?;
        if let Some(queue) = self.queues.find_mut(key) {
            queue.is_postponed = false;
        }
        Some(key)
    }

    pub(crate) fn has_backlog(&self) -> bool {
        !(self.postponed.is_empty() && self.remains.is_empty() && self.dead.is_empty())
    }

    pub(crate) fn dead(&self) -> &DeadLetters {
        &self.dead
    }

    pub(crate) fn dead_mut(&mut self) -> &mut DeadLetters {
        &mut self.dead
    }
}

/// Read access for the other rooms.
impl Queues {
    #[inline]
    pub(crate) fn find(&self, key: QueueKey) -> Option<&Queue> {
        self.queues.find(key)
    }

    pub(crate) fn ready_count(&self, key: QueueKey) -> usize {
        self.queues.find(key).map_or(0, |q| q.messages.len())
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (QueueKey, &Queue)> {
        self.queues.iter()
    }

    /// Size of the table, free places included.
    pub(crate) fn places(&self) -> usize {
        self.queues.places()
    }

    /// The queues at that many places, from `place` on.
    pub(crate) fn part(
        &self,
        place: usize,
        places_max: usize,
    ) -> impl Iterator<Item = (QueueKey, &Queue)> {
        self.queues.part(place, places_max)
    }

    #[cfg(test)]
    pub(crate) fn postponed(&self) -> impl Iterator<Item = &QueueKey> {
        self.postponed.iter()
    }

    #[cfg(test)]
    pub(crate) fn remains(&self) -> impl Iterator<Item = &Entry> {
        self.remains
            .iter()
            .flat_map(|remains| remains.messages.iter())
    }
}
