//! Entries of one kind in three layers: the configuration, the changes at run time, the defaults.

use std::collections::{BTreeMap, BTreeSet};

/// The layer that an entry is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration names the entry, under this key.
    Configured(&'static str),
    /// Nothing names the entry; it is deleted or replaced at run time.
    Default,
    RunTime,
}

/// The present entries, and the defaults that were deleted.
#[derive(Clone, Debug)]
pub(crate) struct Layered<K, V> {
    now: BTreeMap<K, (V, Origin)>,
    defaults: BTreeSet<K>,
    deleted: BTreeSet<K>,
}

/// The task of a store after a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The record is deleted.
    Forgotten,
    /// A record says that the default is deleted.
    DefaultDeleted,
}

impl<K: Ord + Clone, V: Clone> Layered<K, V> {
    pub(crate) fn new(layers: impl IntoIterator<Item = (K, V, Origin)>) -> Self {
        let mut layered = Self {
            now: BTreeMap::new(),
            defaults: BTreeSet::new(),
            deleted: BTreeSet::new(),
        };
        for (key, value, origin) in layers {
            if origin == Origin::Default {
                layered.defaults.insert(key.clone());
            }
            layered.now.insert(key, (value, origin));
        }
        layered
    }

    /// Takes an entry from a store; without a value, a default that is deleted. Returns whether the configuration has
    /// an entry of that key, which counts then.
    pub(crate) fn restore(&mut self, key: K, value: Option<V>) -> bool {
        if self.configured(&key).is_some() {
            return true;
        }
        match value {
            Some(value) => {
                self.now.insert(key, (value, Origin::RunTime));
            }
            None => {
                self.now.remove(&key);
                self.deleted.insert(key);
            }
        }
        false
    }

    /// The entries of a store: those made at run time, and the deleted defaults.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (&K, Option<&V>)> {
        let made = self
            .now
            .iter()
            .filter(|(_, (_, origin))| *origin == Origin::RunTime);
        let made = made.map(|(key, (value, _))| (key, Some(value)));
        made.chain(self.deleted.iter().map(|key| (key, None)))
    }

    /// Adds or replaces an entry that the configuration does not have. Returns whether there was one.
    pub(crate) fn put(&mut self, key: K, value: V) -> bool {
        self.deleted.remove(&key);
        self.now.insert(key, (value, Origin::RunTime)).is_some()
    }

    /// Removes an entry, whichever layer it is from; `None` if there is none.
    pub(crate) fn remove(&mut self, key: &K) -> Option<Removed> {
        self.now.remove(key)?;
        if self.defaults.contains(key) {
            self.deleted.insert(key.clone());
            return Some(Removed::DefaultDeleted);
        }
        Some(Removed::Forgotten)
    }

    /// The key of the configuration that names the entry.
    pub(crate) fn configured(&self, key: &K) -> Option<&'static str> {
        match self.now.get(key)?.1 {
            Origin::Configured(by) => Some(by),
            Origin::Default | Origin::RunTime => None,
        }
    }

    /// Replaces the keys. Those that stay keep their layer; others are of run time, with that value.
    pub(crate) fn set_keys(&mut self, keys: &BTreeSet<K>, value: &V) {
        self.now.retain(|key, _| keys.contains(key));
        for key in keys {
            if !self.now.contains_key(key) {
                self.now
                    .insert(key.clone(), (value.clone(), Origin::RunTime));
            }
        }
    }

    /// Replaces the entries of run time whose keys pass by those of another.
    pub(crate) fn replace(&mut self, by: &Self, is_meant: impl Fn(&K) -> bool) {
        self.retain(|key| !is_meant(key));
        self.deleted.retain(|key| !is_meant(key));
        for (key, (value, origin)) in &by.now {
            if *origin == Origin::RunTime && is_meant(key) && self.configured(key).is_none() {
                self.now
                    .insert(key.clone(), (value.clone(), Origin::RunTime));
            }
        }
    }

    /// Keeps the entries of run time whose keys pass.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&K) -> bool) {
        self.now
            .retain(|key, (_, origin)| *origin != Origin::RunTime || keeps(key));
    }

    pub(crate) fn find(&self, key: &K) -> Option<&V> {
        self.now.get(key).map(|(value, _)| value)
    }

    pub(crate) fn origin(&self, key: &K) -> Option<Origin> {
        self.now.get(key).map(|(_, origin)| *origin)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.now.iter().map(|(key, (value, _))| (key, value))
    }
}
