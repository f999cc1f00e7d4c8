//! A set that is empty for most of its owners.

use std::hash::Hash;

use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

/// Two words, and nothing behind them for the only key, whereas a hash set takes four and a table. Its longest insertion
/// is bounded ([`GrowingMap`]).
#[derive(Debug)]
pub(crate) enum RareSet<K> {
    Empty,
    One(K),
    /// Two or more, or one that is left of them.
    Some(Box<GrowingMap<K, (), FxBuildHasher>>),
}

impl<K: Copy + Eq + Hash> RareSet<K> {
    pub(crate) fn new() -> Self {
        Self::Empty
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Some(set) => set.len(),
        }
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        match self {
            Self::Empty => false,
            Self::One(one) => one == key,
            Self::Some(set) => set.get(key).is_some(),
        }
    }

    pub(crate) fn insert(&mut self, key: K) {
        match self {
            Self::Empty => *self = Self::One(key),
            Self::One(one) if *one == key => {}
            Self::One(one) => {
                let mut set = GrowingMap::new();
                set.insert(*one, ());
                set.insert(key, ());
                *self = Self::Some(Box::new(set));
            }
            Self::Some(set) => {
                set.insert(key, ());
            }
        }
    }

    /// Removes a key; returns whether it was present.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let (was_there, is_empty) = match self {
            Self::Empty => return false,
            Self::One(one) => (one == key, one == key),
            Self::Some(set) => (set.remove(key).is_some(), set.is_empty()),
        };
        if is_empty {
            *self = Self::Empty;
        }
        was_there
    }

    /// At most that many of its keys.
    pub(crate) fn some(&self, count_max: usize) -> Vec<K> {
        match self {
            Self::Empty => Vec::new(),
            Self::One(one) => Vec::from_iter((count_max > 0).then_some(*one)),
            Self::Some(set) => set.keys().take(count_max).copied().collect(),
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
        assert!(matches!(set, RareSet::One(1)));
        set.insert(2);
        assert!(set.remove(&1) && set.remove(&2));
        assert!(matches!(set, RareSet::Empty));
        assert_eq!(size_of::<RareSet<u32>>(), 2 * size_of::<usize>());
    }
}
