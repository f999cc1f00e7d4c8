//! Patterns of topic exchanges: words between dots, `*` for one word, `#` for any number of them.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_collections::GrowingMap;

use super::destinations::{Destinations, Target};
use super::trie::Trie;

/// All patterns of one exchange. Those without wildcards are a map: many exchanges have no others,
/// and then a key costs one look-up. The others are a trie of words.
#[derive(Debug)]
pub(super) struct Topic {
    literals: GrowingMap<Arc<str>, Destinations, RandomState>,
    wildcards: Trie,
}

impl Topic {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            literals: GrowingMap::with_hasher(hasher.clone()),
            wildcards: Trie::new(hasher),
        }
    }

    pub(super) fn insert(&mut self, pattern: &Arc<str>, target: Target) {
        if has_wildcard(pattern) {
            self.wildcards.insert(pattern, target);
        } else {
            let literal = pattern.clone();
            let destinations = self
                .literals
                .get_or_insert_with(literal, Destinations::default);
            destinations.insert(target);
        }
    }

    pub(super) fn remove(&mut self, pattern: &str, target: Target) {
        if has_wildcard(pattern) {
            self.wildcards.remove(pattern, target);
        } else if let Some(destinations) = self.literals.get_mut(pattern) {
            destinations.remove(target);
            if destinations.is_empty() {
                self.literals.remove(pattern);
            }
        }
    }

    /// Finds every target of a pattern that a key matches, some more than once. Returns the number of nodes visited.
    pub(super) fn each(&mut self, key: &str, found: &mut impl FnMut(Target)) -> u64 {
        if let Some(destinations) = self.literals.get(key) {
            destinations.each(found);
        }
        match self.wildcards.is_empty() {
            true => 0,
            false => self.wildcards.each(key, found),
        }
    }

    /// The maximum steps of a key.
    pub(super) fn steps(&self) -> u64 {
        self.wildcards.steps()
    }

    pub(super) fn node_count(&self) -> usize {
        self.wildcards.node_count()
    }
}

/// The empty key has no words, as in RabbitMQ: `#` matches it, `*` does not.
pub(super) fn words(key: &str) -> impl Iterator<Item = &str> {
    let words_max = if key.is_empty() { 0 } else { usize::MAX };
    key.split('.').take(words_max)
}

fn has_wildcard(pattern: &str) -> bool {
    words(pattern).any(|word| matches!(word, "*" | "#"))
}
