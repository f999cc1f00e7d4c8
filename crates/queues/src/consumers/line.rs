//! A line: keys in the order of their priority, then of their turn.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use crate::shrink::shrink;

/// A place in a line. No two of one queue are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// The highest priority comes first.
    pub(super) priority: Reverse<i64>,
    pub(super) turn: u64,
}

/// Keys by rank. If all priorities are equal, each new key is last, which is a push and a pop. A key that precedes
/// others is in a tree, so that neither priorities nor departures from within cost more than a logarithm.
#[derive(Debug)]
pub(super) struct Line<K> {
    /// In order. A key that left from within leaves a gap; neither end is a gap.
    queued: VecDeque<(Rank, Option<K>)>,
    gaps: usize,
    tree: BTreeMap<Rank, K>,
}

impl<K: Copy> Line<K> {
    pub(super) fn insert(&mut self, rank: Rank, key: K) {
        match self.queued.back() {
            Some((last, _)) if rank < *last => {
                self.tree.insert(rank, key);
            }
            _ => {
                if self.queued.capacity() == 0 {
                    // Most queues have one consumer.
                    self.queued.reserve_exact(1);
                }
                self.queued.push_back((rank, Some(key)));
            }
        }
    }

    pub(super) fn remove(&mut self, rank: Rank) {
        if self.queued.front().is_some_and(|(first, _)| *first == rank) {
            self.queued.pop_front();
        } else if self.tree.remove(&rank).is_some() {
            return;
        } else if let Ok(at) = self.queued.binary_search_by_key(&rank, |(rank, _)| *rank)
            && self.queued[at].1.take().is_some()
        {
            self.gaps += 1;
        }
        self.drop_gaps();
    }

    pub(super) fn first(&self) -> Option<(Rank, K)> {
        // The front is no gap.
        let queued = self
            .queued
            .front()
            .and_then(|(rank, key)| Some((*rank, (*key)?)));
        let Some((rank, key)) = self.tree.first_key_value() else {
            return queued;
        };
        match queued {
            Some((first, _)) if first < *rank => queued,
            _ => Some((*rank, *key)),
        }
    }

    /// The first one's key, which mostly is at the front.
    #[inline(always)]
    pub(super) fn first_key(&self) -> Option<K> {
        match self.tree.is_empty() {
            true => self.queued.front()?.1,
            false => self.first().map(|(_, key)| key),
        }
    }

    /// Whether there is exactly one: the ends are not gaps.
    pub(super) fn has_one(&self) -> bool {
        self.queued.len() + self.tree.len() == 1
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len() - self.gaps + self.tree.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Rank, K)> {
        let queued = self
            .queued
            .iter()
            .filter_map(|(rank, key)| Some((*rank, (*key)?)));
        queued.chain(self.tree.iter().map(|(rank, key)| (*rank, *key)))
    }

    fn drop_gaps(&mut self) {
        while self.queued.pop_front_if(|(_, key)| key.is_none()).is_some() {
            self.gaps -= 1;
        }
        while self.queued.pop_back_if(|(_, key)| key.is_none()).is_some() {
            self.gaps -= 1;
        }
        if self.gaps > GAPS_MIN && self.gaps > self.queued.len() / 2 {
            self.queued.retain(|(_, key)| key.is_some());
            self.gaps = 0;
        }
        shrink(&mut self.queued);
    }
}

/// Fewer gaps are not worth a walk.
const GAPS_MIN: usize = 32;

impl<K> Default for Line<K> {
    fn default() -> Self {
        Self {
            queued: VecDeque::new(),
            gaps: 0,
            tree: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn any_order_of_inputs_leaves_the_order_of_ranks() {
        for seed in 0..30 {
            let mut random = Random::new(seed);
            let mut line = Line::default();
            let mut expected: BTreeMap<Rank, u64> = BTreeMap::new();
            for turn in 0..2_000 {
                let priority = match seed % 3 {
                    0 => 0,
                    1 => (random.next() % 3) as i64 - 1,
                    _ => random.next() as i64,
                };
                let rank = Rank {
                    priority: Reverse(priority),
                    turn,
                };
                if random.next() % 5 < 2 + turn / 1_200 {
                    let gone = match random.next() % 2 {
                        0 => expected.keys().next(),
                        _ => expected
                            .keys()
                            .nth(random.next() as usize % expected.len().max(1)),
                    };
                    if let Some(gone) = gone.copied() {
                        expected.remove(&gone);
                        line.remove(gone);
                    }
                    // One that is absent has been removed already.
                    line.remove(rank);
                } else {
                    line.insert(rank, turn);
                    expected.insert(rank, turn);
                }
                let first = expected.first_key_value().map(|(rank, key)| (*rank, *key));
                assert_eq!(line.first(), first);
                assert_eq!(line.len(), expected.len());
                assert!(line.queued.len() <= 2 * expected.len() + GAPS_MIN + 1);
            }
            let mut all: Vec<_> = line.iter().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(expected));
        }
    }
}
