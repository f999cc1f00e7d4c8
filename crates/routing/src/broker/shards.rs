//! Subscribers that are shards (WAMP advanced profile, "Sharded Subscription").
//!
//! The specification defines only the keys. Subscribers with the same node key are a shard of their subscription, and
//! an event with a resource key reaches the shard that ranks highest by a hash of both keys. Subscribers without a node
//! key receive every event; events without a resource key reach every subscriber.

use std::collections::BTreeMap;

use crosstie_wamp::{PublishOptions, SubscribeOptions, SubscriptionId};

use super::{Broker, Subscription, SubscriptionKey};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::rendezvous::{check_key, hash, rank};
use crate::session::Sessions;

/// Hashes of the node keys that subscribers have.
pub(super) type Shards = BTreeMap<SessionIndex, u64>;

/// Approximate memory of one shard.
const SHARD_BYTES: isize = 48;

impl Broker {
    /// Checks the resource key of a publication; returns `disclosed` as it is.
    #[cold]
    #[inline(never)]
    pub(super) fn check_rkey<H>(
        &self,
        context: &Context<'_, H>,
        options: &PublishOptions,
        disclosed: bool,
    ) -> Result<bool, Fault> {
        let Some(sharding) = options.sharding.as_deref() else {
            return Ok(disclosed);
        };
        context.check_options(sharding.unsupported)?;
        if let Some(rkey) = &sharding.rkey {
            check_key("rkey", rkey)?;
        }
        self.check_nodes("rkey")?;
        Ok(disclosed)
    }

    /// Checks the node key of a subscriber.
    pub(super) fn check_nkey(&self, options: &SubscribeOptions) -> Result<(), Fault> {
        let Some(nkey) = options.nkey.as_deref() else {
            return Ok(());
        };
        check_key("nkey", nkey)?;
        self.check_nodes("nkey")
    }

    /// Sets a subscriber's shard: its latest SUBSCRIBE counts.
    pub(super) fn note_shard<H>(
        &mut self,
        context: &mut Context<'_, H>,
        subscriber: SessionIndex,
        subscription: SubscriptionId,
        options: &SubscribeOptions,
    ) {
        let shard = options.nkey.as_deref().map(hash);
        if let Some(SubscriptionKey(key)) = self.key_of(subscription) {
            let subscription = &mut self.subscriptions[key as usize];
            context.hold(subscriber, subscription.set_shard(subscriber, shard));
        }
    }

    /// Refuses shards in a cluster: choosing one requires knowledge of all shards.
    fn check_nodes(&self, option: &str) -> Result<(), Fault> {
        if self.across.is_none() {
            return Ok(());
        }
        let text = format!("{option} is not served in a realm of several nodes");
        Err(Fault::new(error::OPTION_NOT_ALLOWED, text))
    }
}

impl Subscription {
    /// Sets a subscriber's shard, if any; returns the change of held bytes.
    pub(super) fn set_shard(&mut self, subscriber: SessionIndex, shard: Option<u64>) -> isize {
        let before = self.shards().map_or(0, Shards::len) as isize;
        if shard.is_none() && before == 0 {
            return 0;
        }
        self.change_parts(|parts| {
            let shards = parts.shards.get_or_insert_default();
            match shard {
                None => shards.remove(&subscriber),
                Some(shard) => shards.insert(subscriber, shard),
            };
            parts.shards.take_if(|shards| shards.is_empty());
        });
        let after = self.shards().map_or(0, Shards::len) as isize;
        (after - before) * SHARD_BYTES
    }

    /// The shard of a resource, among those with subscribers.
    pub(super) fn shard_for<H>(
        &self,
        resource: Option<u64>,
        sessions: &Sessions<H>,
    ) -> Option<u64> {
        let (resource, shards) = (resource?, self.shards()?);
        let there = shards
            .iter()
            .filter(|(index, _)| !sessions[**index].closing);
        let all = there.map(|(_, shard)| *shard);
        all.max_by_key(|shard| rank(resource, *shard))
    }

    /// Whether a subscriber receives events for that shard.
    pub(super) fn is_in(&self, shard: Option<u64>, subscriber: SessionIndex) -> bool {
        let (Some(shard), Some(shards)) = (shard, self.shards()) else {
            return true;
        };
        shards.get(&subscriber).is_none_or(|own| *own == shard)
    }

    pub(super) fn check_shards(&self) {
        let Some(shards) = self.shards() else { return };
        assert!(!shards.is_empty());
        assert!(shards.keys().all(|index| self.subscribers.contains(index)));
    }
}

/// The resource of a publication.
pub(super) fn resource(options: &PublishOptions) -> Option<u64> {
    let sharding = options.sharding.as_deref()?;
    sharding.rkey.as_deref().map(hash)
}
