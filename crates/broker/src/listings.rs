//! Listings of a vhost for operators, and operators' actions in it.

use std::sync::Arc;
use std::time::Instant;

use crosstie_queues::{self as queues, Counts, DeleteIf, Destination, Fault, Part, Vhost};
use parking_lot::MutexGuard;

use super::arguments;
use super::peer::Peer;
use super::policies;
use super::status::{Alarm, BindingStatus, ExchangeStatus, QueueStatus, VhostStatus};
use super::vhost::SharedVhost;

/// Maximum number of queues, exchanges or bindings listed under one lock, which takes about 0.1 ms.
pub(super) const PLACES_MAX: usize = 1000;

impl SharedVhost {
    /// Counts of the vhost, with sums over `queues`.
    pub fn counts(&self, queues: &[queues::QueueStatus]) -> Counts {
        let sum = |of: fn(&queues::QueueStatus) -> usize| queues.iter().map(of).sum();
        Counts {
            messages_ready: sum(|queue| queue.messages_ready),
            messages_unacknowledged: sum(|queue| queue.messages_unacknowledged),
            ..self.lock().totals()
        }
    }

    /// The alarm that dead letters are refused by their targets, if any are.
    pub(super) fn refused_letters(&self) -> Option<Alarm> {
        let refused = self.lock().refused_letters()?;
        Some(Alarm::DeadLettersRefused {
            vhost: self.name.to_string(),
            queue: refused.queue.to_string(),
            queues: refused.queues,
            letters: refused.letters,
        })
    }

    pub fn status(&self) -> VhostStatus {
        let counts = self.counts_walked();
        VhostStatus {
            name: self.name.to_string(),
            queues: counts.queues,
            exchanges: counts.exchanges,
            bindings: counts.bindings,
            connections: counts.connections,
            channels: counts.channels,
            consumers: counts.consumers,
            messages_ready: counts.messages_ready as u64,
            messages_unacked: counts.messages_unacknowledged as u64,
            memory_bytes: counts.memory_bytes,
        }
    }

    pub fn queues(&self) -> Vec<QueueStatus> {
        let queues = self.unsorted_queues().into_iter();
        let mut queues: Vec<_> = queues
            .map(|queue| QueueStatus {
                name: queue.name.to_string(),
                kind: queue.kind,
                durable: queue.durable,
                exclusive: queue.exclusive,
                auto_delete: queue.auto_delete,
                arguments: arguments::to_json(queue.arguments.as_table()),
                messages_ready: queue.messages_ready as u64,
                messages_unacked: queue.messages_unacknowledged as u64,
                dead_letters_kept: queue.dead_letters_kept as u64,
                consumers: queue.consumers,
                bytes: queue.message_bytes,
                policies: policies::shown(queue.applied.as_deref()),
            })
            .collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        queues
    }

    /// The queues, in the vhost's order.
    pub(crate) fn unsorted_queues(&self) -> Vec<queues::QueueStatus> {
        self.list(Vhost::queues_part)
    }

    pub fn exchanges(&self) -> Vec<ExchangeStatus> {
        let exchanges = self.list(Vhost::exchanges_part).into_iter();
        let mut exchanges: Vec<_> = exchanges
            .map(|exchange| ExchangeStatus {
                name: exchange.name.to_string(),
                kind: exchange.kind.to_string(),
                durable: exchange.durable,
                auto_delete: exchange.auto_delete,
                internal: exchange.internal,
                messages_delayed: exchange.messages_delayed as u64,
                arguments: arguments::to_json(exchange.arguments.as_table()),
                policies: policies::shown(exchange.applied.as_deref()),
            })
            .collect();
        exchanges.sort_by(|a, b| a.name.cmp(&b.name));
        exchanges
    }

    pub fn bindings(&self) -> Vec<BindingStatus> {
        let bindings = self.list(Vhost::bindings_part).into_iter();
        let mut bindings: Vec<_> = bindings
            .map(|binding| {
                let (destination, is_to_exchange) = match &binding.destination {
                    Destination::Exchange(name) => (name, true),
                    Destination::Queue(name) => (name, false),
                };
                BindingStatus {
                    source: binding.source.to_string(),
                    destination: destination.to_string(),
                    is_to_exchange,
                    routing_key: binding.routing_key.to_string(),
                    arguments: arguments::to_json(binding.arguments.as_table()),
                }
            })
            .collect();
        let key = |b: &BindingStatus| {
            let names = (b.source.clone(), b.destination.clone());
            (names, b.routing_key.clone())
        };
        bindings.sort_by_cached_key(key);
        bindings
    }

    /// Returns all parts of a listing. Connections take their turns between the parts, so that an entry that is added
    /// or removed meanwhile may be missing or listed twice.
    pub(super) fn list<T>(&self, part: fn(&Vhost<Arc<Peer>>, usize, usize) -> Part<T>) -> Vec<T> {
        self.list_wanted(part, |_| true)
    }

    /// The same, without the items that are not wanted.
    pub(super) fn list_wanted<T>(
        &self,
        part: fn(&Vhost<Arc<Peer>>, usize, usize) -> Part<T>,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Vec<T> {
        let mut all = Vec::new();
        let mut next = Some(0);
        while let Some(place) = next {
            let vhost = self.lock();
            let part = part(&vhost, place, PLACES_MAX);
            MutexGuard::unlock_fair(vhost);
            all.extend(part.items.into_iter().filter(&is_wanted));
            next = part.next;
        }
        all
    }

    /// Returns the number of purged messages; `None` if the queue does not exist. Needs a tokio context.
    pub(crate) fn purge_queue(self: &Arc<Self>, queue: &str) -> Option<u64> {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let purged = vhost.purge_queue(now, queue, outbox);
        turn.finish();
        Some(purged.ok()? as u64)
    }

    /// Deletes a queue. Returns the number of its ready messages.
    pub(crate) fn delete_queue(
        self: &Arc<Self>,
        queue: &str,
        condition: DeleteIf,
    ) -> Result<u64, queues::OperatorError> {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let deleted = vhost.delete_queue_if(now, queue, condition, outbox);
        turn.finish();
        deleted.map(|messages| messages as u64)
    }

    /// Deletes an exchange with its bindings. Needs a tokio context.
    pub(crate) fn delete_exchange(self: &Arc<Self>, exchange: &str) -> Result<(), Fault> {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, _) = turn.enter();
        let deleted = vhost.delete_exchange(now, exchange);
        turn.finish();
        deleted
    }
}
