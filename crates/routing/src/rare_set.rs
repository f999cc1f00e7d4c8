//! A set that is empty for most of its owners.

use std::hash::Hash;

use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

/// One word while it is empty, whereas a hash set takes four, and no table for the only key. Its longest insertion is
/// bounded ([`GrowingMap`]).
#[derive(Debug)]
pub(crate) struct RareSet<K>(Option<Box<Keys<K>>>);

#[derive(Debug)]
enum Keys<K> {
    One(K),
    /// Two or more, or one that is left of them.
    Some(GrowingMap<K, (), FxBuildHasher>),
}

impl<K: Copy + Eq + Hash> RareSet<K> {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    pub(crate) fn len(&self) -> usize {
        match self.0.as_deref() {
            None => 0,
            Some(Keys::One(_)) => 1,
            Some(Keys::Some(set)) => set.len(),
        }
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        match self.0.as_deref() {
            None => false,
            Some(Keys::One(one)) => one == key,
            Some(Keys::Some(set)) => set.get(key).is_some(),
        }
    }

    pub(crate) fn insert(&mut self, key: K) {
        match self.0.as_deref_mut() {
            None => self.0 = Some(Box::new(Keys::One(key))),
            Some(Keys::One(one)) if *one == key => {}
            Some(Keys::One(one)) => {
                let mut set = GrowingMap::new();
                set.insert(*one, ());
                set.insert(key, ());
                self.0 = Some(Box::new(Keys::Some(set)));
            }
            Some(Keys::Some(set)) => {
                set.insert(key, ());
            }
        }
    }

    /// Removes a key; returns whether it was present.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let (was_there, is_empty) = match self.0.as_deref_mut() {
            None => return false,
            Some(Keys::One(one)) => (one == key, one == key),
            Some(Keys::Some(set)) => (set.remove(key).is_some(), set.is_empty()),
        };
        if is_empty {
            self.0 = None;
        }
        was_there
    }

    /// At most that many of its keys.
    pub(crate) fn some(&self, count_max: usize) -> Vec<K> {
        match self.0.as_deref() {
            None => Vec::new(),
            Some(Keys::One(one)) => Vec::from_iter((count_max > 0).then_some(*one)),
            Some(Keys::Some(set)) => set.keys().take(count_max).copied().collect(),
        }
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
    fn the_only_key_is_found_and_removed_alone() {
        let mut set = RareSet::new();
        set.insert(1_u32);
        set.insert(1);
        assert_eq!((set.len(), set.some(5), set.some(0)), (1, vec![1], vec![]));
        assert!(set.contains(&1) && !set.contains(&2) && !set.remove(&2));
        assert!(set.remove(&1) && !set.remove(&1) && set.len() == 0);
    }

    #[test]
    fn an_empty_one_holds_nothing_and_a_single_key_no_table() {
        let mut set = RareSet::new();
        set.insert(1_u32);
        assert!(matches!(set.0.as_deref(), Some(Keys::One(1))));
        set.insert(2);
        assert!(set.remove(&1) && set.remove(&2));
        assert!(set.0.is_none());
        assert_eq!(size_of::<RareSet<u32>>(), size_of::<usize>());
        assert_eq!(size_of::<Keys<u32>>(), 40);
    }
}
