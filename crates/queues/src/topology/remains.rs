//! Bindings that deleted exchanges and queues leave behind, taken away in turns.
//!
//! An exchange may have a million bindings, and to take one out of all that knows it is some 3 µs. What is
//! deleted is therefore found by nobody from then on, and keeps its bindings for itself; a store forgets them
//! with the record of the deletion. They are still counted until they are gone, so that nobody can have more
//! than the bound by deleting.

use super::bindings::BindingKey;
use super::exchange::{BindingKeys, Exchange};
use super::{ExchangeKey, Topology};
use crate::Journal;

/// So many are taken away within the deletion, as if it were a single act: some 0.5 ms.
const BINDINGS_AT_ONCE: usize = 256;

/// The remains of one of them.
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
                // It goes with what the exchange matches by it.
                Some(key) => return Some(Next::Outgoing(*key)),
                None => &mut exchange.incoming,
            },
            Self::Queue(incoming) => incoming,
        };
        incoming.pop().map(Next::Incoming)
    }
}

impl Topology {
    /// Whether deletions have left something for [`Self::clear_one`].
    pub(crate) fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }

    /// Takes a binding away that something deleted has left, the last deleted first: what has few
    /// bindings is gone at once, whatever was deleted before. Whether there was something left.
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
            // The remains of its source take it away.
            Some(Next::Incoming(_)) => self.count_steps(1),
        }
        true
    }

    /// Whether a binding leads from an exchange that is there.
    fn has_source(&self, key: BindingKey) -> bool {
        let binding = self.bindings.get(key);
        binding.is_some_and(|binding| self.exchanges.find(binding.source).is_some())
    }

    /// Takes a binding away that led from the exchange that was deleted last.
    fn clear_outgoing(&mut self, key: BindingKey) {
        let binding = self.take_binding(key);
        if let Some(Remains::Exchange(exchange)) = self.remains.last_mut() {
            exchange.outgoing.pop();
            if let Some(binding) = binding {
                exchange.remove(key, &binding);
            }
        }
    }

    /// Takes as much away as few bindings are, of what was left since there was so much.
    pub(super) fn clear_few(&mut self, remains_before: usize, journal: &mut Journal) {
        let mut bindings = 0;
        while self.remains.len() > remains_before && bindings < BINDINGS_AT_ONCE {
            self.clear_one(journal);
            bindings += 1;
        }
    }

    /// Takes all bindings away that something deleted has left, without what follows from that: a
    /// store has a record of its own of each exchange that was auto-deleted.
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

    /// Keeps what an exchange leaves, whose key finds nothing any more.
    pub(super) fn leave_exchange(&mut self, exchange: Exchange) {
        self.steps_behind -= exchange.steps_behind();
        self.pattern_nodes -= exchange.node_count();
        self.remains.push(Remains::Exchange(Box::new(exchange)));
    }

    /// Keeps what a queue leaves, whose key finds nothing any more.
    pub(super) fn leave_queue(&mut self, incoming: BindingKeys) {
        if !incoming.is_empty() {
            self.remains.push(Remains::Queue(incoming));
        }
    }

    /// Whether all that a message was sent on to is deleted: it has found nothing then.
    pub(super) fn are_gone(&self, exchanges: &[ExchangeKey]) -> bool {
        exchanges
            .iter()
            .all(|key| self.exchanges.find(*key).is_none())
    }
}
