//! A set that is empty for most of its owners.

use std::hash::Hash;

use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

/// One word while it is empty, whereas a hash set takes four. Its longest insertion is bounded ([`GrowingMap`]).
#[derive(Debug)]
pub(crate) struct RareSet<K>(Option<Box<GrowingMap<K, (), FxBuildHasher>>>);

impl<K: Eq + Hash> RareSet<K> {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |set| set.len())
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.0.as_ref().is_some_and(|set| set.get(key).is_some())
    }

    pub(crate) fn insert(&mut self, key: K) {
        let set = self.0.get_or_insert_with(|| Box::new(GrowingMap::new()));
        set.insert(key, ());
    }

    /// Removes a key; returns whether it was present.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let Some(set) = &mut self.0 else {
            return false;
        };
        let was_there = set.remove(key).is_some();
        if set.is_empty() {
            self.0 = None;
        }
        was_there
    }

    /// At most that many of its keys.
    pub(crate) fn some(&self, count_max: usize) -> Vec<K>
    where
        K: Copy,
    {
        let some = self.0.iter().flat_map(|set| set.keys());
        some.take(count_max).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_inserted_key_is_found_once() {
        let mut set = RareSet::new();
        assert!(!set.remove(&1) && !set.contains(&1));
        (0..3).for_each(|key| set.insert(key));
        assert_eq!(set.len(), 3);
        assert!(set.contains(&1) && set.remove(&1) && !set.contains(&1));
        let mut left = set.some(5);
        left.sort_unstable();
        assert_eq!((left, set.some(1).len()), (vec![0, 2], 1));
    }

    #[test]
    fn an_empty_one_holds_nothing() {
        let mut set = RareSet::new();
        set.insert(1_u32);
        set.remove(&1);
        assert!(set.0.is_none());
        assert_eq!(size_of::<RareSet<u32>>(), size_of::<usize>());
    }
}
