//! What is true of a vhost between any two inputs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::Vhost;
use super::charges::CHANNEL_BYTES;
use super::consume::consumer_bytes;
use crate::MessageContent;
use crate::channel::{Consumer, Turn};
use crate::keys::{ConsumerKey, GroupKey};
use crate::queue::{Entry, Queue};

impl<H> Vhost<H> {
    /// Panics where something is not as it must be.
    pub(super) fn check_invariants(&self) {
        let mut contents: HashMap<*const MessageContent, usize> = HashMap::new();
        let mut memory_bytes = 0;
        let mut hold_content = |content: &Arc<MessageContent>| {
            if contents.insert(Arc::as_ptr(content), 0).is_none() {
                memory_bytes += content.memory_bytes();
            }
        };
        let mut entries = 0;
        for dead in &self.dead {
            hold_content(dead.content());
            entries += usize::from(dead.is_in_memory());
        }
        let mut hold = |entry: &Entry| {
            hold_content(&entry.content);
            entries += 1;
        };
        let remains = self.backlog.remains.iter();
        remains
            .flat_map(|remains| remains.messages.iter())
            .for_each(&mut hold);
        let mut unacked_of_queue = HashMap::new();
        let mut unacked_of_consumer = HashMap::new();
        let mut returning = HashMap::new();
        for settling in self.backlog.settling.values() {
            for (_, delivery) in settling.deliveries() {
                hold(&delivery.entry);
                if self.queues.find(delivery.queue).is_some() {
                    *unacked_of_queue.entry(delivery.queue).or_insert(0) += 1;
                }
                if let Some(consumer) = delivery.consumer {
                    *unacked_of_consumer.entry(consumer).or_insert(0) += 1;
                }
            }
            for queue in settling.returning() {
                *returning.entry(queue).or_insert(0) += 1;
            }
        }
        let mut charges = HashMap::new();
        let (mut uncommitted_bytes, mut committing) = (0, 0);
        for (key, channel) in self.channels.iter() {
            let mut prefetched = 0;
            let transaction = channel.transaction.as_deref();
            let held = transaction.into_iter().flat_map(|tx| tx.deliveries());
            uncommitted_bytes += transaction.map_or(0, |tx| tx.publication_bytes());
            committing += usize::from(transaction.is_some_and(|tx| tx.is_committing));
            for (tag, delivery) in channel.unacked.iter().chain(held) {
                hold(&delivery.entry);
                *unacked_of_queue.entry(delivery.queue).or_insert(0) += 1;
                prefetched += usize::from(channel.counts(tag, delivery.consumer));
                if let Some(consumer) = delivery.consumer {
                    *unacked_of_consumer.entry(consumer).or_insert(0) += 1;
                }
            }
            if channel.is_closing {
                assert_eq!(channel.unacked.len(), 0);
            } else if let Some(settling) = self.backlog.settling.get(&key) {
                prefetched += settling
                    .deliveries()
                    .filter(|(tag, d)| channel.counts(*tag, d.consumer))
                    .count();
                assert_eq!(channel.prefetched, prefetched);
            } else {
                assert_eq!(channel.prefetched, prefetched);
            }
            let connection = self.connections.find(channel.connection);
            let connection = connection.expect("a channel has a connection");
            let (charge, consumers) = charges.entry(channel.connection).or_insert((0, 0));
            *consumers += channel.consumers.len();
            if !channel.is_closing {
                *charge += CHANNEL_BYTES + channel.unacked.memory_bytes() as isize;
            }
            for tag in channel.consumers.keys() {
                *charge += consumer_bytes(tag);
            }
            assert!(connection.channels.contains(&key));
            assert!(
                channel
                    .waiting
                    .values()
                    .all(|group| channel.groups.values().any(|g| g == group))
            );
            for (tag, consumer) in &channel.consumers {
                let consumer = self.consumers.find(*consumer).expect("is there");
                assert_eq!((&consumer.tag, consumer.channel), (tag, key));
            }
        }
        for (key, queue) in self.queues.iter() {
            let unacked = unacked_of_queue.remove(&key).unwrap_or(0);
            assert_eq!(queue.unacknowledged, unacked, "of {}", queue.name);
            let order = |entry: &Entry| (Reverse(entry.level), entry.place);
            let messages = &queue.messages;
            assert!(messages.iter().is_sorted_by(|a, b| order(a) < order(b)));
            let is_its_level = |e: &Entry| e.level == queue.level(e.content.properties());
            assert!(messages.iter().all(is_its_level));
            let is_waiting = queue.returning > 0 || queue.is_postponed;
            let returning = returning.remove(&key).unwrap_or(0);
            assert_eq!(queue.returning, returning);
            let postponed = self.backlog.postponed.iter().filter(|p| **p == key);
            assert_eq!(postponed.count(), usize::from(queue.is_postponed));
            assert!(!queue.overflows() || queue.unacknowledged > 0 || is_waiting);
            let bodies = queue.messages.iter().map(|e| e.content.body().len() as u64);
            assert_eq!(queue.body_bytes, bodies.sum::<u64>());
            queue.messages.iter().for_each(&mut hold);
            if let Some(expires_at) = queue.messages.front().and_then(|e| e.expires_at) {
                assert!(is_waiting || queue.head_timer.is_some_and(|at| at <= expires_at));
            }
            let mut consumers = HashMap::new();
            for (seat, key) in queue.consumers.iter() {
                let consumer = self.consumers.find(key).expect("is there");
                assert_eq!(
                    (consumer.seat, consumer.rank.priority),
                    (seat, seat.priority)
                );
                let unacked = unacked_of_consumer.remove(&key).unwrap_or(0);
                assert_eq!(consumer.unacked, unacked);
                match consumer.turn {
                    Turn::InLine => {}
                    // Nobody is forgotten.
                    Turn::Blocked => assert!(consumer.is_at_limit()),
                    Turn::Inactive => assert_ne!(queue.active_consumer, Some(key)),
                }
                let of_group = consumers.entry(consumer.group).or_insert_with(Vec::new);
                of_group.push((key, consumer));
            }
            self.check_groups(queue, &consumers);
        }
        assert!(self.unblocked.is_empty());
        assert_eq!(
            self.memory_bytes,
            memory_bytes + entries * Entry::MEMORY_BYTES
        );
        for (key, connection) in self.connections.iter() {
            let (charge, consumers) = charges.remove(&key).unwrap_or_default();
            assert_eq!(connection.consumers, consumers);
            if !connection.is_closing {
                assert_eq!(connection.charge.told + connection.charge.untold, charge);
            }
        }
        assert_eq!(self.committing, committing);
        assert_eq!(self.uncommitted_bytes, uncommitted_bytes);
        let of_connections = self.connections.iter().map(|(_, c)| c.uncommitted_bytes);
        assert_eq!(uncommitted_bytes, of_connections.sum::<usize>());
    }

    fn check_groups(
        &self,
        queue: &Queue,
        consumers: &HashMap<GroupKey, Vec<(ConsumerKey, &Consumer)>>,
    ) {
        let mut line = Vec::new();
        for (key, consumers) in consumers {
            let group = self.groups.find(*key).expect("is there");
            assert_eq!(group.consumers, consumers.len());
            let channel = self.channels.find(group.channel).expect("is there");
            assert_eq!(channel.groups.get(&group.queue), Some(key));
            let in_line = consumers.iter().filter(|(_, c)| c.turn == Turn::InLine);
            let mut expected: Vec<_> = in_line.map(|(key, c)| (c.rank, *key)).collect();
            let mut found: Vec<_> = group.line.iter().collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected);
            let connection = self.connections.find(channel.connection).expect("is there");
            let is_stopped = connection.is_full || channel.is_at_limit();
            let is_resuming = connection.is_resuming;
            match group.waiting {
                Some(number) => {
                    assert_eq!(channel.waiting.get(&number), Some(key));
                    // Nobody is forgotten.
                    let is_settling = self.backlog.settling.contains_key(&group.channel);
                    assert!(is_stopped || is_resuming || is_settling);
                    assert_eq!(group.rank, None);
                }
                None => assert_eq!(group.rank, found.first().map(|(rank, _)| *rank)),
            }
            line.extend(group.rank.map(|rank| (rank, *key)));
            let can_take = !is_stopped
                && found.iter().any(|(_, consumer)| {
                    let consumer = self.consumers.find(*consumer).expect("is there");
                    !consumer.is_at_limit()
                });
            let is_waiting = queue.returning > 0 || queue.is_postponed || group.waiting.is_some();
            assert!(
                queue.messages.is_empty() || !can_take || is_waiting,
                "{queue:?}"
            );
        }
        let mut found: Vec<_> = queue.line.iter().collect();
        line.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, line);
    }
}
