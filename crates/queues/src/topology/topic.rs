//! Patterns of topic exchanges: words between dots, `*` for one word, `#` for any number of them.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use rustc_hash::FxHashMap;

use super::destinations::{Destinations, Target};

/// All patterns of one exchange. Those without wildcards are a map: many exchanges have no others,
/// and then a key costs one look-up. The others are a trie of words.
#[derive(Debug)]
pub(super) struct Topic {
    literals: HashMap<Arc<str>, Destinations, RandomState>,
    wildcards: Trie,
}

/// Words are numbered, so that a word of a key is hashed once, however many nodes ask for it.
///
/// A key walks the trie as a set of nodes, one step per word, each node at most once per step:
/// the work is bounded by words × nodes, also for patterns such as `#.a.#.a.#`, where following
/// each possibility by itself would take exponential time.
#[derive(Debug)]
struct Trie {
    words: HashMap<Arc<str>, Word, RandomState>,
    words_made: WordNumber,
    edges: FxHashMap<(NodeIndex, WordNumber), NodeIndex>,
    nodes: Vec<Node>,
    free: Vec<NodeIndex>,
    patterns: usize,
    // Kept between messages, so that routing allocates nothing.
    step: u64,
    current: Vec<NodeIndex>,
    next: Vec<NodeIndex>,
}

type NodeIndex = u32;
type WordNumber = u64;

const ROOT: NodeIndex = 0;

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
    /// Without `star` and `hash`.
    word_children: u32,
    destinations: Destinations,
    /// The step that it was last part of.
    step: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Edge {
    Star,
    Hash,
    Word(Arc<str>),
}

impl Topic {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            literals: HashMap::with_hasher(hasher.clone()),
            wildcards: Trie::new(hasher),
        }
    }

    pub(super) fn insert(&mut self, pattern: &Arc<str>, target: Target) {
        if has_wildcard(pattern) {
            self.wildcards.insert(pattern, target);
        } else {
            let destinations = self.literals.entry(pattern.clone()).or_default();
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

    /// Every target of a pattern that a key matches, some of them more than once.
    pub(super) fn each(&mut self, key: &str, found: &mut impl FnMut(Target)) {
        if let Some(destinations) = self.literals.get(key) {
            destinations.each(found);
        }
        if self.wildcards.patterns > 0 {
            self.wildcards.each(key, found);
        }
    }
}

/// The empty key has no word at all, as RabbitMQ has it: `#` matches it, `*` does not.
fn words(key: &str) -> impl Iterator<Item = &str> {
    let words_max = if key.is_empty() { 0 } else { usize::MAX };
    key.split('.').take(words_max)
}

fn has_wildcard(pattern: &str) -> bool {
    words(pattern).any(|word| matches!(word, "*" | "#"))
}

impl Trie {
    fn new(hasher: &RandomState) -> Self {
        Self {
            words: HashMap::with_hasher(hasher.clone()),
            words_made: 0,
            edges: FxHashMap::default(),
            nodes: vec![Node::default()],
            free: Vec::new(),
            patterns: 0,
            step: 0,
            current: Vec::new(),
            next: Vec::new(),
        }
    }

    fn insert(&mut self, pattern: &str, target: Target) {
        let mut node = ROOT;
        for word in words(pattern) {
            node = match self.child(node, word) {
                Some(child) => child,
                None => self.add_child(node, word),
            };
        }
        self.nodes[node as usize].destinations.insert(target);
        self.patterns += 1;
    }

    fn remove(&mut self, pattern: &str, target: Target) {
        let found = words(pattern).try_fold(ROOT, |node, word| self.child(node, word));
        let Some(mut node) = found else {
            return;
        };
        self.nodes[node as usize].destinations.remove(target);
        self.patterns -= 1;
        while self.nodes[node as usize].is_leaf()
            && let Some((parent, edge)) = self.nodes[node as usize].origin.take()
        {
            self.remove_edge(parent, &edge);
            self.free.push(node);
            node = parent;
        }
    }

    fn each(&mut self, key: &str, found: &mut impl FnMut(Target)) {
        self.next.clear();
        self.step += 1;
        self.enter(ROOT);
        for word in words(key) {
            std::mem::swap(&mut self.current, &mut self.next);
            self.next.clear();
            self.step += 1;
            let word = self.words.get(word).map(|word| word.number);
            for position in 0..self.current.len() {
                self.advance(self.current[position], word);
            }
            if self.next.is_empty() {
                return;
            }
        }
        for node in &self.next {
            self.nodes[*node as usize].destinations.each(found);
        }
    }

    /// Enters every node that a word leads to from `node`.
    fn advance(&mut self, node: NodeIndex, word: Option<WordNumber>) {
        if let Some(word) = word
            && let Some(child) = self.edges.get(&(node, word))
        {
            self.enter(*child);
        }
        let Node { star, origin, .. } = &self.nodes[node as usize];
        let is_hash = matches!(origin, Some((_, Edge::Hash)));
        if let Some(star) = *star {
            self.enter(star);
        }
        if is_hash {
            self.enter(node);
        }
    }

    /// A node becomes part of the next step, and so does what `#` leads to with no word at all.
    fn enter(&mut self, node: NodeIndex) {
        let entered = &mut self.nodes[node as usize];
        if entered.step == self.step {
            return;
        }
        entered.step = self.step;
        self.next.push(node);
        // No deeper than this: a `#` has no `#` below it.
        if let Some(hash) = entered.hash {
            self.enter(hash);
        }
    }

    fn child(&self, node: NodeIndex, word: &str) -> Option<NodeIndex> {
        let found = &self.nodes[node as usize];
        match word {
            "*" => found.star,
            // `#.#` says the same as `#`.
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
        let edge = match word {
            "*" => {
                self.nodes[parent as usize].star = Some(child);
                Edge::Star
            }
            "#" => {
                self.nodes[parent as usize].hash = Some(child);
                Edge::Hash
            }
            word => {
                self.nodes[parent as usize].word_children += 1;
                let (word, number) = self.intern(word);
                self.edges.insert((parent, number), child);
                Edge::Word(word)
            }
        };
        self.nodes[child as usize].origin = Some((parent, edge));
        child
    }

    fn remove_edge(&mut self, parent: NodeIndex, edge: &Edge) {
        let node = &mut self.nodes[parent as usize];
        match edge {
            Edge::Star => node.star = None,
            Edge::Hash => node.hash = None,
            Edge::Word(text) => {
                node.word_children -= 1;
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

    fn intern(&mut self, text: &str) -> (Arc<str>, WordNumber) {
        let text = match self.words.get_key_value(text) {
            Some((known, _)) => known.clone(),
            None => text.into(),
        };
        let word = self.words.entry(text.clone()).or_insert_with(|| {
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
        self.star.is_none()
            && self.hash.is_none()
            && self.word_children == 0
            && self.destinations.is_empty()
    }
}
