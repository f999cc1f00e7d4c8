//! Restores the state that a store has kept.

use std::sync::Arc;

use crosstie_amqp::TableBuf;

use super::Vhost;
use crate::ledger::Ledger;
use crate::queues::{Queue, is_hidden_name};
use crate::topology::{QueueFlags, QueueKind};
use crate::{Journal, Outbox, QueueId, Record, Time};

impl<H> Vhost<H> {
    /// Restores a record from a store, in order, before any client connects. Accepts any journal whose records were all
    /// committed, and the store's condensed form of it.
    pub fn restore(&mut self, now: Time, record: Record) {
        match record {
            Record::QueueDeclared {
                id,
                name,
                auto_delete,
                arguments,
            } => {
                self.queues.restore_id(id);
                if is_hidden_name(&name) {
                    self.queues
                        .restore_hidden(now, id, name, arguments.as_table());
                } else if self.topology.queue(&name).is_none() {
                    self.restore_queue(now, id, name, auto_delete, &arguments);
                }
            }
            Record::QueueDeleted { id } => {
                if let Some(key) = self.queues.restore_deleted(id, &mut self.ledger) {
                    self.streams.remove(key, &mut Ledger::default());
                    // The store has forgotten the bindings already.
                    let journal = &mut Journal::default();
                    self.topology.remove_queue(key, journal);
                    while self.topology.clear_one(journal) {}
                }
            }
            Record::Enqueued { .. }
            | Record::Dequeued { .. }
            | Record::Delivered { .. }
            | Record::Purged { .. }
            | Record::Cleared { .. }
            | Record::Kept(_)
            | Record::Rested { .. } => self.queues.restore(record, &mut self.ledger),
            Record::ExchangeDeclared { .. }
            | Record::ExchangeDeleted { .. }
            | Record::Bound { .. }
            | Record::Unbound { .. } => self.topology.restore(&record),
            // Of the broker, which has opened the vhost.
            Record::Setting { .. } | Record::VhostCreated | Record::VhostDeleted => {}
        }
    }

    fn restore_queue(
        &mut self,
        now: Time,
        id: QueueId,
        name: Arc<str>,
        auto_delete: bool,
        arguments: &TableBuf,
    ) {
        let flags = QueueFlags {
            durable: true,
            exclusive: false,
            auto_delete,
        };
        let arguments = arguments.as_table();
        let own = self.own_settings(&name, flags, arguments);
        let (settings, applied) = self.govern(&name, own, arguments);
        let stream_limits = (settings.kind == QueueKind::Stream).then(|| settings.stream_limits());
        let mut queue = Queue::new(
            now,
            name.clone(),
            Some(id),
            (flags, settings),
            arguments,
            None,
        );
        queue.applied = applied;
        let key = self.queues.restore_queue(id, queue);
        if let Some(limits) = stream_limits {
            self.streams.add(key, (id, &name), limits);
        }
        self.topology
            .add_queue(name, key, true, arguments.bytes().len());
    }

    /// Ends the restore: drops messages that are beyond their queue's bounds or have expired in the meantime, and sets
    /// timers. The journal may have records after this, as after any input.
    pub fn restored(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        // Without a bound: no client is connected yet that could be kept waiting.
        self.ledger.steps.begin(u32::MAX);
        self.apply_to_restored_exchanges();
        let (ledger, confirms) = (&mut self.ledger, &mut self.confirms);
        let restored = self.queues.end_restoring(ledger, confirms);
        for (key, exchange) in self.queues.restored_buckets() {
            let exchange = self.topology.delayed_exchange(&exchange);
            self.queues.adopt_bucket(key, exchange, &mut self.ledger);
        }
        for key in restored {
            self.touch(now, key);
            self.attend(now, key, out);
        }
        self.bury(now, out);
    }
}
