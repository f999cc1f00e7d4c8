//! Weighted values in the order of their keys: the sum of the weights is a line, on which each value has a share of its
//! weight's length.

use crosstie_collections::SplitMix;

/// A treap: a search tree by keys that is a heap by random priorities, which nobody outside knows. So each change and
/// each search takes logarithmic time, whatever the order of the changes is. The weights cost nothing by themselves.
#[derive(Debug)]
pub(super) struct Shares<K, V> {
    nodes: Vec<Node<K, V>>,
    /// Places of removed nodes.
    free: Vec<Link>,
    root: Link,
    priorities: SplitMix,
}

#[derive(Debug)]
struct Node<K, V> {
    /// `None`: the node is free.
    content: Option<(K, V)>,
    weight: u32,
    priority: u32,
    left: Link,
    right: Link,
    /// Of the weights from this node down.
    sum: u64,
}

/// The place of a node.
type Link = u32;

const NONE: Link = Link::MAX;

impl<K: Ord, V: Copy> Shares<K, V> {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            root: NONE,
            priorities: SplitMix(seed),
        }
    }

    /// Adds a value. Its key must be absent.
    pub(super) fn insert(&mut self, key: K, value: V, weight: u32) {
        let (before, behind) = self.split(self.root, &key);
        let node = Node {
            content: Some((key, value)),
            weight,
            priority: self.priorities.number() as u32,
            left: NONE,
            right: NONE,
            sum: weight.into(),
        };
        let link = match self.free.pop() {
            Some(link) => {
                self.nodes[link as usize] = node;
                link
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as Link
            }
        };
        let first = self.merge(before, link);
        self.root = self.merge(first, behind);
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.root = self.remove_below(self.root, key);
        if self.root == NONE {
            // Gives its memory back.
            (self.nodes, self.free) = (Vec::new(), Vec::new());
        }
    }

    /// The sum of all weights.
    pub(super) fn sum(&self) -> u64 {
        self.sum_of(self.root)
    }

    /// The value whose share has that position.
    pub(super) fn at(&self, mut position: u64) -> Option<V> {
        let mut link = self.root;
        while let Some(node) = self.nodes.get(link as usize) {
            let before = self.sum_of(node.left);
            if position < before {
                link = node.left;
                continue;
            }
            position -= before;
            if position < node.weight.into() {
                return node.content.as_ref().map(|(_, value)| *value);
            }
            position -= u64::from(node.weight);
            link = node.right;
        }
        None
    }

    fn sum_of(&self, link: Link) -> u64 {
        self.nodes.get(link as usize).map_or(0, |node| node.sum)
    }

    fn add_up(&mut self, link: Link) {
        let Node {
            left,
            right,
            weight,
            ..
        } = self.nodes[link as usize];
        self.nodes[link as usize].sum = self.sum_of(left) + self.sum_of(right) + u64::from(weight);
    }

    fn is_before(&self, link: Link, key: &K) -> bool {
        let content = &self.nodes[link as usize].content;
        content.as_ref().is_some_and(|(known, _)| known < key)
    }

    /// Divides a tree into the keys before that one, and the others.
    fn split(&mut self, link: Link, key: &K) -> (Link, Link) {
        if link == NONE {
            return (NONE, NONE);
        }
        if self.is_before(link, key) {
            let (before, behind) = self.split(self.nodes[link as usize].right, key);
            self.nodes[link as usize].right = before;
            self.add_up(link);
            (link, behind)
        } else {
            let (before, behind) = self.split(self.nodes[link as usize].left, key);
            self.nodes[link as usize].left = behind;
            self.add_up(link);
            (before, link)
        }
    }

    /// Joins two trees, of which the first has the lower keys.
    fn merge(&mut self, left: Link, right: Link) -> Link {
        if left == NONE || right == NONE {
            return left.min(right);
        }
        if self.nodes[left as usize].priority >= self.nodes[right as usize].priority {
            self.nodes[left as usize].right = self.merge(self.nodes[left as usize].right, right);
            self.add_up(left);
            left
        } else {
            self.nodes[right as usize].left = self.merge(left, self.nodes[right as usize].left);
            self.add_up(right);
            right
        }
    }

    fn remove_below(&mut self, link: Link, key: &K) -> Link {
        if link == NONE {
            return NONE;
        }
        let Node { left, right, .. } = self.nodes[link as usize];
        let content = &self.nodes[link as usize].content;
        if content.as_ref().is_some_and(|(known, _)| known == key) {
            self.nodes[link as usize].content = None;
            self.free.push(link);
            return self.merge(left, right);
        }
        if self.is_before(link, key) {
            self.nodes[link as usize].right = self.remove_below(right, key);
        } else {
            self.nodes[link as usize].left = self.remove_below(left, key);
        }
        self.add_up(link);
        link
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Compares with a sorted list, of which each position is counted.
    #[test]
    fn any_order_of_changes_leaves_the_shares_in_the_order_of_keys() {
        for seed in 0..20 {
            let mut random = SplitMix(seed);
            let mut shares = Shares::new(seed);
            let mut list = BTreeMap::new();
            for _ in 0..300 {
                let key = random.number() % 50;
                if list.remove(&key).is_some() {
                    shares.remove(&key);
                } else {
                    let weight = (random.number() % 4 + 1) as u32;
                    list.insert(key, weight);
                    shares.insert(key, key, weight);
                }
                let places: Vec<u64> = list
                    .iter()
                    .flat_map(|(key, weight)| (0..*weight).map(|_| *key))
                    .collect();
                assert_eq!(shares.sum(), places.len() as u64);
                for (position, key) in places.iter().enumerate() {
                    assert_eq!(shares.at(position as u64), Some(*key));
                }
                assert_eq!(shares.at(shares.sum()), None);
                assert!(shares.nodes.len() <= 50);
            }
        }
    }

    #[test]
    fn many_values_are_found_in_few_steps() {
        let mut shares = Shares::new(7);
        for key in 0..100_000u64 {
            shares.insert(key, key, u32::MAX);
        }
        assert_eq!(shares.at(u64::from(u32::MAX) * 23_456), Some(23_456));
        assert!(depth(&shares, shares.root) < 60);
    }

    fn depth(shares: &Shares<u64, u64>, link: Link) -> usize {
        let Some(node) = shares.nodes.get(link as usize) else {
            return 0;
        };
        1 + depth(shares, node.left).max(depth(shares, node.right))
    }
}
