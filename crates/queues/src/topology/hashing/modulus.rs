//! `x-modulus-hash`: the hash of a message's routing keys modulo the number of bindings is the place of its binding, in
//! the order of their keys and destinations.

use std::sync::Arc;

use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

use super::super::bindings::BindingKey;
use super::super::destinations::Target;
use super::super::routed::Copies;
use super::shares::Shares;
use super::{erlang, steps};
use crate::Destination;

#[derive(Debug)]
pub(crate) struct ModulusHash {
    bindings: Shares<Order, Target>,
    orders: GrowingMap<BindingKey, Order, FxBuildHasher>,
}

/// The order of RabbitMQ's bindings; the last part tells those apart that differ in their arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    routing_key: Arc<str>,
    /// Exchanges come before queues.
    is_queue: bool,
    destination: Arc<str>,
    binding: BindingKey,
}

impl ModulusHash {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            bindings: Shares::new(seed),
            orders: GrowingMap::new(),
        }
    }

    pub(crate) fn insert(
        &mut self,
        binding: BindingKey,
        routing_key: &Arc<str>,
        destination: &Destination,
        target: Target,
    ) {
        let (is_queue, name) = match destination {
            Destination::Exchange(name) => (false, name),
            Destination::Queue(name) => (true, name),
        };
        let order = Order {
            routing_key: Arc::clone(routing_key),
            is_queue,
            destination: Arc::clone(name),
            binding,
        };
        self.orders.insert(binding, order.clone());
        self.bindings.insert(order, target, 1);
    }

    pub(crate) fn remove(&mut self, binding: BindingKey) {
        if let Some(order) = self.orders.remove(&binding) {
            self.bindings.remove(&order);
        }
    }

    /// The target of a message, and the steps to find it. Further routing keys only change the hash.
    pub(crate) fn choose(&self, routing_key: &str, copies: &Copies<'_>) -> (Option<Target>, u64) {
        let mut bytes = routing_key.len();
        let mut hash = erlang::bytes(0, routing_key.as_bytes());
        copies.each(u64::MAX, |key| {
            hash = erlang::bytes(hash, key.as_bytes());
            bytes += key.len();
            0
        });
        let hash = erlang::phash2(erlang::nil(hash));
        let place = u64::from(hash).checked_rem(self.bindings.sum());
        (
            place.and_then(|place| self.bindings.at(place)),
            steps(bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes of lists of one key are those of `erlang:phash2([Key])`.
    #[test]
    fn lists_of_keys_have_the_hash_of_erlang() {
        for (key, expected) in [
            ("", 38_220_213),
            ("a", 53_691_870),
            ("key-1", 57_358_350),
            ("order-42", 93_186_161),
            ("0123456789ab", 119_280_432),
            ("0123456789abc", 56_666_097),
            ("naïve", 104_553_058),
        ] {
            let hash = erlang::nil(erlang::bytes(0, key.as_bytes()));
            assert_eq!(erlang::phash2(hash), expected, "{key:?}");
        }
        assert_eq!(erlang::nil(0), 3_468_870_702);
    }
}
