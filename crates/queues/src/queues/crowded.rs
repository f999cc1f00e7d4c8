//! Relief for a memory that is nearly full: every queue keeps its first messages alone, however short it is.
//!
//! ```text
//! set_crowded ─▶ sweep: some queues at a time are postponed ─▶ relieve: messages without a record get one
//!                    ▲                                             │ once the store has committed these
//!                    └── when the postponed ones are done          ▼
//!                                                      all but the first leave memory
//! ```
//!
//! Queues that are not long never become deep otherwise, and a deep queue's head has as many messages as a shallow queue
//! may have. Many such queues at rest would take memory without a bound. Meanwhile a queue that gets a message becomes
//! deep at once if it has more than a few.
//!
//! A vhost whose messages are in a log gives none a record for this: it would write transient messages to all nodes
//! because one has little memory. So only what is behind a queue's last message without a record leaves.

use super::lane::Lane;
use super::level::Level;
use super::messages::{Messages, age};
use super::paging::spill;
use super::{Entry, Queue, Queues};
use crate::ledger::Ledger;
use crate::{LEVELED, Paging, Position, QueueKey};

/// How far a queue is with its relief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Relief {
    #[default]
    None,
    /// Its head may be too long.
    Begins,
    /// All messages of the head with a lower age have a record up to that position.
    Recorded { at: Position, age: i64 },
    /// The same, and some stayed only because the store had not committed all departures. It has at that position, if none
    /// follows. Not tried once more: a vhost may always be busy.
    Settling { at: Position, age: i64 },
}

/// Places of the table of queues, and queues, that one step of the sweep looks at and postpones.
const PLACES: usize = 64;
const PLACES_MAX: usize = 4_096;
const QUEUES: usize = 64;

/// Messages that one turn gives a record, and that one turn takes out of memory.
const RECORDS_MAX: usize = 1_024;
const UNLOADED_MAX: usize = 256;

/// Messages that a step walks over.
const VISITED_PER_STEP: usize = 16;

impl Queues {
    /// The memory of all vhosts is nearly full, or is not any more.
    pub(crate) fn set_crowded(&mut self, is_crowded: bool) {
        self.is_crowded = is_crowded;
        self.many_bytes = match is_crowded {
            true => 0,
            false => self.paging.memory_bytes,
        };
        self.sweep = Some(0).filter(|_| is_crowded);
        self.sweep_on();
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// The number of messages and bytes of bodies beyond which queues become deep.
    pub(super) fn shallow_max(&self) -> (usize, u64) {
        match self.is_crowded {
            true => (self.paging.crowded_messages, self.paging.crowded_body_bytes),
            false => (self.paging.messages, self.paging.body_bytes),
        }
    }

    /// Postpones the next queues to be relieved. While the sweep goes on, one at least is postponed.
    #[cold]
    pub(super) fn sweep_on(&mut self) {
        let Some(mut place) = self.sweep.take() else {
            return;
        };
        let (begun_at, mut postponed) = (place, 0);
        while place < self.queues.places() && postponed < QUEUES {
            let part = self.queues.part(place, PLACES);
            let last = part.last().map(|(key, _)| key);
            let part = self.queues.part(place, PLACES);
            let part = part.filter(|(_, queue)| queue.is_crowding(self.paging));
            let keys: Vec<QueueKey> = part.map(|(key, _)| key).collect();
            place += PLACES;
            for key in &keys {
                if let Some(queue) = self.queues.find_mut(*key) {
                    queue.relief = Relief::Begins;
                }
                self.postpone(*key);
            }
            postponed += keys.len();
            if let Some(key) = last.filter(|_| place - begun_at >= PLACES_MAX && postponed == 0) {
                // So that other inputs have their turn before the sweep goes on.
                self.postpone(key);
                postponed = QUEUES;
            }
        }
        self.sweep = Some(place).filter(|place| *place < self.queues.places());
    }

    /// Has the messages behind a queue's first ones leave memory, as far as this input's steps allow.
    #[cold]
    pub(super) fn relieve(&mut self, key: QueueKey, ledger: &mut Ledger) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        if !self.is_crowded {
            queue.relief = Relief::None;
            return;
        }
        if queue.relief == Relief::Begins && !self.record_head(key, ledger) {
            return self.postpone(key);
        }
        let paging = self.paging;
        // A page may be read before the store knows of later departures.
        let latest = ledger.journal.position;
        let is_committed = ledger.committed >= latest;
        let is_settled = is_committed && self.dead.is_empty() && self.remains.is_empty();
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        let (Relief::Recorded { at, age } | Relief::Settling { at, age }) = queue.relief else {
            return;
        };
        if at > ledger.committed {
            // Once more after that commit.
            return self.sinking.push_back((at, key));
        }
        if !queue.unload(age, is_settled, paging, ledger) {
            return self.postpone(key);
        }
        let is_first = matches!(queue.relief, Relief::Recorded { .. });
        queue.relief = Relief::None;
        if is_first && !is_committed && queue.is_crowding(paging) {
            queue.relief = Relief::Settling { at: latest, age };
            self.sinking.push_back((latest, key));
        }
    }

    /// Makes a queue deep, and gives its messages records, as many as one turn may. Returns whether all have one.
    fn record_head(&mut self, key: QueueKey, ledger: &mut Ledger) -> bool {
        let paging = self.paging;
        let Some(queue) = self.queues.find_mut(key) else {
            return true;
        };
        if !queue.is_crowding(paging) {
            queue.relief = Relief::None;
            return true;
        }
        if !queue.is_deep() {
            queue.messages.deepen();
            self.number_spilled(key);
        }
        let Some(queue) = self.queues.find_mut(key) else {
            return true;
        };
        let ids = (queue.spill_id, queue.id);
        let (mut visited, mut recorded) = (0, 0);
        // A log has no place for messages that a restart forgets: these stay, and those in front of them.
        let heads = paging.spills.then(|| queue.messages.heads_mut());
        for entry in heads.into_iter().flatten() {
            visited += 1;
            if !entry.is_recorded() {
                recorded += 1;
                spill(ids, entry, ledger);
                if recorded == RECORDS_MAX {
                    break;
                }
            }
        }
        ledger
            .steps
            .spend(1 + recorded + visited / VISITED_PER_STEP);
        if recorded == RECORDS_MAX {
            return false;
        }
        queue.relief = Relief::Recorded {
            at: ledger.journal.position,
            age: queue.next_place,
        };
        true
    }
}

impl Queue {
    /// Whether its head has more messages than it may have while memory is crowded.
    fn is_crowding(&self, paging: Paging) -> bool {
        let head_max = self.head_max(paging);
        let mut lanes = self.messages.lanes();
        !self.role.is_hidden()
            && self.may_be_deep(paging)
            && lanes.any(|lane| lane.len() > head_max)
    }

    /// The number of messages that stay, judged by their mean size.
    fn head_max(&self, paging: Paging) -> usize {
        let count = self.messages.len().max(1) as u64;
        let mean_bytes = (self.body_bytes / count).max(1);
        let fit = paging.crowded_body_bytes / mean_bytes;
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        fit.clamp(1, paging.crowded_messages.max(1))
    }

    /// Takes the messages with a lower age, which the store has, out of its heads. Returns whether that is done.
    /// `is_settled`: no message that has left the queue is still in the store.
    ///
    /// What is read again is all that the store has between two places. A message that is held, or was and is becoming a
    /// dead letter, must not be among these. It was delivered, and so were all before it: messages that were never delivered
    /// are behind all of them.
    fn unload(
        &mut self,
        age_end: i64,
        is_settled: bool,
        paging: Paging,
        ledger: &mut Ledger,
    ) -> bool {
        let head_max = self.head_max(paging);
        let is_alone = is_settled
            && self.unacknowledged == 0
            && self.returning == 0
            && self.settings.priority_max == 0;
        // Places of an earlier version tell no priority: a page would be put into the lowest one.
        let is_leveled = self.settings.priority_max > 0;
        let may_leave = |entry: &Entry| {
            let is_behind = is_alone || !entry.is_redelivered;
            let is_placed = !is_leveled || entry.place >= LEVELED;
            entry.is_recorded() && age(entry.place) < age_end && is_behind && is_placed
        };
        let left = self.messages.unload(head_max, may_leave);
        ledger.steps.spend(left.len());
        for entry in &left {
            if entry.is_redelivered {
                let behind = age(entry.place).saturating_add(1);
                self.redelivered_before = self.redelivered_before.max(behind);
            }
            ledger.release(entry);
        }
        left.len() < UNLOADED_MAX
    }
}

impl Messages {
    /// The messages of all heads, the earliest of a level first as a rule.
    fn heads_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.levels_mut().flat_map(|level| level.lane.iter_mut())
    }

    /// Moves the last messages of the heads to those that are on the disk alone, as many as one turn may.
    fn unload(&mut self, head_max: usize, may_leave: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut left = Vec::new();
        for level in self.levels_mut() {
            level.unload(head_max, &may_leave, &mut left);
        }
        left
    }
}

impl Level {
    fn unload(
        &mut self,
        head_max: usize,
        may_leave: impl Fn(&Entry) -> bool,
        left: &mut Vec<Entry>,
    ) {
        let (lane, depths) = self.parts_mut();
        let Some(depths) = depths.filter(|depths| !depths.is_being_read()) else {
            return;
        };
        while lane.len() > head_max
            && left.len() < UNLOADED_MAX
            && lane.back().is_some_and(&may_leave)
            && let Some(entry) = lane.pop_back()
        {
            depths.add_first(entry.place, entry.content.body().len() as u64);
            left.push(entry);
        }
        depths.lower(lane.len());
        lane.give_back_room();
    }
}

impl Lane {
    /// The last one of all.
    fn back(&self) -> Option<&Entry> {
        self.lasts().max_by_key(|entry| entry.place)
    }

    fn pop_back(&mut self) -> Option<Entry> {
        let place = self.back()?.place;
        self.take(place)
    }
}
