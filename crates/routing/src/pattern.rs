//! A map from URIs and URI patterns to values: finds the subscriptions or registrations that a URI matches.
//!
//! Exact patterns are one hash lookup. Prefixes are one lookup per length that occurs among them, which is a handful in
//! practice and at most the length of the URI. Wildcards are one lookup per shape that occurs among them
//! ([`crate::wildcard`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::RandomState;
use crosstie_collections::GrowingMap;
use crosstie_wamp::MatchPolicy;

use crate::fault::{Fault, error};
use crate::wildcard::WildcardMap;

type UriMap<V> = GrowingMap<Arc<str>, V, RandomState>;

/// A map from (URI or pattern, matching policy) to `V`.
#[derive(Debug)]
pub(crate) struct PatternMap<V> {
    exact: UriMap<V>,
    /// By length in bytes; no map in it is empty.
    prefixes: BTreeMap<usize, UriMap<V>>,
    wildcards: WildcardMap<V>,
    keys: RandomState,
}

impl<V: Copy> PatternMap<V> {
    pub(crate) fn new(keys: RandomState) -> Self {
        Self {
            exact: UriMap::with_hasher(keys.clone()),
            prefixes: BTreeMap::new(),
            wildcards: WildcardMap::new(keys.clone()),
            keys,
        }
    }

    /// Sets the value of a pattern, and replaces the one before.
    pub(crate) fn insert(&mut self, policy: MatchPolicy, pattern: Arc<str>, value: V) {
        match policy {
            MatchPolicy::Exact => {
                self.exact.insert(pattern, value);
            }
            MatchPolicy::Prefix => {
                self.prefixes
                    .entry(pattern.len())
                    .or_insert_with(|| UriMap::with_hasher(self.keys.clone()))
                    .insert(pattern, value);
            }
            MatchPolicy::Wildcard => self.wildcards.insert(pattern, value),
        }
    }

    pub(crate) fn remove(&mut self, policy: MatchPolicy, pattern: &str) {
        match policy {
            MatchPolicy::Exact => {
                self.exact.remove(pattern);
            }
            MatchPolicy::Prefix => {
                if let Some(of_length) = self.prefixes.get_mut(&pattern.len()) {
                    of_length.remove(pattern);
                    if of_length.is_empty() {
                        self.prefixes.remove(&pattern.len());
                    }
                }
            }
            MatchPolicy::Wildcard => self.wildcards.remove(pattern),
        }
    }

    /// The value of that very pattern.
    pub(crate) fn value(&self, policy: MatchPolicy, pattern: &str) -> Option<V> {
        match policy {
            MatchPolicy::Exact => self.exact(pattern),
            MatchPolicy::Prefix => self.prefixes.get(&pattern.len())?.get(pattern).copied(),
            MatchPolicy::Wildcard => self.wildcards.value(pattern),
        }
    }

    // Always inlined, as are other functions on a message's path. The compiler stops inlining when a function has grown
    // enough, and each call that it leaves costs a message 10 to 20 instructions.
    #[inline(always)]
    pub(crate) fn exact(&self, uri: &str) -> Option<V> {
        self.exact.get(uri).copied()
    }

    pub(crate) fn longest_prefix(&self, uri: &str) -> Option<V> {
        self.prefixes_of(uri).next_back()
    }

    pub(crate) fn best_wildcard(&self, uri: &str, steps: &mut u32) -> Option<V> {
        self.wildcards.best(uri, steps)
    }

    /// Whether a pattern may be added without exceeding that many shapes of wildcard patterns of its length.
    pub(crate) fn check_room(
        &self,
        policy: MatchPolicy,
        pattern: &str,
        shapes_max: usize,
    ) -> Result<(), Fault> {
        if policy != MatchPolicy::Wildcard || self.wildcards.has_room(pattern, shapes_max) {
            return Ok(());
        }
        let text = format!(
            "wildcard patterns of as many components have {shapes_max} shapes already (which \
             components are empty); this one would be another"
        );
        Err(Fault::new(error::WILDCARD_SHAPES_MAX, text))
    }

    /// Whether there are any but exact ones.
    #[inline(always)]
    pub(crate) fn has_patterns(&self) -> bool {
        !(self.prefixes.is_empty() && self.wildcards.is_empty())
    }

    /// Calls `found` for the value of every pattern, exact ones excepted, that matches `uri`.
    #[inline(always)]
    pub(crate) fn for_each_pattern(&self, uri: &str, steps: &mut u32, mut found: impl FnMut(V)) {
        if !self.has_patterns() {
            return;
        }
        *steps = steps.saturating_add(self.prefixes.len() as u32);
        self.prefixes_of(uri).for_each(&mut found);
        self.wildcards.for_each(uri, steps, &mut found);
    }

    /// Patterns in the map.
    pub(crate) fn len(&self) -> usize {
        self.exact.len()
            + self.prefixes.values().map(UriMap::len).sum::<usize>()
            + self.wildcards.len()
    }

    /// From the shortest to the longest.
    fn prefixes_of(&self, uri: &str) -> impl DoubleEndedIterator<Item = V> {
        self.prefixes
            .range(..=uri.len())
            .filter_map(|(length, of_length)| of_length.get(uri.get(..*length)?).copied())
    }
}
