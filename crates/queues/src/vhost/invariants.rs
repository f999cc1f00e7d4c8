//! The invariants of a vhost between any two inputs.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Vhost;
use crate::channels::{CHANNEL_BYTES, Channel, Delivery, consumer_bytes};
use crate::keys::ConsumerKey;
use crate::ledger::OfKind;
use crate::policy::PolicySubject;
use crate::queues::{Entry, Queue};
use crate::{ChannelKey, ConnectionKey, Deliveries, LEVELED, MessageContent, QueueKey};

/// The sums over all rooms.
#[derive(Default)]
struct Held {
    contents: HashSet<*const MessageContent>,
    memory_bytes: usize,
    stored_bytes: usize,
    unacked_of_queues: HashMap<QueueKey, usize>,
    unacked_of_consumers: HashMap<ConsumerKey, usize>,
    returning: HashMap<QueueKey, u32>,
}

impl Held {
    fn content(&mut self, content: &Arc<MessageContent>) {
        if self.contents.insert(Arc::as_ptr(content)) {
            self.memory_bytes += content.memory_bytes();
        }
    }

    fn entry(&mut self, entry: &Entry) {
        self.memory_bytes += Entry::MEMORY_BYTES;
        self.stored_bytes += usize::from(entry.is_stored) * entry.content.memory_bytes();
        self.content(&entry.content);
    }

    fn delivery(&mut self, delivery: &Delivery) {
        self.entry(&delivery.entry);
        *self.unacked_of_queues.entry(delivery.queue).or_default() += 1;
        if let Some(consumer) = delivery.consumer {
            *self.unacked_of_consumers.entry(consumer).or_default() += 1;
        }
    }
}

impl<H> Vhost<H> {
    /// Panics if an invariant is broken.
    pub(super) fn check_invariants(&self) {
        let held = self.held();
        assert_eq!(self.ledger.memory_bytes(), held.memory_bytes);
        assert_eq!(self.ledger.stored_bytes(), held.stored_bytes);
        for (key, channel) in self.channels.iter() {
            self.check_channel(key, channel);
        }
        for (key, connection) in self.channels.connections() {
            let consumers = connection.channels.iter();
            let consumers = consumers.map(|key| self.consumers.count_of_channel(*key));
            assert_eq!(connection.consumers, consumers.sum::<usize>());
            if !connection.is_closing {
                assert_eq!(self.channels.charge_of(key), self.expected_charge(key));
            }
        }
        for (key, queue) in self.queues.iter() {
            self.check_queue(key, queue, &held);
        }
        let of_consumers = |key| held.unacked_of_consumers.get(&key).copied();
        self.consumers.check_invariants(
            &self.channels,
            |key| of_consumers(key).unwrap_or(0),
            |key| self.settlements.has(key),
            |key| self.is_waited_for(key),
        );
        self.check_tallies();
        self.transactions.check_invariants();
        self.queues.check_delays();
        self.queues.all_retained().check();
        if !self.policies.is_applying() {
            self.check_policies();
        }
    }

    /// The counters of present queues are within those of their types, and publishers are the channels that published.
    fn check_tallies(&self) {
        let mut sums = [Deliveries::default(); 3];
        for (_, queue) in self.queues.iter() {
            let out = &queue.counters.tally().out;
            assert!(out.sent_to_ack <= out.sent);
            sums[queue.settings.kind as usize].add(out);
        }
        for (sum, OfKind(all)) in sums.iter().zip(&self.ledger.deliveries) {
            assert!(sum.sent <= all.sent && sum.sent_to_ack <= all.sent_to_ack);
            assert!(sum.got <= all.got && sum.acknowledged <= all.acknowledged);
            assert!(sum.redelivered <= all.redelivered);
        }
        let channels = self.channels.iter();
        let publishers = channels.filter(|(_, channel)| channel.published.get() > 0);
        assert_eq!(self.ledger.counts.publishers, publishers.count());
    }

    /// Every queue and exchange has the policies that apply to it, and the settings that follow from them.
    fn check_policies(&self) {
        let policies = self.policies();
        for (_, queue) in self.queues.visible() {
            let expected = policies.apply(PolicySubject::Queue(&queue.name, queue.settings.kind));
            let expected = (!expected.is_empty()).then_some(expected);
            assert_eq!(queue.applied.as_deref(), expected.as_ref());
            let arguments = queue.arguments.as_table();
            let expected = self
                .own_settings(&queue.name, queue.flags, arguments)
                .under(arguments, expected.as_ref());
            let mut settings = queue.settings.clone();
            // A queue whose next message is on the disk is over its bounds until that is read.
            let waits = queue.is_deep() || queue.is_postponed || queue.returning > 0;
            if !queue.overflows() || waits {
                settings.overflow = settings.overflow.settled();
            }
            assert_eq!(settings, expected);
        }
        for (key, exchange) in self.topology.exchanges() {
            let expected = policies.apply(PolicySubject::Exchange(&exchange.name));
            let expected = (!expected.is_empty()).then_some(expected);
            assert_eq!(exchange.applied.as_deref(), expected.as_ref());
            let alternate = expected.and_then(|e| e.settings().alternate_exchange.clone());
            assert_eq!(self.topology.alternate_of(key), alternate);
        }
    }

    /// Number of queues with a policy.
    pub(super) fn applied_count(&self) -> usize {
        let queues = self.queues.visible();
        queues.filter(|(_, queue)| queue.applied.is_some()).count()
    }

    fn held(&self) -> Held {
        let mut held = Held::default();
        for (content, entry) in self.queues.dead().contents() {
            held.content(content);
            entry.into_iter().for_each(|entry| held.entry(entry));
        }
        let histories = self.histories.contents();
        histories.for_each(|content| held.content(content));
        self.queues.remains().for_each(|entry| held.entry(entry));
        for (_, queue) in self.queues.iter() {
            queue.messages.iter().for_each(|entry| held.entry(entry));
        }
        for (key, queue) in self.queues.iter() {
            for entry in queue.role.letters().into_iter().flat_map(|l| l.iter()) {
                held.entry(entry);
                *held.unacked_of_queues.entry(key).or_default() += 1;
            }
        }
        for (key, entry) in self.queues.near() {
            held.entry(entry);
            *held.unacked_of_queues.entry(key).or_default() += 1;
        }
        let retained = self.queues.all_retained().entries();
        retained.for_each(|entry| held.entry(entry));
        for settling in self.settlements.iter() {
            for (_, delivery) in settling.deliveries() {
                held.delivery(delivery);
            }
            for queue in settling.returning() {
                *held.returning.entry(queue).or_default() += 1;
            }
        }
        for (key, channel) in self.channels.iter() {
            for (_, delivery) in self.deliveries(key, channel) {
                held.delivery(delivery);
            }
        }
        held
    }

    /// The unacknowledged deliveries of a channel, including those acknowledged in an open transaction.
    fn deliveries<'v>(
        &'v self,
        key: ChannelKey,
        channel: &'v Channel,
    ) -> impl Iterator<Item = (u64, &'v Delivery)> {
        let transaction = self.transactions.find(key).into_iter();
        let acknowledged = transaction.flat_map(|transaction| transaction.deliveries());
        channel.unacked.iter().chain(acknowledged)
    }

    fn check_channel(&self, key: ChannelKey, channel: &Channel) {
        let connection = self.channels.connection(channel.connection);
        let connection = connection.expect("a channel has a connection");
        assert!(connection.channels.contains(&key));
        if channel.is_closing {
            assert_eq!(channel.unacked.len(), 0);
            return;
        }
        let settling = self.settlements.get(key).into_iter();
        let settling = settling.flat_map(|settling| settling.deliveries());
        let deliveries = self.deliveries(key, channel).chain(settling);
        let counted = deliveries.filter(|(tag, d)| channel.counts(*tag, d.consumer));
        assert_eq!(channel.prefetched(), counted.count());
    }

    fn expected_charge(&self, key: ConnectionKey) -> isize {
        let channels = self.channels.iter().filter(|(_, c)| c.connection == key);
        let bytes = channels.map(|(key, channel)| {
            let tags = self.consumers.tags_of_channel(key);
            let consumers = tags.map(consumer_bytes).sum::<isize>();
            match channel.is_closing {
                true => consumers,
                false => consumers + CHANNEL_BYTES + channel.unacked.memory_bytes() as isize,
            }
        });
        bytes.sum()
    }

    fn check_queue(&self, key: QueueKey, queue: &Queue, held: &Held) {
        let unacked = held.unacked_of_queues.get(&key).copied();
        assert_eq!(queue.unacknowledged, unacked.unwrap_or(0));
        let returning = held.returning.get(&key).copied();
        assert_eq!(queue.returning, returning.unwrap_or(0));
        let postponed = self.queues.postponed().filter(|p| **p == key);
        assert_eq!(postponed.count(), usize::from(queue.is_postponed));
        let is_waiting = queue.returning > 0 || queue.is_postponed;
        let is_waiting_for_room = queue.unacknowledged > 0 || is_waiting || queue.is_deep();
        assert!(!queue.overflows() || is_waiting_for_room);

        let messages = &queue.messages;
        let order = |entry: &Entry| (Reverse(entry.level), entry.place);
        assert!(messages.iter().is_sorted_by(|a, b| order(a) < order(b)));
        // An earlier version's place tells no priority, once its message was on the disk alone.
        let is_early = |e: &Entry| e.level == 0 && e.place < LEVELED;
        let is_its_level =
            |e: &Entry| e.level == queue.level(e.content.properties()) || is_early(e);
        assert!(messages.iter().all(is_its_level));
        for entry in messages.depths().flat_map(|depths| depths.tail()) {
            assert!(!entry.is_redelivered || queue.is_marked(entry));
        }
        let bodies = messages.iter().map(|e| e.content.body().len() as u64);
        let on_disk = messages
            .depths()
            .map(|depths| depths.body_bytes())
            .sum::<u64>();
        assert_eq!(queue.body_bytes, bodies.sum::<u64>() + on_disk);
        if let Some(expires_at) = messages.front().and_then(|e| e.expires_at)
            && !queue.role.is_hidden()
        {
            assert!(is_waiting || queue.head_timer().is_some_and(|at| at <= expires_at));
        }
    }

    /// Whether a queue has messages that a consumer with room would be sent now.
    fn is_waited_for(&self, key: QueueKey) -> bool {
        let queue = self.queues.find(key).filter(|q| !q.is_postponed);
        queue.is_some() && self.queues.is_ready(key)
    }
}
