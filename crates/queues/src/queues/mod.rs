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

mod arrivals;
mod arrive;
mod bounds;
mod crowded;
mod dead_letters;
mod deaths;
mod delayed;
mod delays;
mod depths;
mod entry;
mod hidden;
mod incoming;
mod lane;
mod leave;
mod letters;
mod level;
mod messages;
mod paging;
mod queue;
mod rest;
mod restore;
mod retained;
mod retaining;
mod role;
mod wheel;
mod withdraw;

pub(crate) use self::dead_letters::{DeadLetter, DeadLetters, FOLLOWING_MAX, Reason};
pub(crate) use self::deaths::{Deaths, array_field, push_string};
pub(crate) use self::delayed::Due;
pub(crate) use self::entry::Entry;
pub(crate) use self::incoming::{Enqueued, Handling, Incoming};
pub(crate) use self::leave::Popped;
pub(crate) use self::messages::Messages;
use crosstie_collections::Slab;

pub use self::messages::{LEVELED, level_end};
pub use self::paging::{Page, Paged, Want};
pub(crate) use self::queue::Queue;
pub use self::retained::RetainedMax;
pub(crate) use self::role::{Letter, is_hidden_name};
pub(crate) use self::withdraw::Withdrawn;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use self::delayed::Delays;
use self::retained::Retained;
use self::role::Role;
use crate::keys::OfQueue;
use crate::ledger::Ledger;
use crate::timers::Timers;
use crate::{Paging, Position, QueueId, QueueKey, Record};

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
    /// Queues that need a page from the disk.
    wanting: VecDeque<QueueKey>,
    /// Queues whose tails may leave memory after that commit.
    sinking: VecDeque<(Position, QueueKey)>,
    paging: Paging,
    /// Bytes of messages in memory from which on long queues become deep.
    many_bytes: usize,
    /// Memory is nearly full: few messages make a queue long.
    is_crowded: bool,
    /// The place of the queue from which on queues have yet to be relieved.
    sweep: Option<usize>,
    dead: DeadLetters,
    /// Number of hidden queues.
    hidden: usize,
    /// Number of dead letters that hidden queues keep.
    letters: usize,
    /// The hidden queues with dead letters that were refused.
    refused: BTreeSet<QueueKey>,
    delays: Delays,
    retained: Retained,
}

/// The timers of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QueueTimer {
    /// Its first message may have expired.
    Head(QueueKey),
    /// It may have been unused for its expiry time.
    Unused(QueueKey),
    /// Refused letters of a hidden queue are to be tried again.
    Letters(QueueKey),
}

#[derive(Debug)]
struct Remains {
    messages: Messages,
    /// The queue's ids, if the store is told of each message: of stored and of spilled ones.
    ids: [Option<QueueId>; 2],
}

/// Adding and removing of queues.
impl Queues {
    /// Durable queues by the ids that a store has for them.
    pub(crate) fn ids(&self) -> HashMap<QueueId, QueueKey> {
        let queues = self.queues.iter();
        queues
            .filter_map(|(key, queue)| Some((queue.id?, key)))
            .collect()
    }

    pub(crate) fn new(paging: Paging) -> Self {
        Self {
            queues: Slab::new(),
            timers: Timers::new(),
            next_id: QueueId(1),
            restoring: BTreeMap::new(),
            rested: BTreeMap::new(),
            postponed: VecDeque::new(),
            remains: VecDeque::new(),
            wanting: VecDeque::new(),
            sinking: VecDeque::new(),
            paging,
            many_bytes: paging.memory_bytes,
            is_crowded: false,
            sweep: None,
            dead: DeadLetters::default(),
            hidden: 0,
            letters: 0,
            refused: BTreeSet::new(),
            delays: Delays::default(),
            retained: Retained::default(),
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
        for id in [queue.id, queue.spill_id].into_iter().flatten() {
            ledger.record(Record::QueueDeleted { id });
        }
        self.leave(std::mem::take(&mut queue.messages), [None; 2]);
        match std::mem::take(&mut queue.role) {
            Role::Ordinary => {}
            Role::Keeping(kept) => self.end_letters(kept, ledger),
            Role::Letters(letters) => {
                self.hidden -= 1;
                letters.iter().for_each(|entry| ledger.release(entry));
            }
            Role::Bucket(_) | Role::Retained | Role::Restored => self.hidden -= 1,
        }
        Some(queue)
    }

    /// Removes all ready messages, without dead letters; returns how many. `is_settled`: no dead letters or purged messages
    /// of the queue are left. Then, if none are unacknowledged either, the store is told once, otherwise of each message.
    pub(crate) fn purge(&mut self, key: QueueKey, is_settled: bool, ledger: &mut Ledger) -> usize {
        let Some(queue) = self.queues.find_mut(key) else {
            return 0;
        };
        let mut messages = queue.take_messages();
        let is_all = queue.unacknowledged == 0 && is_settled;
        let message_count = messages.len();
        let ids = [queue.id, queue.spill_id];
        let sunk = messages.forget_sunk();
        for queue in ids.into_iter().flatten().filter(|_| message_count > 0) {
            if is_all {
                ledger.record(Record::Purged { queue });
                continue;
            }
            for (from, to) in &sunk {
                let (from, to) = (*from, *to);
                ledger.record(Record::Cleared { queue, from, to });
            }
        }
        self.leave(messages, if is_all { [None; 2] } else { ids });
        message_count
    }

    /// Those on the disk alone cost no memory: the store has been told of all of them at once.
    fn leave(&mut self, mut messages: Messages, ids: [Option<QueueId>; 2]) {
        messages.forget_sunk();
        if !messages.is_empty() {
            self.remains.push_back(Remains { messages, ids });
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
                let [stored, spilled] = remains.ids;
                let id = if entry.is_spilled { spilled } else { stored };
                if let Some(queue) = id.filter(|_| entry.is_recorded()) {
                    let place = entry.place;
                    ledger.record(Record::dequeued(queue, place));
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
        if self.postponed.is_empty() {
            self.sweep_on();
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

    /// Without hidden ones.
    pub(crate) fn len(&self) -> usize {
        self.queues.len() - self.hidden
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (QueueKey, &Queue)> {
        self.queues.iter()
    }

    /// Without hidden ones.
    pub(crate) fn visible(&self) -> impl Iterator<Item = (QueueKey, &Queue)> {
        self.queues
            .iter()
            .filter(|(_, queue)| !queue.role.is_hidden())
    }

    /// Size of the table, free places included.
    pub(crate) fn places(&self) -> usize {
        self.queues.places()
    }

    /// The queues at that many places, from `place` on, without hidden ones.
    pub(crate) fn part(
        &self,
        place: usize,
        places_max: usize,
    ) -> impl Iterator<Item = (QueueKey, &Queue)> {
        let part = self.queues.part(place, places_max);
        part.filter(|(_, queue)| !queue.role.is_hidden())
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
