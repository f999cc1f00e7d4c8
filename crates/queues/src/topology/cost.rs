//! The cost of patterns for messages, and of changes to the topology.
//!
//! A client's bindings decide how much work a message is, but its publisher and all other clients pay for it. So it is
//! bounded at the source: an exchange knows the cost of its worst message, and a binding that would raise that above
//! the bound is refused.

use std::sync::Arc;

use super::exchange::Exchange;
use super::{Caller, ExchangeKey, Resource, Topology};
use crate::Fault;

/// The work of adding or removing a binding, in steps.
pub(super) const BINDING_STEPS: u64 = 8;

/// The costs before a change.
pub(super) struct Before {
    steps: u64,
    steps_behind: u64,
    pattern_nodes: usize,
}

impl Topology {
    /// Takes the steps since the last call: a step is a node of a pattern, an exchange passed, or a few targets found.
    pub(crate) fn take_steps(&mut self) -> u32 {
        std::mem::take(&mut self.steps)
    }

    pub(super) fn count_steps(&mut self, steps: u64) {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps = self.steps.saturating_add(steps);
    }

    pub(crate) fn pattern_nodes(&self) -> usize {
        self.pattern_nodes
    }

    /// Changes an exchange, and updates the sums over all of them.
    pub(super) fn change_exchange(
        &mut self,
        key: ExchangeKey,
        change: impl FnOnce(&mut Exchange),
    ) -> Option<&Exchange> {
        let exchange = self.exchanges.find_mut(key)?;
        self.steps_behind -= exchange.steps_behind();
        self.pattern_nodes -= exchange.node_count();
        change(exchange);
        self.steps_behind += exchange.steps_behind();
        self.pattern_nodes += exchange.node_count();
        Some(exchange)
    }

    /// The costs before a binding from that exchange is added.
    pub(super) fn before(&self, source: ExchangeKey) -> Before {
        Before {
            steps: self.exchanges.find(source).map_or(0, Exchange::steps),
            steps_behind: self.steps_behind,
            pattern_nodes: self.pattern_nodes,
        }
    }

    /// Checks that a new binding keeps the costs within the bounds; `what` names the action.
    pub(super) fn check_cost(
        &self,
        caller: &Caller<'_>,
        source: ExchangeKey,
        before: &Before,
        what: impl FnOnce() -> String,
    ) -> Result<(), Fault> {
        let vhost = &self.vhost;
        let Some(exchange) = self.exchanges.find(source) else {
            return Ok(());
        };
        let is_more = |now: u64, before: u64, max: u64| now > before && now > max;
        let limit = if is_more(exchange.steps(), before.steps, self.steps_max) {
            format!(
                "limit of the steps that a message may take in {} (exchange_steps_max, {})",
                Resource::exchange(&exchange.name, vhost),
                self.steps_max
            )
        } else if is_more(self.steps_behind, before.steps_behind, self.steps_max) {
            format!(
                "limit of the steps that a message may take in all exchanges that others lead to \
                 in vhost '{vhost}' (exchange_steps_max, {})",
                self.steps_max
            )
        } else if self.pattern_nodes > before.pattern_nodes.max(self.pattern_nodes_max) {
            format!(
                "limit of words and fields of patterns in vhost '{vhost}' (pattern_nodes_max, {})",
                self.pattern_nodes_max
            )
        } else {
            return Ok(());
        };
        let what = what();
        Err(caller.precondition_failed(format!("cannot {what}: {limit} is reached")))
    }

    /// Checks that an exchange may name this one as its alternate.
    pub(super) fn check_alternate(
        &self,
        caller: &Caller<'_>,
        resource: Resource<'_>,
        alternate: &str,
    ) -> Result<(), Fault> {
        let alternate = self.exchange_keys.get(alternate);
        let alternate = alternate.and_then(|key| self.exchanges.find(*key));
        let more = alternate.map_or(0, |exchange| {
            exchange.steps_if_behind() - exchange.steps_behind()
        });
        if more == 0 || self.steps_behind + more <= self.steps_max {
            return Ok(());
        }
        Err(caller.precondition_failed(format!(
            "cannot declare {resource}: limit of the steps that a message may take in all \
             exchanges that others lead to in vhost '{}' (exchange_steps_max, {}) is reached",
            self.vhost, self.steps_max
        )))
    }

    /// Counts an exchange that names this one as its alternate.
    pub(super) fn add_alternate(&mut self, name: &Arc<str>) {
        *self.alternates.entry(name.clone()).or_insert(0) += 1;
        if let Some(key) = self.exchange_keys.get(name) {
            self.change_exchange(*key, |exchange| exchange.alternate_of += 1);
        }
    }

    /// Uncounts it.
    pub(super) fn remove_alternate(&mut self, name: &Arc<str>) {
        if let Some(times) = self.alternates.get_mut(name) {
            *times -= 1;
            if *times == 0 {
                self.alternates.remove(name);
            }
        }
        if let Some(key) = self.exchange_keys.get(name) {
            self.change_exchange(*key, |exchange| exchange.alternate_of -= 1);
        }
    }
}
