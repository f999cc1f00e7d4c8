//! All filters as a trie of levels.
//!
//! One map leads from a node and a level to the child, so that a node costs no map of its own. A publication visits the
//! nodes that match a beginning of its topic, each of them once. Its work is bounded by their number, whatever the
//! filters are, and it can pause at any of them.

use ahash::RandomState;
use crosstie_collections::{PlaceMap, Slab};

use crate::keys::NodeKey;
use crate::level::Level;
use crate::subscribers::Subscribers;

#[derive(Debug)]
pub(crate) struct Trie {
    nodes: Slab<crate::keys::OfNode, Node>,
    /// Children by parent and level, apart from `+` and `#`.
    children: PlaceMap,
    hasher: RandomState,
}

#[derive(Debug, Default)]
pub(crate) struct Node {
    level: Level,
    parent: u32,
    /// The children `+` and `#`; the root if there are none.
    plus: u32,
    many: u32,
    /// Number of children.
    children: u32,
    /// Sessions with this filter, apart from shared subscriptions.
    pub(crate) subscribers: Subscribers,
    /// Groups of shared subscriptions with this filter.
    pub(crate) groups: u32,
}

/// The part of a topic's walk that is not done yet.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Nodes to be visited, with the offset of the level below each.
    open: Vec<(NodeKey, u32)>,
}

const ROOT: u32 = 0;

impl Trie {
    pub(crate) fn new(hasher: RandomState) -> Self {
        let mut nodes = Slab::new();
        nodes.insert(Node::default());
        Self {
            nodes,
            children: PlaceMap::default(),
            hasher,
        }
    }

    /// Number of levels of all filters, common beginnings counted once.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    #[inline]
    pub(crate) fn at(&self, node: u32) -> Option<&Node> {
        self.nodes.at(node)
    }

    pub(crate) fn at_mut(&mut self, node: u32) -> Option<&mut Node> {
        self.nodes.at_mut(node)
    }

    pub(crate) fn find(&self, filter: &str) -> Option<u32> {
        filter
            .split('/')
            .try_fold(ROOT, |node, level| self.child(node, level))
    }

    /// The node of a filter, made if absent. One that stays empty has to be pruned.
    pub(crate) fn open(&mut self, filter: &str) -> u32 {
        let mut node = ROOT;
        for level in filter.split('/') {
            node = match self.child(node, level) {
                Some(child) => child,
                None => self.add_child(node, level),
            };
        }
        node
    }

    /// Removes a node that has neither subscriptions nor children, and those above that are left so.
    pub(crate) fn prune(&mut self, node: u32) {
        let mut index = node;
        while index != ROOT
            && let Some(node) = self.nodes.at(index)
            && node.is_idle()
            && let Some(key) = self.nodes.key_at(index)
        {
            match node.level.as_str() {
                "+" => self.parent_of(index, |parent| parent.plus = ROOT),
                "#" => self.parent_of(index, |parent| parent.many = ROOT),
                level => {
                    let hash = self.hasher.hash_one((node.parent, level));
                    self.children.remove(hash, index);
                }
            }
            self.parent_of(index, |parent| parent.children -= 1);
            let removed = self.nodes.remove(key);
            index = removed.map_or(ROOT, |node| node.parent);
        }
    }

    /// The text of a node's filter.
    pub(crate) fn filter(&self, node: u32) -> String {
        let mut levels = Vec::new();
        let mut index = node;
        while index != ROOT
            && let Some(node) = self.nodes.at(index)
        {
            levels.push(node.level.as_str());
            index = node.parent;
        }
        levels.reverse();
        levels.join("/")
    }

    /// Begins the walk of a topic.
    pub(crate) fn begin(&self, walk: &mut Walk) {
        walk.open.clear();
        walk.open
            .extend(self.nodes.key_at(ROOT).map(|root| (root, 0)));
    }

    /// Visits the next node of a walk, and passes the nodes whose filters match to `found`. False when there is none.
    #[inline]
    pub(crate) fn visit(
        &self,
        walk: &mut Walk,
        topic: &str,
        mut found: impl FnMut(u32, &Node),
    ) -> bool {
        let Some((key, offset)) = walk.open.pop() else {
            return false;
        };
        let Some(node) = self.nodes.find(key) else {
            return true;
        };
        // Wildcards in the first level do not match `$…` (section 4.7.2).
        let is_hidden = key.index() == ROOT && topic.starts_with('$');
        if node.many != ROOT
            && !is_hidden
            && let Some(many) = self.nodes.at(node.many)
        {
            found(node.many, many);
        }
        let Some(rest) = topic.get(offset as usize..) else {
            found(key.index(), node);
            return true;
        };
        let length = rest.bytes().position(|octet| octet == b'/');
        let level = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        // Behind the last level this is beyond the topic's end.
        let below = offset + level.len() as u32 + 1;
        if node.plus != ROOT
            && !is_hidden
            && let Some(plus) = self.nodes.key_at(node.plus)
        {
            walk.open.push((plus, below));
        }
        if let Some(child) = self.literal(key.index(), level)
            && let Some(child) = self.nodes.key_at(child)
        {
            walk.open.push((child, below));
        }
        true
    }

    fn child(&self, parent: u32, level: &str) -> Option<u32> {
        let special = |child: u32| (child != ROOT).then_some(child);
        match level {
            "+" => special(self.nodes.at(parent)?.plus),
            "#" => special(self.nodes.at(parent)?.many),
            _ => self.literal(parent, level),
        }
    }

    #[inline]
    fn literal(&self, parent: u32, level: &str) -> Option<u32> {
        let hash = self.hasher.hash_one((parent, level));
        self.children.find(hash, |child| {
            let node = self.nodes.at(child);
            node.is_some_and(|node| {
                node.parent == parent && node.level.as_bytes() == level.as_bytes()
            })
        })
    }

    fn add_child(&mut self, parent: u32, level: &str) -> u32 {
        let child = self.nodes.insert(Node {
            level: Level::new(level),
            parent,
            ..Node::default()
        });
        match level {
            "+" => self.parent_of(child.index(), |parent| parent.plus = child.index()),
            "#" => self.parent_of(child.index(), |parent| parent.many = child.index()),
            _ => {
                let hash = self.hasher.hash_one((parent, level));
                self.children.insert_new(hash, child.index());
            }
        }
        self.parent_of(child.index(), |parent| parent.children += 1);
        child.index()
    }

    fn parent_of(&mut self, node: u32, change: impl FnOnce(&mut Node)) {
        let parent = self.nodes.at(node).map(|node| node.parent);
        if let Some(parent) = parent.and_then(|parent| self.nodes.at_mut(parent)) {
            change(parent);
        }
    }
}

impl Node {
    pub(crate) fn has_subscriptions(&self) -> bool {
        !self.subscribers.is_empty() || self.groups > 0
    }

    fn is_idle(&self) -> bool {
        self.children == 0 && !self.has_subscriptions()
    }
}

#[cfg(test)]
mod tests {
    use crosstie_collections::SplitMix;
    use crosstie_mqtt::topic;

    use super::*;

    fn trie(filters: &[String]) -> Trie {
        let mut trie = Trie::new(RandomState::with_seeds(1, 2, 3, 4));
        for filter in filters {
            let node = trie.open(filter);
            trie.at_mut(node).expect("is open").groups += 1;
        }
        trie
    }

    fn matches(trie: &Trie, topic: &str) -> (Vec<String>, usize) {
        let (mut walk, mut found, mut visits) = (Walk::default(), Vec::new(), 0);
        trie.begin(&mut walk);
        while trie.visit(&mut walk, topic, |index, node| {
            if node.has_subscriptions() {
                found.push(trie.filter(index));
            }
        }) {
            visits += 1;
        }
        found.sort();
        (found, visits)
    }

    /// Filters and topics of few different levels, so that many match.
    fn text(random: &mut SplitMix, levels: &[&str]) -> String {
        let count = 1 + random.number() % 4;
        let one = |_| levels[random.number() as usize % levels.len()];
        (0..count).map(one).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn a_walk_finds_what_the_specification_matches() {
        let mut random = SplitMix(38);
        for _ in 0..300 {
            let mut filters: Vec<String> = Vec::new();
            while filters.len() < 20 {
                let filter = text(&mut random, &["a", "b", "+", "#", "", "$s"]);
                if topic::check_filter(&filter).is_ok() && !filters.contains(&filter) {
                    filters.push(filter);
                }
            }
            let mut trie = trie(&filters);
            for _ in 0..20 {
                let topic = text(&mut random, &["a", "b", "", "$s"]);
                let found = filters
                    .iter()
                    .filter(|filter| topic::matches(filter, &topic));
                let mut expected: Vec<_> = found.cloned().collect();
                expected.sort();
                assert_eq!(matches(&trie, &topic).0, expected, "{topic} in {filters:?}");
            }
            for filter in &filters {
                let node = trie.find(filter).expect("is open");
                assert_eq!(trie.filter(node), *filter);
                trie.at_mut(node).expect("is open").groups -= 1;
                trie.prune(node);
                assert_eq!(
                    trie.find(filter)
                        .and_then(|node| trie.at(node))
                        .map_or(0, |n| n.groups),
                    0
                );
            }
            assert_eq!((trie.len(), trie.children.len()), (0, 0));
        }
    }

    #[test]
    fn a_walk_visits_each_matching_node_once() {
        // All filters of eight levels `a` and `+`: 256 of them match, and 510 nodes lead there.
        let filters = (0..256).map(|bits: u32| {
            let level = |at: u32| if bits >> at & 1 == 0 { "a" } else { "+" };
            (0..8).map(level).collect::<Vec<_>>().join("/")
        });
        let trie = trie(&filters.collect::<Vec<_>>());
        let (found, visits) = matches(&trie, "a/a/a/a/a/a/a/a");
        assert_eq!((found.len(), visits), (256, 511));
        assert_eq!(matches(&trie, "b/b/b/b/b/b/b/b").1, 9);
    }

    #[test]
    fn a_node_is_small() {
        assert!(size_of::<Node>() <= 72);
    }
}
