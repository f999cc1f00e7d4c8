//! The contents of a vhost in the detail of RabbitMQ's management API: in parts, or one object by its name.

use std::sync::Arc;

use super::Vhost;
use super::listings::next;
use crate::consumers::Consumer;
use crate::status::{ConsumerStatus, ExchangeStatus, Part, QueueView};
use crate::{ConnectionKey, QueueKey};

impl<H> Vhost<H> {
    /// The names of the queues at that many places, from `place` on; 0 is the first.
    pub fn queue_names_part(&self, place: usize, places_max: usize) -> Part<Arc<str>> {
        let part = self.queues.part(place, places_max);
        Part {
            items: part.map(|(_, queue)| queue.name.clone()).collect(),
            next: next(place, places_max, self.queues.places()),
        }
    }

    /// The queue of that name.
    pub fn queue_view(&self, name: &str) -> Option<QueueView> {
        let key = self.topology.queue(name)?;
        let queue = self.queues.find(key)?;
        let [exclusive_consumer, active_consumer] = self.consumers.chosen(key);
        Some(QueueView {
            status: self.queue_status(key, queue),
            exclusive_consumer,
            active_consumer,
            owner: queue.owner,
        })
    }

    /// The exchange of that name; an empty name is the default exchange.
    pub fn exchange_view(&self, name: &str) -> Option<ExchangeStatus> {
        let key = self.topology.exchange(name)?;
        let exchange = self.topology.exchange_status(key)?;
        Some(self.exchange_status(key, exchange))
    }

    /// The consumers at that many places, from `place` on; 0 is the first.
    pub fn consumers_part(&self, place: usize, places_max: usize) -> Part<ConsumerStatus> {
        let part = self.consumers.part(place, places_max);
        Part {
            items: part
                .filter_map(|consumer| self.consumer_status(consumer))
                .collect(),
            next: next(place, places_max, self.consumers.places()),
        }
    }

    /// The consumers of the queue of that name, at most `max` of them.
    pub fn consumers_of_queue(&self, name: &str, max: usize) -> Vec<ConsumerStatus> {
        let key = self.topology.queue(name);
        let consumers = key
            .into_iter()
            .flat_map(|key: QueueKey| self.consumers.of_queue(key));
        let statuses = consumers.filter_map(|consumer| self.consumer_status(consumer));
        statuses.take(max).collect()
    }

    /// The owner's name of a connection.
    pub fn handle_of(&self, connection: ConnectionKey) -> Option<&H> {
        let connection = self.channels.connection(connection)?;
        Some(&connection.handle)
    }

    pub(super) fn consumer_status(&self, consumer: &Consumer) -> Option<ConsumerStatus> {
        let queue = self.queues.find(consumer.queue)?;
        let (channel, connection) = self.channels.both(consumer.channel)?;
        Some(ConsumerStatus {
            connection: channel.connection,
            queue: queue.name.clone(),
            consumer_tag: consumer.tag.clone(),
            user: connection.client.user.clone(),
            channel: channel.number,
            no_ack: consumer.no_ack,
            exclusive: consumer.is_exclusive,
            prefetch_count: consumer.prefetch_count,
            priority: consumer.priority,
            messages_unacknowledged: consumer.unacked,
            active: consumer.is_active(),
        })
    }
}
