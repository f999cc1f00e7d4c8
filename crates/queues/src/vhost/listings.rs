//! Listings in parts: other inputs have their turns while a hundred thousand queues are listed.

use std::sync::Arc;

use super::Vhost;
use crate::queues::Queue;
use crate::status::{BindingStatus, Counts, ExchangeStatus, Part, QueueStatus, RefusedLetters};
use crate::topology::ExchangeKey;
use crate::{Deliveries, QueueKey};

impl<H> Vhost<H> {
    /// The queues at that many places, from `place` on; 0 is the first. Queues that are created or deleted between two
    /// parts may be missing, or listed twice.
    pub fn queues_part(&self, place: usize, places_max: usize) -> Part<QueueStatus> {
        let part = self.queues.part(place, places_max);
        Part {
            items: part
                .map(|(key, queue)| self.queue_status(key, queue))
                .collect(),
            next: next(place, places_max, self.queues.places()),
        }
    }

    /// The messages of these queues alone, ready and unacknowledged, added up: one item.
    pub fn messages_part(&self, place: usize, places_max: usize) -> Part<[usize; 2]> {
        let part = self.queues.part(place, places_max);
        let sum = part.fold([0; 2], |[ready, unacknowledged], (key, queue)| {
            let more = [self.ready_count(key), self.unacknowledged(key, queue)];
            [ready + more[0], unacknowledged + more[1]]
        });
        Part {
            items: vec![sum],
            next: next(place, places_max, self.queues.places()),
        }
    }

    /// The same for exchanges.
    pub fn exchanges_part(&self, place: usize, places_max: usize) -> Part<ExchangeStatus> {
        let places = self.topology.exchange_places();
        Part {
            items: self
                .topology
                .exchanges_part(place, places_max)
                .map(|(key, exchange)| self.exchange_status(key, exchange))
                .collect(),
            next: next(place, places_max, places),
        }
    }

    /// The same for exchanges with messages that reached no queue: names, and the number of these messages.
    pub fn unroutable_part(&self, place: usize, places_max: usize) -> Part<(Arc<str>, u64)> {
        let places = self.topology.exchange_places();
        Part {
            items: self.topology.unroutable_part(place, places_max).collect(),
            next: next(place, places_max, places),
        }
    }

    pub(super) fn exchange_status(
        &self,
        key: ExchangeKey,
        exchange: ExchangeStatus,
    ) -> ExchangeStatus {
        ExchangeStatus {
            messages_delayed: self.queues.delayed_by(key),
            ..exchange
        }
    }

    /// The same for bindings, without the default exchange's implicit ones.
    pub fn bindings_part(&self, place: usize, places_max: usize) -> Part<BindingStatus> {
        let places = self.topology.binding_places();
        Part {
            items: self.topology.bindings_part(place, places_max).collect(),
            next: next(place, places_max, places),
        }
    }

    /// [`Self::counts`] without the messages of queues, for which all of them have to be walked.
    pub fn totals(&self) -> Counts {
        let counts = &self.ledger.counts;
        let mut out = Deliveries::default();
        let deliveries = self.ledger.deliveries.each_ref().map(|kind| kind.0);
        deliveries.iter().for_each(|kind| out.add(kind));
        Counts {
            connections: self.channels.connection_count(),
            channels: self.channels.len(),
            consumers: self.consumers.len(),
            queues: self.topology.queue_count(),
            exchanges: self.topology.exchange_count(),
            bindings: self.topology.binding_count(),
            messages_ready: 0,
            messages_unacknowledged: 0,
            memory_bytes: self.ledger.memory_bytes(),
            uncommitted_bytes: self.transactions.bytes(),
            definition_bytes: self.topology.definition_bytes(),
            pattern_nodes: self.topology.pattern_nodes(),
            history_messages: self.histories.messages(),
            history_bytes: self.histories.bytes(),
            messages_delayed: self.queues.delayed(),
            dead_letters_waiting: self.queues.dead().len(),
            dead_letters_kept: self.queues.letters(),
            published_to_confirm: self.confirms.promised,
            recorded: self.ledger.journal.position.0,
            stored: self.ledger.committed.0,
            // Direct replies are in no queue.
            delivered: counts.delivered + out.all(),
            acknowledged: out.acknowledged,
            deliveries,
            ..*counts
        }
    }

    /// The dead letters that targets have refused, if there are any.
    pub fn refused_letters(&self) -> Option<RefusedLetters> {
        let refused = self.queues.refused();
        Some(RefusedLetters {
            queue: self.queues.source_of_letters(*refused.first()?)?,
            queues: refused.len(),
            letters: self.queues.letters(),
        })
    }

    /// The messages of a queue without an acknowledgement. A reader's of a stream removes nothing.
    fn unacknowledged(&self, key: QueueKey, queue: &Queue) -> usize {
        match self.streams.find(key) {
            Some(_) => 0,
            None => queue.unacknowledged,
        }
    }

    pub(super) fn queue_status(&self, key: QueueKey, queue: &Queue) -> QueueStatus {
        let stream = self.streams.find(key);
        let on_disk: usize = queue.messages.depths().map(|depths| depths.len()).sum();
        QueueStatus {
            name: queue.name.clone(),
            kind: queue.settings.kind.name(),
            durable: queue.flags.durable,
            exclusive: queue.flags.exclusive,
            auto_delete: queue.flags.auto_delete,
            arguments: queue.arguments.clone(),
            messages_ready: self.ready_count(key),
            messages_unacknowledged: self.unacknowledged(key, queue),
            messages_in_memory: queue.messages.len().saturating_sub(on_disk),
            message_bytes: stream.map_or(queue.body_bytes, |stream| stream.bytes) as usize,
            dead_letters_kept: queue.role.kept().map_or(0, |kept| kept.letters),
            consumers: self.consumers.count_of_queue(key),
            applied: queue.applied.clone(),
            tally: queue.counters.tally(),
        }
    }
}

/// The place at which the next part begins.
pub(super) fn next(place: usize, places_max: usize, places: usize) -> Option<usize> {
    let next = place.saturating_add(places_max);
    (next < places).then_some(next)
}
