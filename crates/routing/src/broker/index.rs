//! Finds subscriptions by their topics and their ids, which are in the subscriptions themselves.

use ahash::RandomState;
use crosstie_collections::{PlaceMap, mix};
use crosstie_wamp::{MatchPolicy, SubscriptionId};

use crate::fault::Fault;
use crate::keys::SubscriptionKey;
use crate::pattern::PatternMap;
use crate::random::Random;

#[derive(Debug)]
pub(super) struct Index {
    /// Topics of exact subscriptions.
    pub(super) exact: PlaceMap,
    pub(super) patterns: PatternMap<SubscriptionKey>,
    pub(super) by_id: PlaceMap,
    pub(super) keys: RandomState,
}

impl Index {
    pub(super) fn new(random: &mut Random) -> Self {
        let keys = random.hash_keys();
        Self {
            exact: PlaceMap::default(),
            patterns: PatternMap::new(keys.clone()),
            by_id: PlaceMap::default(),
            keys,
        }
    }

    pub(super) fn insert(
        &mut self,
        (policy, topic): (MatchPolicy, &str),
        id: SubscriptionId,
        key: SubscriptionKey,
    ) {
        match policy {
            MatchPolicy::Exact => self.exact.insert_new(self.keys.hash_one(topic), key.0),
            policy => self.patterns.insert(policy, topic.into(), key),
        }
        self.by_id.insert_new(mix(id.0), key.0);
    }

    pub(super) fn remove(
        &mut self,
        (policy, topic): (MatchPolicy, &str),
        id: SubscriptionId,
        key: SubscriptionKey,
    ) {
        match policy {
            MatchPolicy::Exact => self.exact.remove(self.keys.hash_one(topic), key.0),
            policy => self.patterns.remove(policy, topic),
        }
        self.by_id.remove(mix(id.0), key.0);
    }

    /// The subscription of that key has got another id.
    pub(super) fn rename(
        &mut self,
        before: SubscriptionId,
        id: SubscriptionId,
        key: SubscriptionKey,
    ) {
        self.by_id.remove(mix(before.0), key.0);
        self.by_id.insert_new(mix(id.0), key.0);
    }

    /// Whether there are any subscriptions but exact ones.
    #[inline(always)]
    pub(super) fn has_patterns(&self) -> bool {
        self.patterns.has_patterns()
    }

    /// Calls `found` for every pattern that matches `topic`.
    #[inline(always)]
    pub(super) fn for_each_pattern(
        &self,
        topic: &str,
        steps: &mut u32,
        found: impl FnMut(SubscriptionKey),
    ) {
        self.patterns.for_each_pattern(topic, steps, found);
    }

    pub(super) fn check_room(
        &self,
        policy: MatchPolicy,
        pattern: &str,
        shapes_max: usize,
    ) -> Result<(), Fault> {
        self.patterns.check_room(policy, pattern, shapes_max)
    }

    /// Numbers of subscriptions by topic, and by id.
    pub(super) fn lens(&self) -> [usize; 2] {
        [self.exact.len() + self.patterns.len(), self.by_id.len()]
    }
}
