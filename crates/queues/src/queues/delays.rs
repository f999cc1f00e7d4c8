//! Messages that exchanges of type `x-delayed-message` hold back until they are due.
//!
//! ```text
//! delay ─▶ a bucket: a hidden queue, on the disk ─opens─▶ finer buckets ─▶ near: sorted, in memory ─due─▶ next_due
//! ```
//!
//! A message's entry has its due time in place of an expiry. It is recorded in a bucket for as long as it waits; a move
//! records it in the next bucket before it leaves the last one.

use std::cmp::Reverse;
use std::sync::Arc;

use super::delayed::{Due, Near, near_bytes};
use super::hidden::{bucket_arguments, exchange_of};
use super::role::{Bucket, Role};
use super::wheel::Place;
use super::{Entry, Queues};
use crate::ledger::Ledger;
use crate::topology::ExchangeKey;
use crate::{MessageContent, Paging, Position, QueueKey, Record, Time};

/// Bytes of near messages from which on no more are read. Within one second, larger numbers may leave out of order.
const NEAR_BYTES_MAX: usize = 64 << 20;
const NEAR_BYTES_MIN: usize = 1 << 20;

impl Queues {
    /// Holds a message back. Returns the position of its record, if the exchange is durable.
    pub(crate) fn delay(
        &mut self,
        now: Time,
        (exchange, name, is_durable): (ExchangeKey, &str, bool),
        content: Arc<MessageContent>,
        due: Time,
        ledger: &mut Ledger,
    ) -> Option<Position> {
        let place = Place::of(due, now);
        let line = self.delays.exchanges.entry(exchange).or_default();
        line.messages += 1;
        self.delays.messages += 1;
        let known = line.buckets.get(&place).copied();
        let key = known.unwrap_or_else(|| {
            let name = (name, is_durable);
            self.add_bucket(now, exchange, name, place, ledger)
        });
        self.put(now, key, place, content, due, ledger);
        is_durable.then_some(ledger.journal.position)
    }

    fn add_bucket(
        &mut self,
        now: Time,
        exchange: ExchangeKey,
        (name, is_durable): (&str, bool),
        place: Place,
        ledger: &mut Ledger,
    ) -> QueueKey {
        let role = Role::Bucket(Bucket {
            exchange: Some(exchange),
            place,
        });
        let name = (Role::bucket_name(place), bucket_arguments(name));
        let key = self.add_hidden(now, name, is_durable, role, ledger);
        self.know_bucket(exchange, place, key);
        key
    }

    fn know_bucket(&mut self, exchange: ExchangeKey, place: Place, key: QueueKey) {
        let line = self.delays.exchanges.entry(exchange).or_default();
        line.buckets.insert(place, key);
        self.delays.openings.insert((place.opens_at(), key));
    }

    /// Puts a message into a bucket, or among the near ones.
    fn put(
        &mut self,
        now: Time,
        key: QueueKey,
        place: Place,
        content: Arc<MessageContent>,
        due: Time,
        ledger: &mut Ledger,
    ) {
        let is_near = place.is_finest() && place.is_open(now) && !self.is_near_full();
        let has_paging = self.paging != Paging::OFF;
        let is_deep = has_paging && (!place.is_finest() || self.are_many(ledger));
        let Some(queue) = self.queues.find_mut(key) else {
            return;
        };
        if is_near {
            let entry = queue.new_entry(content, Some(due), ledger);
            return self.approach(key, entry);
        }
        if is_deep && !queue.is_deep() && queue.may_be_deep(self.paging) {
            queue.messages.deepen();
            self.number_spilled(key);
        }
        if let Some(queue) = self.queues.find_mut(key) {
            queue.append(content, Some(due), ledger);
        }
        if place.is_finest() && place.is_open(now) {
            self.delays.crowded.insert((place.opens_at(), key));
        }
        self.enlist(key);
    }

    /// Adds a message of a bucket to the near ones.
    fn approach(&mut self, bucket: QueueKey, entry: Entry) {
        if let Some(queue) = self.queues.find_mut(bucket) {
            queue.unacknowledged += 1;
        }
        self.delays.near_bytes += near_bytes(&entry);
        self.delays.near.push(Reverse(Near {
            due: entry.expires_at.unwrap_or_default(),
            place: entry.place,
            bucket,
            entry,
        }));
    }

    fn is_near_full(&self) -> bool {
        let max = self.paging.memory_bytes;
        self.delays.near_bytes >= max.clamp(NEAR_BYTES_MIN, NEAR_BYTES_MAX)
    }

    /// When the next message is due, or the next bucket is to be opened.
    #[inline]
    pub(crate) fn next_delay(&self) -> Option<Time> {
        let near = self.delays.near.peek().map(|Reverse(near)| near.due);
        let opening = self.delays.openings.first().map(|(at, _)| *at);
        match (near, opening) {
            (Some(near), Some(opening)) => Some(near.min(opening)),
            (near, opening) => near.or(opening),
        }
    }

    /// Takes the bucket that is to be opened first, if its time has come.
    pub(crate) fn next_opening(&mut self, now: Time) -> Option<QueueKey> {
        let (_, key) = *self.delays.openings.first().filter(|(at, _)| *at <= now)?;
        self.delays.openings.pop_first();
        Some(key)
    }

    /// Takes the message that is due first; [`Self::end_delay`] forgets it.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<Due> {
        self.delays
            .near
            .peek()
            .filter(|Reverse(near)| near.due <= now)?;
        let Reverse(near) = self.delays.near.pop()?;
        self.delays.near_bytes -= near_bytes(&near.entry);
        Some(Due {
            exchange: self.bucket(near.bucket)?.exchange?,
            entry: near.entry,
            bucket: near.bucket,
        })
    }

    /// Forgets a message that was published. The records of that precede this one.
    pub(crate) fn end_delay(&mut self, due: &Due, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find_mut(due.bucket) {
            queue.unacknowledged -= 1;
        }
        self.leave_bucket(due.bucket, &due.entry, ledger);
        self.end_message(due.bucket, ledger);
    }

    /// A message has left a bucket, and waits in no other one.
    pub(super) fn end_message(&mut self, key: QueueKey, ledger: &mut Ledger) {
        let Some(Bucket { exchange, .. }) = self.bucket(key) else {
            return;
        };
        self.delays.messages -= 1;
        if let Some(exchange) = exchange
            && let Some(line) = self.delays.exchanges.get_mut(&exchange)
        {
            line.messages -= 1;
        }
        self.end_bucket(key, ledger);
        self.admit();
    }

    /// Has the earliest bucket move on whose messages had no room, if there is some now.
    fn admit(&mut self) {
        while !self.is_near_full()
            && let Some((_, key)) = self.delays.crowded.pop_first()
        {
            if self.queues.find(key).is_some() {
                return self.postpone(key);
            }
        }
    }

    /// Moves messages of an open bucket on, as far as this input's steps allow.
    pub(crate) fn move_on(&mut self, now: Time, key: QueueKey, ledger: &mut Ledger) {
        self.sink(key, ledger);
        self.move_some(now, key, ledger);
        self.admit();
    }

    fn move_some(&mut self, now: Time, key: QueueKey, ledger: &mut Ledger) {
        let Some(Bucket { exchange, place }) = self.bucket(key) else {
            return;
        };
        let Some(exchange) = exchange.filter(|_| place.is_open(now)) else {
            return;
        };
        loop {
            if ledger.steps.is_over() {
                return self.postpone(key);
            }
            if place.is_finest() && self.is_near_full() {
                self.delays.crowded.insert((place.opens_at(), key));
                return;
            }
            let Some(queue) = self.queues.find_mut(key) else {
                return;
            };
            queue.messages.surface();
            let Some(entry) = queue.pop() else {
                break;
            };
            ledger.steps.spend(1);
            match place.is_finest() {
                true => self.approach(key, entry),
                false => self.move_one(now, (key, exchange), &entry, ledger),
            }
        }
        self.want_page(key);
        self.end_bucket(key, ledger);
    }

    /// Moves a message to a finer bucket.
    fn move_one(
        &mut self,
        now: Time,
        (key, exchange): (QueueKey, ExchangeKey),
        entry: &Entry,
        ledger: &mut Ledger,
    ) {
        ledger.steps.spend(1);
        let due = entry.expires_at.unwrap_or_default();
        let place = Place::of(due, now);
        let line = self.delays.exchanges.get(&exchange);
        let known = line.and_then(|line| line.buckets.get(&place).copied());
        let Some(queue) = self.queues.find(key) else {
            return;
        };
        let (name, is_durable) = (exchange_of(&queue.arguments), queue.id.is_some());
        let next = known
            .unwrap_or_else(|| self.add_bucket(now, exchange, (&name, is_durable), place, ledger));
        self.put(now, next, place, Arc::clone(&entry.content), due, ledger);
        self.leave_bucket(key, entry, ledger);
    }

    /// Forgets an entry of a bucket. No confirm follows from that: it waits for the record that came first.
    fn leave_bucket(&self, key: QueueKey, entry: &Entry, ledger: &mut Ledger) {
        if let Some(queue) = self.queues.find(key).and_then(|queue| queue.id_of(entry)) {
            let place = entry.place;
            ledger.record(Record::dequeued(queue, place));
        }
        ledger.release(entry);
    }

    /// Removes a bucket without messages.
    fn end_bucket(&mut self, key: QueueKey, ledger: &mut Ledger) {
        let queue = self.queues.find(key);
        if queue.is_none_or(|queue| !queue.messages.is_empty() || queue.unacknowledged > 0) {
            return;
        }
        if let Some(Bucket { exchange, place }) = self.bucket(key) {
            self.delays.openings.remove(&(place.opens_at(), key));
            if let Some(exchange) = exchange
                && let Some(line) = self.delays.exchanges.get_mut(&exchange)
            {
                line.buckets.remove(&place);
            }
        }
        self.remove(key, ledger);
    }

    /// Forgets the messages of a deleted exchange.
    pub(crate) fn end_delays(&mut self, exchange: ExchangeKey, ledger: &mut Ledger) {
        let Some(line) = self.delays.exchanges.remove(&exchange) else {
            return;
        };
        self.delays.messages -= line.messages;
        for (place, key) in line.buckets {
            self.delays.openings.remove(&(place.opens_at(), key));
            self.remove(key, ledger);
        }
        let queues = &self.queues;
        let near_bytes_of = &mut self.delays.near_bytes;
        self.delays.near.retain(|Reverse(near)| {
            let is_kept = queues.find(near.bucket).is_some();
            if !is_kept {
                *near_bytes_of -= near_bytes(&near.entry);
                ledger.release(&near.entry);
            }
            is_kept
        });
        // There may be room for buckets of other exchanges.
        self.admit();
    }

    /// The restored buckets, and the names of their exchanges.
    pub(crate) fn restored_buckets(&self) -> Vec<(QueueKey, Arc<str>)> {
        let restored = self.queues.iter().filter_map(|(key, queue)| {
            let bucket = queue.role.bucket()?;
            let name = exchange_of(&queue.arguments);
            bucket.exchange.is_none().then_some((key, name))
        });
        restored.collect()
    }

    /// Gives a restored bucket to its exchange; it is removed if that is gone.
    pub(crate) fn adopt_bucket(
        &mut self,
        key: QueueKey,
        exchange: Option<ExchangeKey>,
        ledger: &mut Ledger,
    ) {
        let queue = self.queues.find_mut(key);
        let Some((queue, exchange)) = queue.zip(exchange) else {
            drop(self.remove(key, ledger));
            return;
        };
        let messages = queue.messages.len();
        let Some(bucket) = queue.role.bucket_mut() else {
            return;
        };
        bucket.exchange = Some(exchange);
        let place = bucket.place;
        self.know_bucket(exchange, place, key);
        self.delays.messages += messages;
        if let Some(line) = self.delays.exchanges.get_mut(&exchange) {
            line.messages += messages;
        }
    }

    /// Number of messages that an exchange holds back.
    pub(crate) fn delayed_by(&self, exchange: ExchangeKey) -> usize {
        let line = self.delays.exchanges.get(&exchange);
        line.map_or(0, |line| line.messages)
    }

    /// Number of messages that are held back.
    pub(crate) fn delayed(&self) -> usize {
        self.delays.messages
    }

    fn bucket(&self, key: QueueKey) -> Option<Bucket> {
        self.queues.find(key)?.role.bucket().copied()
    }

    /// Panics unless the counts are those of the messages.
    #[cfg(test)]
    pub(crate) fn check_delays(&self) {
        let mut messages = 0;
        for line in self.delays.exchanges.values() {
            let of = |key: &QueueKey| {
                let queue = self.queues.find(*key).expect("a bucket is a queue");
                queue.messages.len() + self.near().filter(|(bucket, _)| bucket == key).count()
            };
            assert_eq!(line.messages, line.buckets.values().map(of).sum::<usize>());
            messages += line.messages;
        }
        assert_eq!(self.delays.messages, messages);
    }

    /// The near messages, and their buckets.
    #[cfg(test)]
    pub(crate) fn near(&self) -> impl Iterator<Item = (QueueKey, &Entry)> {
        let near = self.delays.near.iter();
        near.map(|Reverse(near)| (near.bucket, &near.entry))
    }
}
