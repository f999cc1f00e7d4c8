//! Policies of exchanges: they choose alternate exchanges.

use std::sync::Arc;

use super::declare::ALTERNATE_EXCHANGE;
use super::{ExchangeKey, Topology};
use crate::policy::Applied;

impl Topology {
    /// The exchange at that place of the table.
    pub(crate) fn exchange_at(&self, place: usize) -> Option<ExchangeKey> {
        self.exchanges.part(place, 1).next().map(|(key, _)| key)
    }

    pub(crate) fn exchange_name(&self, key: ExchangeKey) -> Option<Arc<str>> {
        self.exchanges
            .find(key)
            .map(|exchange| exchange.name.clone())
    }

    /// Notes the policies that apply to an exchange. Their alternate exchange is used unless the exchange's arguments
    /// name another. It is not refused for its costs, as that of a client would be.
    pub(crate) fn set_policies(&mut self, key: ExchangeKey, applied: Option<Arc<Applied>>) {
        let Some(exchange) = self.exchanges.find_mut(key) else {
            return;
        };
        let is_own = exchange
            .arguments
            .as_table()
            .find(ALTERNATE_EXCHANGE)
            .is_some();
        let set = applied.as_ref();
        let set = set.and_then(|applied| applied.settings().alternate_exchange.clone());
        exchange.applied = applied;
        if is_own || exchange.alternate == set {
            return;
        }
        let before = std::mem::replace(&mut exchange.alternate, set.clone());
        if let Some(before) = before {
            self.remove_alternate(&before);
        }
        if let Some(alternate) = set {
            self.add_alternate(&alternate);
        }
        self.changes += 1;
    }

    #[cfg(test)]
    pub(crate) fn alternate_of(&self, key: ExchangeKey) -> Option<Arc<str>> {
        self.exchanges.find(key)?.alternate.clone()
    }
}
