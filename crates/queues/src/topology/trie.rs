//! Patterns with wildcards as a trie of words, which knows the cost of its worst key.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

use super::destinations::{Destinations, Target};
use super::heaviest::Heaviest;
use super::topic::words;

/// Words are numbered, so that a word of a key is hashed once, however many nodes ask for it.
///
/// A key walks the trie as a set of nodes, one step per word, each node at most once per word: the work is bounded by
/// words × nodes, also for patterns such as `#.a.#.a.#`, for which backtracking would take exponential time. A `#` is
/// entered once per walk: a pattern that ends there matches. If more follows, the node stands, and is visited for each
/// later word.
///
/// Words × nodes is a loose bound: of ten thousand patterns that differ in a word, a key sees one. Each node therefore
/// has its [`Weight`], and the root's is a bound that no key exceeds.
#[derive(Debug)]
pub(super) struct Trie {
    words: GrowingMap<Arc<str>, Word, RandomState>,
    words_made: WordNumber,
    edges: GrowingMap<(NodeIndex, WordNumber), NodeIndex, FxBuildHasher>,
    nodes: Vec<Node>,
    free: Vec<NodeIndex>,
    patterns: usize,
    // Kept between messages, so that routing allocates nothing.
    step: u64,
    /// The step at which this walk began.
    step_begun: u64,
    current: Vec<NodeIndex>,
    next: Vec<NodeIndex>,
    standing: Vec<NodeIndex>,
}

type NodeIndex = u32;
type WordNumber = u64;

const ROOT: NodeIndex = 0;

/// The words of a key of 255 dots.
const WORDS_MAX: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct Word {
    number: WordNumber,
    edges: u32,
}

#[derive(Debug, Default)]
struct Node {
    /// Its parent and what leads from there to here.
    origin: Option<(NodeIndex, Edge)>,
    star: Option<NodeIndex>,
    hash: Option<NodeIndex>,
    /// Number of children, without `star` and `hash`.
    word_children: u32,
    /// It is a `#`, or is below one.
    is_below_hash: bool,
    destinations: Destinations,
    /// The last step that included it.
    step: u64,
    weight: Weight,
    /// The walk costs of the `word_children`.
    heaviest: Heaviest,
    /// The sum of all children's `standing`.
    standing_below: u64,
}

/// The maximum number of nodes entered, counted from a node down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weight {
    /// For each time that the node is entered. Of all possible next words, a key has one.
    walk: u64,
    /// Below a `#`, for the whole key: each `#` within, once entered, stands until the key's end, whichever way led
    /// there. Above a `#`, that is part of `walk`.
    standing: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Edge {
    Star,
    Hash,
    Word(Arc<str>),
}

impl Trie {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            words: GrowingMap::with_hasher(hasher.clone()),
            words_made: 0,
            edges: GrowingMap::new(),
            nodes: vec![Node::default()],
            free: Vec::new(),
            patterns: 0,
            step: 0,
            step_begun: 0,
            current: Vec::new(),
            next: Vec::new(),
            standing: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, pattern: &str, target: Target) {
        let mut node = ROOT;
        for word in words(pattern) {
            node = match self.child(node, word) {
                Some(child) => child,
                None => self.add_child(node, word),
            };
        }
        self.nodes[node as usize].destinations.insert(target);
        self.patterns += 1;
        self.weigh_up_from(node);
    }

    pub(super) fn remove(&mut self, pattern: &str, target: Target) {
        let found = words(pattern).try_fold(ROOT, |node, word| self.child(node, word));
        let Some(mut node) = found else {
            return;
        };
        self.nodes[node as usize].destinations.remove(target);
        self.patterns -= 1;
        if self.patterns == 0 {
            // Gives its memory back.
            *self = Self::new(self.words.hasher());
            return;
        }
        while self.nodes[node as usize].is_leaf()
            && let Some((parent, edge)) = self.nodes[node as usize].origin.take()
        {
            let gone = std::mem::take(&mut self.nodes[node as usize]);
            self.remove_edge(parent, &edge, gone.weight);
            self.free.push(node);
            node = parent;
        }
        self.weigh_up_from(node);
    }

    /// Finds every target of a pattern that a key matches, some more than once. Returns the number of nodes entered.
    pub(super) fn each(&mut self, key: &str, found: &mut impl FnMut(Target)) -> u64 {
        self.next.clear();
        self.standing.clear();
        self.step += 1;
        self.step_begun = self.step;
        let mut steps = self.enter(ROOT, found);
        for word in words(key) {
            std::mem::swap(&mut self.current, &mut self.next);
            self.next.clear();
            self.step += 1;
            let word = self.words.get(word).map(|word| word.number);
            // Nodes entered by this word are visited for the next one.
            let standing = self.standing.len();
            steps += standing as u64;
            for position in 0..standing {
                steps += self.advance(self.standing[position], word, found);
            }
            for position in 0..self.current.len() {
                steps += self.advance(self.current[position], word, found);
            }
            if self.next.is_empty() && self.standing.is_empty() {
                return steps;
            }
        }
        for node in &self.next {
            self.nodes[*node as usize].destinations.each(found);
        }
        steps
    }

    pub(super) fn is_empty(&self) -> bool {
        self.patterns == 0
    }

    /// The maximum number of nodes that a key enters.
    pub(super) fn steps(&self) -> u64 {
        match self.is_empty() {
            true => 0,
            false => self.nodes[ROOT as usize].weight.walk,
        }
    }

    /// Without the root, which every trie has.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len() - self.free.len() - 1
    }

    /// Enters every node that a word leads to from `node`; returns how many.
    fn advance(
        &mut self,
        node: NodeIndex,
        word: Option<WordNumber>,
        found: &mut impl FnMut(Target),
    ) -> u64 {
        let Node {
            star,
            word_children,
            ..
        } = self.nodes[node as usize];
        let mut steps = 0;
        if let Some(word) = word
            && word_children > 0
            && let Some(child) = self.edges.get(&(node, word))
        {
            steps += self.enter(*child, found);
        }
        if let Some(star) = star {
            steps += self.enter(star, found);
        }
        steps
    }

    /// Adds a node to the next step, and also the `#` below it, which matches no word at all.
    fn enter(&mut self, node: NodeIndex, found: &mut impl FnMut(Target)) -> u64 {
        let entered = &mut self.nodes[node as usize];
        if entered.step == self.step {
            return 0;
        }
        entered.step = self.step;
        self.next.push(node);
        match entered.hash {
            None => 1,
            Some(hash) => 1 + self.enter_hash(hash, found),
        }
    }

    fn enter_hash(&mut self, hash: NodeIndex, found: &mut impl FnMut(Target)) -> u64 {
        let entered = &mut self.nodes[hash as usize];
        if entered.step >= self.step_begun {
            return 0;
        }
        entered.step = self.step;
        entered.destinations.each(found);
        if !entered.ends_here() {
            self.standing.push(hash);
        }
        1
    }

    fn child(&self, node: NodeIndex, word: &str) -> Option<NodeIndex> {
        let found = &self.nodes[node as usize];
        match word {
            "*" => found.star,
            // `#.#` means the same as `#`.
            "#" if matches!(found.origin, Some((_, Edge::Hash))) => Some(node),
            "#" => found.hash,
            word => {
                let word = self.words.get(word)?;
                self.edges.get(&(node, word.number)).copied()
            }
        }
    }

    fn add_child(&mut self, parent: NodeIndex, word: &str) -> NodeIndex {
        let child = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as NodeIndex - 1
        });
        let mut is_below_hash = self.nodes[parent as usize].is_below_hash;
        let edge = match word {
            "*" => {
                self.nodes[parent as usize].star = Some(child);
                Edge::Star
            }
            "#" => {
                self.nodes[parent as usize].hash = Some(child);
                is_below_hash = true;
                Edge::Hash
            }
            word => {
                let parent_node = &mut self.nodes[parent as usize];
                parent_node.word_children += 1;
                parent_node.heaviest.add(0);
                let (word, number) = self.intern(word);
                self.edges.insert((parent, number), child);
                Edge::Word(word)
            }
        };
        let made = &mut self.nodes[child as usize];
        made.origin = Some((parent, edge));
        made.is_below_hash = is_below_hash;
        child
    }

    /// `weight`: of the removed child.
    fn remove_edge(&mut self, parent: NodeIndex, edge: &Edge, weight: Weight) {
        let node = &mut self.nodes[parent as usize];
        node.replace(edge, weight, Weight::default());
        match edge {
            Edge::Star => node.star = None,
            Edge::Hash => node.hash = None,
            Edge::Word(text) => {
                node.word_children -= 1;
                node.heaviest.remove(0);
                if let Some(word) = self.words.get_mut(text) {
                    self.edges.remove(&(parent, word.number));
                    word.edges -= 1;
                    if word.edges == 0 {
                        self.words.remove(text);
                    }
                }
            }
        }
    }

    /// Updates the weight of a node after a change, and those of its ancestors as far as they change.
    fn weigh_up_from(&mut self, mut node: NodeIndex) {
        loop {
            let weight = self.weigh(node);
            let weighed = &mut self.nodes[node as usize];
            let before = std::mem::replace(&mut weighed.weight, weight);
            if before == weight {
                return;
            }
            let Some((parent, edge)) = weighed.origin.clone() else {
                return;
            };
            self.nodes[parent as usize].replace(&edge, before, weight);
            node = parent;
        }
    }

    fn weigh(&self, node: NodeIndex) -> Weight {
        let Node {
            star,
            hash,
            is_below_hash,
            heaviest,
            standing_below,
            ..
        } = &self.nodes[node as usize];
        let mut weight = Weight {
            walk: 1 + heaviest.max(),
            standing: *standing_below,
        };
        if let Some(star) = star {
            weight.walk += self.nodes[*star as usize].weight.walk;
        }
        if let Some(hash) = hash {
            weight.walk += 1;
            let hash = &self.nodes[*hash as usize];
            if !hash.ends_here() {
                // A standing node may end at every word.
                let standing = WORDS_MAX * hash.weight.walk;
                match is_below_hash {
                    true => weight.standing += standing,
                    false => weight.walk += standing + hash.weight.standing,
                }
            }
        }
        weight
    }

    fn intern(&mut self, text: &str) -> (Arc<str>, WordNumber) {
        let text = match self.words.get_key_value(text) {
            Some((known, _)) => known.clone(),
            None => text.into(),
        };
        let word = self.words.get_or_insert_with(text.clone(), || {
            self.words_made += 1;
            Word {
                number: self.words_made,
                edges: 0,
            }
        });
        word.edges += 1;
        (text, word.number)
    }
}

impl Node {
    fn is_leaf(&self) -> bool {
        self.ends_here() && self.hash.is_none() && self.destinations.is_empty()
    }

    /// No word leads on.
    fn ends_here(&self) -> bool {
        self.star.is_none() && self.word_children == 0
    }

    /// Updates the weight of a child.
    fn replace(&mut self, edge: &Edge, before: Weight, after: Weight) {
        if let Edge::Word(_) = edge {
            self.heaviest.remove(before.walk);
            self.heaviest.add(after.walk);
        }
        // Above a `#` there is no sum: of several children, a key may see one.
        if self.is_below_hash {
            self.standing_below = self.standing_below - before.standing + after.standing;
        }
    }
}
