//! Queues that clients do not see: they are added, and restored.

use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf, Value};

use super::role::{Bucket, Role, is_hidden_name, is_retained_name, place_of, source_of};
use super::{Queue, Queues};
use crate::ledger::Ledger;
use crate::topology::{QueueArguments, QueueFlags, QueueKind};
use crate::{QueueId, QueueKey, Record, Time};

/// The argument with the name of a bucket's exchange.
const EXCHANGE: &str = "x-exchange";

/// The arguments of a bucket of that exchange.
pub(super) fn bucket_arguments(exchange: &str) -> TableBuf {
    arguments().with(EXCHANGE, Value::LongString(exchange.as_bytes()))
}

/// The exchange of a bucket with these arguments.
pub(super) fn exchange_of(arguments: &TableBuf) -> Arc<str> {
    let name = arguments.as_table().find(EXCHANGE);
    name.and_then(|name| name.as_str())
        .unwrap_or_default()
        .into()
}

pub(super) fn arguments() -> TableBuf {
    TableBuf::new().with("x-queue-type", Value::LongString(b"quorum"))
}

impl Queues {
    /// Adds a hidden queue.
    pub(super) fn add_hidden(
        &mut self,
        now: Time,
        (name, arguments): (Arc<str>, TableBuf),
        is_durable: bool,
        role: Role,
        ledger: &mut Ledger,
    ) -> QueueKey {
        let id = is_durable.then(|| self.take_id());
        let queue = hidden(now, (name, arguments.as_table()), id, role);
        if let Some(id) = id {
            ledger.record(Record::queue_declared(
                id,
                queue.name.clone(),
                queue.arguments.clone(),
            ));
        }
        self.hidden += 1;
        self.queues.insert(queue)
    }

    /// Restores a hidden queue. [`Self::end_restoring`] gives it to its queue, and [`Self::adopt_bucket`] to its exchange.
    pub(crate) fn restore_hidden(
        &mut self,
        now: Time,
        id: QueueId,
        name: Arc<str>,
        arguments: Table<'_>,
    ) {
        if self.restoring.contains_key(&id) {
            return;
        }
        let role = match place_of(&name) {
            Some(place) => Role::Bucket(Bucket {
                exchange: None,
                place,
            }),
            None if is_retained_name(&name) => Role::Retained,
            None => Role::Restored,
        };
        self.hidden += 1;
        let is_retained = matches!(role, Role::Retained);
        let key = self.restore_queue(id, hidden(now, (name, arguments), Some(id), role));
        if is_retained {
            self.adopt_retained(key);
        }
    }

    /// Gives restored hidden queues to their owners, and removes those whose owner is gone.
    pub(super) fn adopt(&mut self, ledger: &mut Ledger) {
        let restored = self.restoring.values().copied();
        let is_restored = |key: &QueueKey| {
            let queue = self.queues.find(*key);
            queue.is_some_and(|queue| matches!(queue.role, Role::Restored))
        };
        let restored: Vec<QueueKey> = restored.filter(is_restored).collect();
        for key in restored {
            let name = self.queues.find(key).map(|queue| queue.name.clone());
            let source = name.and_then(|name| source_of(&name));
            let source = source.and_then(|id| self.restoring.get(&id).copied());
            if !source.is_some_and(|source| self.adopt_letters(key, source)) {
                self.remove(key, ledger);
            }
        }
    }

    /// Whether a hidden queue has that name.
    pub(crate) fn has_hidden(&self, name: &str) -> bool {
        is_hidden_name(name) && self.queues.iter().any(|(_, queue)| *queue.name == *name)
    }
}

fn hidden(
    now: Time,
    (name, arguments): (Arc<str>, Table<'_>),
    id: Option<QueueId>,
    role: Role,
) -> Queue {
    let flags = QueueFlags {
        durable: id.is_some(),
        exclusive: false,
        auto_delete: false,
    };
    // It records every message, whatever its delivery mode.
    let settings = QueueArguments {
        kind: QueueKind::Quorum,
        ..QueueArguments::default()
    };
    let mut queue = Queue::new(now, name, id, (flags, settings), arguments, None);
    queue.role = role;
    queue
}
