//! Wildcard patterns as a tree of URI components.
//!
//! ```text
//! com ─ app ─ "" ─ created = 1        com.app..created
//!           └ users ─ "" = 2          com.app.users.
//! ```
//!
//! A component of the pattern that is empty matches any one component of the URI.

use std::collections::HashMap;

use ahash::RandomState;

/// Components of a wildcard pattern. Matching walks the tree by recursion, and this bounds it.
pub(crate) const WILDCARD_COMPONENTS_MAX: usize = 128;

/// A map from wildcard patterns to `V`.
#[derive(Debug)]
pub(crate) struct WildcardTree<V> {
    root: Node<V>,
    len: usize,
    keys: RandomState,
}

#[derive(Debug)]
struct Node<V> {
    named: HashMap<Box<str>, Self, RandomState>,
    any: Option<Box<Self>>,
    value: Option<V>,
}

impl<V: Copy> WildcardTree<V> {
    pub(crate) fn new(keys: RandomState) -> Self {
        Self {
            root: Node::new(&keys),
            len: 0,
            keys,
        }
    }

    pub(crate) fn insert(&mut self, pattern: &str, value: V) {
        let mut node = &mut self.root;
        for component in pattern.split('.') {
            node = if component.is_empty() {
                node.any
                    .get_or_insert_with(|| Box::new(Node::new(&self.keys)))
            } else {
                node.named
                    .entry(component.into())
                    .or_insert_with(|| Node::new(&self.keys))
            };
        }
        if node.value.replace(value).is_none() {
            self.len += 1;
        }
    }

    pub(crate) fn remove(&mut self, pattern: &str) {
        if self.root.remove(&mut pattern.split('.')) {
            self.len -= 1;
        }
    }

    /// The value of that very pattern.
    pub(crate) fn value(&self, pattern: &str) -> Option<V> {
        let mut node = &self.root;
        for component in pattern.split('.') {
            node = if component.is_empty() {
                node.any.as_deref()?
            } else {
                node.named.get(component)?
            };
        }
        node.value
    }

    /// The best match for a call (WAMP advanced profile, "Calls matching multiple
    /// registrations"): the one with the longest run of named components before its first
    /// wildcard, then before its second, and so on. That is the first one found by a walk that
    /// tries the named component before the wildcard.
    pub(crate) fn best(&self, uri: &str) -> Option<V> {
        if self.len == 0 {
            return None;
        }
        self.root.best(uri.split('.'))
    }

    pub(crate) fn for_each(&self, uri: &str, found: &mut impl FnMut(V)) {
        if self.len > 0 {
            self.root.for_each(uri.split('.'), found);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl<V: Copy> Node<V> {
    fn new(keys: &RandomState) -> Self {
        Self {
            named: HashMap::with_hasher(keys.clone()),
            any: None,
            value: None,
        }
    }

    /// Whether the pattern was there. Nodes that lead nowhere any more are removed.
    fn remove(&mut self, pattern: &mut std::str::Split<'_, char>) -> bool {
        match pattern.next() {
            None => self.value.take().is_some(),
            Some("") => {
                let Some(next) = &mut self.any else {
                    return false;
                };
                let removed = next.remove(pattern);
                if next.is_empty() {
                    self.any = None;
                }
                removed
            }
            Some(component) => {
                let Some(next) = self.named.get_mut(component) else {
                    return false;
                };
                let removed = next.remove(pattern);
                if next.is_empty() {
                    self.named.remove(component);
                }
                removed
            }
        }
    }

    fn best(&self, mut uri: std::str::Split<'_, char>) -> Option<V> {
        let Some(component) = uri.next() else {
            return self.value;
        };
        self.named
            .get(component)
            .and_then(|next| next.best(uri.clone()))
            .or_else(|| self.any.as_ref().and_then(|next| next.best(uri)))
    }

    fn for_each(&self, mut uri: std::str::Split<'_, char>, found: &mut impl FnMut(V)) {
        let Some(component) = uri.next() else {
            return self.value.into_iter().for_each(found);
        };
        if let Some(next) = self.named.get(component) {
            next.for_each(uri.clone(), found);
        }
        if let Some(next) = &self.any {
            next.for_each(uri, found);
        }
    }

    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.any.is_none() && self.value.is_none()
    }
}
