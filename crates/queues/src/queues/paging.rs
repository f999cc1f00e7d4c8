//! The way of a deep queue's messages to the disk and back.

use super::crowded::Relief;
use super::depths::Depths;
use super::messages::{age, level_of};
use super::{Entry, Queue, Queues, Reason};
use crate::confirms::Confirms;
use crate::ledger::Ledger;
use crate::{Kept, Paging, Position, QueueId, QueueKey, StoredMessage};

/// A page of a deep queue that its owner is to read from the store: messages at these places, the earliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    pub queue: QueueKey,
    /// The ids under which the store has them: of a durable queue's stored messages, and of those that a restart
    /// forgets.
    pub stored: Option<QueueId>,
    pub spilled: Option<QueueId>,
    pub from: i64,
    pub to: i64,
    clearances: u32,
}

/// A page from the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// In the order of their places.
    pub messages: Vec<Paged>,
    /// No others are at places up to this one.
    pub upto: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Paged {
    pub place: i64,
    pub message: StoredMessage,
    /// Whether it has the id of [`Want::spilled`].
    pub is_spilled: bool,
}

impl Queues {
    /// Whether messages take so much memory that long queues become deep.
    #[inline]
    pub(crate) fn are_many(&self, ledger: &Ledger) -> bool {
        ledger.memory_bytes() >= self.many_bytes
    }

    /// Makes a queue deep if it is long, and has a deep queue's tail wait for its commit.
    #[cold]
    pub(crate) fn deepen(&mut self, key: QueueKey, ledger: &Ledger) {
        let is_many = self.are_many(ledger);
        let paging = self.paging;
        let (messages_max, body_bytes_max) = self.shallow_max();
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        if std::mem::take(&mut queue.is_overtaking) && !queue.is_waiting() {
            self.postpone(key);
            return self.enlist(key);
        }
        if !queue.is_deep() {
            let is_long = queue.messages.len() > messages_max || queue.body_bytes > body_bytes_max;
            if !is_many || !is_long || !queue.may_be_deep(paging) {
                return;
            }
            queue.messages.deepen();
            self.number_spilled(key);
        }
        self.enlist(key);
    }

    /// Gives a deep queue the id of messages that a restart forgets, if it has none.
    pub(super) fn number_spilled(&mut self, key: QueueKey) {
        if self.paging.spills
            && let Some(queue) = self.queues.find_mut(key)
            && queue.is_deep()
            && queue.spill_id.is_none()
        {
            queue.spill_id = Some(self.next_id);
            self.next_id.0 += 1;
        }
    }

    /// Has a queue's tail wait for its commit, if it does not yet.
    pub(super) fn enlist(&mut self, key: QueueKey) {
        if let Some(queue) = self.queues.find_mut(key)
            && !queue.is_sinking
            && let Some(position) = queue.messages.depths().filter_map(Depths::awaited).max()
        {
            queue.is_sinking = true;
            self.sinking.push_back((position, key));
        }
    }

    /// The store has committed everything up to there: tails may leave memory, in turn with other work.
    pub(crate) fn handle_committed(&mut self, position: Position, ledger: &mut Ledger) {
        ledger.committed = ledger.committed.max(position);
        while let Some((_, key)) = self.sinking.pop_front_if(|(at, _)| *at <= ledger.committed) {
            if let Some(queue) = self.queues.find_mut(key) {
                queue.is_sinking = false;
            }
            self.postpone(key);
        }
        self.settle_retained(ledger);
    }

    /// Takes committed messages of a queue's tail out of memory, as far as this input's steps allow.
    pub(crate) fn sink(&mut self, key: QueueKey, ledger: &mut Ledger) {
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        if queue.relief != Relief::None {
            self.relieve(key, ledger);
        }
        let Some(queue) = self.queues.find_mut(key).filter(|queue| queue.is_deep()) else {
            return;
        };
        let mut is_over = false;
        for depths in queue.messages.depths_mut() {
            while !is_over && let Some(entry) = depths.sink(ledger.committed) {
                ledger.steps.spend(1);
                ledger.release(&entry);
                is_over = ledger.steps.is_over();
            }
        }
        if is_over {
            return self.postpone(key);
        }
        self.enlist(key);
    }

    /// Takes the next page to be read.
    pub(crate) fn take_want(&mut self) -> Option<Want> {
        loop {
            let key = self.wanting.pop_front()?;
            let Some(queue) = self.queues.find_mut(key) else {
                continue;
            };
            queue.is_wanting = false;
            let Some((from, to)) = queue.messages.wanted() else {
                continue;
            };
            queue.messages.depths_of(from).map(Depths::begin_reading);
            return Some(Want {
                queue: key,
                stored: queue.id,
                spilled: queue.spill_id,
                from,
                to,
                clearances: queue.clearances,
            });
        }
    }

    /// Requests the next page of a hidden queue, if one is due.
    pub(super) fn want_page(&mut self, key: QueueKey) {
        if let Some(queue) = self.queues.find_mut(key)
            && queue.wants_page()
        {
            queue.is_wanting = true;
            self.wanting.push_back(key);
        }
    }

    /// Whether pages wait to be requested.
    pub(crate) fn has_wants(&self) -> bool {
        !self.wanting.is_empty()
    }

    /// Whether a page would still be put behind the head.
    pub(crate) fn is_awaiting(&self, want: &Want) -> bool {
        let queue = self.queues.find(want.queue);
        queue.is_some_and(|queue| {
            let mut depths = queue.messages.depths();
            queue.clearances == want.clearances && depths.any(|depths| depths.is_reading(want.from))
        })
    }

    /// Puts a page behind the head. Returns the number of messages that the store should have had and did not have;
    /// `None` if the page is of no use any more.
    pub(crate) fn add_page(
        &mut self,
        want: &Want,
        page: Page,
        ledger: &mut Ledger,
        confirms: &mut Confirms,
    ) -> Option<usize> {
        let queue = self.queues.find_mut(want.queue)?;
        if queue.clearances != want.clearances {
            return None;
        }
        let depths = queue.messages.depths_of(want.from)?;
        if !depths.is_reading(want.from) {
            return None;
        }
        let bodies = page
            .messages
            .iter()
            .map(|paged| paged.message.content.body().len() as u64);
        let end = depths.end_reading(page.upto, page.messages.len(), bodies.sum());
        queue.body_bytes = (queue.body_bytes + end.bytes_over).saturating_sub(end.bytes_short);
        let limit = queue.settings.delivery_limit.filter(|_| queue.is_quorum());
        let redelivered_before = queue.redelivered_before;
        let mut over = Vec::new();
        let entries = page.messages.into_iter().filter_map(|paged| {
            let entry = paged.entry(redelivered_before);
            ledger.account(&entry);
            match limit.is_some_and(|limit| u64::from(entry.deliveries) > limit) {
                true => {
                    over.push(entry);
                    None
                }
                false => Some(entry),
            }
        });
        queue.messages.add_page(want.from, entries);
        for entry in over {
            if let Some(queue) = self.queues.find_mut(want.queue) {
                queue.body_bytes -= entry.content.body().len() as u64;
            }
            self.die(want.queue, entry, Reason::DeliveryLimit, ledger, confirms);
        }
        Some(end.missing)
    }

    /// Restores the messages of a queue, or of one of its priorities, that stay on the disk.
    pub(super) fn restore_kept(&mut self, kept: &Kept) {
        let Some(queue) = self.restoring.get(&kept.queue) else {
            return;
        };
        let Some(queue) = self.queues.find_mut(*queue).filter(|_| kept.messages > 0) else {
            return;
        };
        let places = (kept.from, kept.to);
        let depths = Depths::kept(places, kept.messages, kept.body_bytes);
        queue.messages.restore_depths(kept.from, depths);
        queue.body_bytes += kept.body_bytes;
        queue.next_place = queue.next_place.max(age(kept.to).saturating_add(1));
    }
}

impl Queue {
    /// Whether a part of its messages is on the disk alone, or may soon be.
    #[inline]
    pub(crate) fn is_deep(&self) -> bool {
        self.messages.is_deep()
    }

    /// Whether a page is due that was not requested yet.
    #[inline]
    pub(super) fn wants_page(&self) -> bool {
        self.is_deep() && !self.is_wanting && self.messages.wanted().is_some()
    }

    /// Whether its next message is on the disk.
    pub(crate) fn is_waiting(&self) -> bool {
        self.messages.front().is_none() && self.is_deep()
    }

    /// Whether its messages may leave memory.
    pub(super) fn may_be_deep(&self, paging: Paging) -> bool {
        paging.spills || self.id.is_some()
    }

    /// Records a message that the store does not have: a restart forgets it, if the store can.
    #[cold]
    pub(super) fn spill(&self, entry: &mut Entry, ledger: &mut Ledger) {
        if !entry.is_recorded() {
            spill((self.spill_id, self.id), entry, ledger);
        }
    }

    /// Whether a message is redelivered also once it has left memory.
    #[cfg(test)]
    pub(crate) fn is_marked(&self, entry: &Entry) -> bool {
        entry.deliveries > 0 || age(entry.place) < self.redelivered_before
    }

    /// Takes out the ready messages in memory between those places.
    pub(super) fn take_between(&mut self, from: i64, to: i64) -> Vec<Entry> {
        let places = self.messages.iter_mut().map(|entry| entry.place);
        let places: Vec<i64> = places.filter(|place| (from..=to).contains(place)).collect();
        places
            .into_iter()
            .filter_map(|place| self.take(place))
            .collect()
    }
}

/// The same by the ids of its queue.
pub(super) fn spill(
    (spill_id, id): (Option<QueueId>, Option<QueueId>),
    entry: &mut Entry,
    ledger: &mut Ledger,
) {
    if let Some(id) = spill_id {
        entry.is_spilled = true;
        ledger.record(entry.record(id));
    } else if let Some(id) = id {
        entry.is_stored = true;
        ledger.note_stored(entry);
        ledger.record(entry.record(id));
    }
}

impl Paged {
    fn entry(self, redelivered_before: i64) -> Entry {
        let StoredMessage {
            content,
            expires_at,
            deliveries,
        } = self.message;
        Entry {
            content,
            place: self.place,
            expires_at,
            deliveries,
            level: level_of(self.place),
            is_redelivered: deliveries > 0 || age(self.place) < redelivered_before,
            is_stored: !self.is_spilled,
            is_spilled: self.is_spilled,
        }
    }
}
