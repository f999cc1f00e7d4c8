//! Bindings of deleted exchanges and queues, which are removed in turns.
//!
//! An exchange may have a million bindings, and removing one from all tables takes about 3 µs. A deleted exchange or
//! queue therefore cannot be found from then on, and its bindings are set aside. A store forgets them with the record
//! of the deletion. They count until they are gone, so that no client can exceed the bound by deleting.

use super::bindings::BindingKey;
use super::exchange::{BindingKeys, Exchange};
use super::{ExchangeKey, Topology};
use crate::Journal;

/// Number of bindings removed within the deletion: about 0.5 ms.
const BINDINGS_AT_ONCE: usize = 256;

/// The remains of one exchange or queue.
#[derive(Debug)]
pub(super) enum Remains {
    Exchange(Box<Exchange>),
    /// The bindings that led to a queue.
    Queue(BindingKeys),
}

enum Next {
    Outgoing(BindingKey),
    Incoming(BindingKey),
}

impl Remains {
    fn next(&mut self) -> Option<Next> {
        let incoming = match self {
            Self::Exchange(exchange) => match exchange.outgoing.last() {
                // It is removed together with the exchange's index entry.
                Some(key) => return Some(Next::Outgoing(*key)),
                None => &mut exchange.incoming,
            },
            Self::Queue(incoming) => incoming,
        };
        incoming.pop().map(Next::Incoming)
    }
}

impl Topology {
    /// Whether deletions have left bindings for [`Self::clear_one`].
    pub(crate) fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }

    /// Removes a binding of the latest deletion: an entity with few bindings is gone at once, whatever was deleted
    /// before. Returns whether there was one.
    pub(crate) fn clear_one(&mut self, journal: &mut Journal) -> bool {
        let Some(remains) = self.remains.last_mut() else {
            return false;
        };
        match remains.next() {
            None => {
                self.remains.pop();
            }
            Some(Next::Outgoing(key)) => self.clear_outgoing(key),
            Some(Next::Incoming(key)) if self.has_source(key) => {
                if let Some(deserted) = self.remove_binding(key, journal) {
                    self.remove_exchange(deserted, journal);
                }
            }
            // The remains of its source include it.
            Some(Next::Incoming(_)) => self.count_steps(1),
        }
        true
    }

    /// Whether a binding's source exchange exists.
    fn has_source(&self, key: BindingKey) -> bool {
        let binding = self.bindings.get(key);
        binding.is_some_and(|binding| self.exchanges.find(binding.source).is_some())
    }

    /// Removes a binding whose source exchange was deleted last.
    fn clear_outgoing(&mut self, key: BindingKey) {
        let binding = self.take_binding(key);
        if let Some(Remains::Exchange(exchange)) = self.remains.last_mut() {
            exchange.outgoing.pop();
            if let Some(binding) = binding {
                exchange.remove(key, &binding);
            }
        }
    }

    /// Removes a small number of bindings, of those left since `remains_before`.
    pub(super) fn clear_few(&mut self, remains_before: usize, journal: &mut Journal) {
        let mut bindings = 0;
        while self.remains.len() > remains_before && bindings < BINDINGS_AT_ONCE {
            self.clear_one(journal);
            bindings += 1;
        }
    }

    /// Removes all remaining bindings, without further consequences: each auto-deleted exchange has a record of its own
    /// in the store.
    pub(super) fn clear_restored(&mut self) {
        while let Some(remains) = self.remains.last_mut() {
            match remains.next() {
                None => drop(self.remains.pop()),
                Some(Next::Outgoing(key)) => self.clear_outgoing(key),
                Some(Next::Incoming(key)) if self.has_source(key) => drop(self.take_binding(key)),
                Some(Next::Incoming(_)) => {}
            }
        }
    }

    /// Sets the bindings of a deleted exchange aside.
    pub(super) fn leave_exchange(&mut self, exchange: Exchange) {
        self.steps_behind -= exchange.steps_behind();
        self.pattern_nodes -= exchange.node_count();
        self.remains.push(Remains::Exchange(Box::new(exchange)));
    }

    /// Sets the bindings of a deleted queue aside.
    pub(super) fn leave_queue(&mut self, incoming: BindingKeys) {
        if !incoming.is_empty() {
            self.remains.push(Remains::Queue(incoming));
        }
    }

    /// Whether all exchanges that a message was forwarded to are deleted: then it has found nothing.
    pub(super) fn are_gone(&self, exchanges: &[ExchangeKey]) -> bool {
        exchanges
            .iter()
            .all(|key| self.exchanges.find(*key).is_none())
    }
}
