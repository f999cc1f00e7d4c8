//! Listings, a part at a time: others have their turns while a hundred thousand queues are listed.

use super::Vhost;
use crate::queue::Queue;
use crate::status::{BindingStatus, Counts, ExchangeStatus, Part, QueueStatus};

impl<H> Vhost<H> {
    /// The queues at so many places, from `place` on; 0 is the first. What comes and goes between two
    /// parts may be missing, or there twice.
    pub fn queues_part(&self, place: usize, places_max: usize) -> Part<QueueStatus> {
        let part = self.queues.part(place, places_max);
        Part {
            items: part.map(|(_, queue)| queue.status()).collect(),
            next: next(place, places_max, self.queues.places()),
        }
    }

    /// The same of exchanges.
    pub fn exchanges_part(&self, place: usize, places_max: usize) -> Part<ExchangeStatus> {
        let places = self.topology.exchange_places();
        Part {
            items: self.topology.exchanges_part(place, places_max).collect(),
            next: next(place, places_max, places),
        }
    }

    /// The same of bindings, without those that the default exchange has by nature.
    pub fn bindings_part(&self, place: usize, places_max: usize) -> Part<BindingStatus> {
        let places = self.topology.binding_places();
        Part {
            items: self.topology.bindings_part(place, places_max).collect(),
            next: next(place, places_max, places),
        }
    }

    /// [`Self::counts`] but for the messages of queues, for which all of them have to be looked at.
    pub fn totals(&self) -> Counts {
        Counts {
            connections: self.connections.len(),
            channels: self.channels.len(),
            consumers: self.consumers.len(),
            queues: self.topology.queue_count(),
            exchanges: self.topology.exchange_count(),
            bindings: self.topology.binding_count(),
            messages_ready: 0,
            messages_unacknowledged: 0,
            memory_bytes: self.memory_bytes,
            uncommitted_bytes: self.uncommitted_bytes,
            definition_bytes: self.topology.definition_bytes(),
            pattern_nodes: self.topology.pattern_nodes(),
            dead_letters_waiting: self.dead.len(),
            ..self.counts
        }
    }
}

impl Queue {
    pub(super) fn status(&self) -> QueueStatus {
        QueueStatus {
            name: self.name.clone(),
            kind: self.settings.kind.name(),
            durable: self.flags.durable,
            exclusive: self.flags.exclusive,
            auto_delete: self.flags.auto_delete,
            arguments: self.arguments.clone(),
            messages_ready: self.messages.len(),
            messages_unacknowledged: self.unacknowledged,
            message_bytes: self.body_bytes as usize,
            consumers: self.consumers.len(),
        }
    }
}

/// Where the next part begins.
fn next(place: usize, places_max: usize, places: usize) -> Option<usize> {
    let next = place.saturating_add(places_max);
    (next < places).then_some(next)
}
