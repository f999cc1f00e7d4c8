//! Subscriptions by topic and id, and the parts that few of them have.

use crosstie_collections::mix;
use crosstie_wamp::{MatchPolicy, SubscriptionId};

use super::acknowledged::Acknowledging;
use super::pending::Waiting;
use super::shards::Shards;
use super::{Broker, Parts, Subscription, SubscriptionKey};

impl Broker {
    /// The exact subscription to a topic.
    #[inline(always)]
    pub(super) fn exact(&self, topic: &str) -> Option<SubscriptionKey> {
        let is = |place: u32| *self.subscriptions[place as usize].topic == *topic;
        let place = self.index.exact.find(self.index.keys.hash_one(topic), is)?;
        Some(SubscriptionKey(place))
    }

    /// The subscription to that very pattern.
    pub(super) fn key_of_pattern(
        &self,
        policy: MatchPolicy,
        pattern: &str,
    ) -> Option<SubscriptionKey> {
        match policy {
            MatchPolicy::Exact => self.exact(pattern),
            policy => self.index.patterns.value(policy, pattern),
        }
    }

    pub(super) fn key_of(&self, id: SubscriptionId) -> Option<SubscriptionKey> {
        let is = |place: u32| self.subscriptions[place as usize].id == id;
        let place = self.index.by_id.find(mix(id.0), is)?;
        Some(SubscriptionKey(place))
    }
}

impl Subscription {
    pub(super) fn shards(&self) -> Option<&Shards> {
        self.parts.as_ref()?.shards.as_ref()
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        self.parts.as_ref()?.waiting.as_ref()
    }

    pub(super) fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        self.parts.as_mut()?.waiting.as_mut()
    }

    pub(super) fn acknowledging(&self) -> Option<&Acknowledging> {
        self.parts.as_ref()?.acknowledging.as_ref()
    }

    /// Changes the parts, and frees those that are left empty.
    pub(super) fn change_parts<R>(&mut self, change: impl FnOnce(&mut Parts) -> R) -> R {
        let changed = change(self.parts.get_or_insert_default());
        self.parts.take_if(|parts| {
            let Parts {
                shards,
                waiting,
                acknowledging,
            } = &**parts;
            shards.is_none() && waiting.is_none() && acknowledging.is_none()
        });
        changed
    }
}
