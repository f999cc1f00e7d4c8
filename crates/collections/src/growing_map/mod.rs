//! A hash map whose longest insertion does not grow with its size.
//!
//! A plain hash map that is full moves all its entries into one twice as large: a realm with 1.8 million subscriptions
//! was locked for half a second while three maps did so at once. Here a full table of
//! [`TABLE_ENTRIES_MAX`](split::TABLE_ENTRIES_MAX) is split in two by one more bit of the hashes, and the others stay
//! as they are (extendible hashing: Fagin, Nievergelt, Pippenger and Strong, 1979):
//!
//! ```text
//!   hash ─ some middle bits ─► places ──► tables
//!                              0 0 ─────► 0          all hashes that end in 0
//!                              0 1 ─────► 1          … in 01
//!                              1 0 ─────► 0
//!                              1 1 ─────► 2          … in 11
//! ```
//!
//! A map that never was full is one table, so that usual sizes pay a branch for it.

mod split;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::mem;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use split::{Split, TABLE_ENTRIES_MAX};

/// A hash map in pieces.
pub struct GrowingMap<K, V, S> {
    /// The only table of a map that never was full; empty in one that is split.
    only: HashTable<(K, V)>,
    split: Option<Box<Split<K, V>>>,
    hasher: S,
}

impl<K, V, S> GrowingMap<K, V, S>
where
    K: Eq + Hash,
    S: BuildHasher,
{
    pub fn with_hasher(hasher: S) -> Self {
        Self {
            only: HashTable::new(),
            split: None,
            hasher,
        }
    }

    #[inline(always)]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        // One question for two rare cases: of a split map, the only table is empty.
        if self.only.is_empty() {
            return self.get_split(key);
        }
        let hash = self.hasher.hash_one(key);
        let entry = self.only.find(hash, |(known, _)| known.borrow() == key)?;
        Some(&entry.1)
    }

    /// The first key with that hash for which `is` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&K> {
        if self.only.is_empty() {
            return self.find_split(hash, is);
        }
        let found = self.only.find(hash, |(key, _)| is(key))?;
        Some(&found.0)
    }

    /// The same with the key as the map has it.
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let entry = self
            .table(hash)
            .find(hash, |(known, _)| known.borrow() == key)?;
        Some((&entry.0, &entry.1))
    }

    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.get(key).is_some()
    }

    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let table = self.table_mut(hash);
        let entry = table.find_mut(hash, |(known, _)| known.borrow() == key)?;
        Some(&mut entry.1)
    }

    /// A key's value, created if absent.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let hash = self.hasher.hash_one(&key);
        let hasher = &self.hasher;
        let (table, len) = if self.split.is_some() || self.only.len() >= TABLE_ENTRIES_MAX {
            let split = self.split.get_or_insert_with(|| {
                let entries = mem::take(&mut self.only);
                Box::new(Split::of(entries))
            });
            let place = split.make_room(hash, hasher);
            (&mut split.tables[place].entries, Some(&mut split.len))
        } else {
            (&mut self.only, None)
        };
        let is_key = |(known, _): &(K, V)| *known == key;
        match table.entry(hash, is_key, |(key, _)| hasher.hash_one(key)) {
            Entry::Occupied(entry) => &mut entry.into_mut().1,
            Entry::Vacant(entry) => {
                if let Some(len) = len {
                    *len += 1;
                }
                &mut entry.insert((key, make())).into_mut().1
            }
        }
    }

    /// Sets a key's value; the one that it had.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(&key);
        if self.split.is_some() || self.only.len() >= TABLE_ENTRIES_MAX {
            return self.insert_split(hash, key, value);
        }
        set(&mut self.only, hash, (key, value), &self.hasher)
    }

    /// The same for a key that is not in the map, which is not looked for.
    #[inline]
    pub fn insert_new(&mut self, key: K, value: V) {
        let hash = self.hasher.hash_one(&key);
        if self.split.is_some() || self.only.len() >= TABLE_ENTRIES_MAX {
            self.insert_split(hash, key, value);
            return;
        }
        let hasher = &self.hasher;
        self.only
            .insert_unique(hash, (key, value), |(key, _)| hasher.hash_one(key));
    }

    /// Takes a key out; the value that it had.
    #[inline(always)]
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if self.only.is_empty() {
            return self.remove_split(key);
        }
        let hash = self.hasher.hash_one(key);
        let is_key = |(known, _): &(K, V)| known.borrow() == key;
        let found = self.only.find_entry(hash, is_key).ok()?;
        let ((_, value), _) = found.remove();
        Some(value)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In no order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        let split = self.split.iter().flat_map(|split| &split.tables);
        let tables = split.map(|table| &table.entries);
        let entries = self.only.iter().chain(tables.flatten());
        entries.map(|(key, _)| key)
    }

    /// The table that a hash is in.
    fn table(&self, hash: u64) -> &HashTable<(K, V)> {
        match &self.split {
            None => &self.only,
            Some(split) => &split.tables[split.place(hash)].entries,
        }
    }

    fn table_mut(&mut self, hash: u64) -> &mut HashTable<(K, V)> {
        match &mut self.split {
            None => &mut self.only,
            Some(split) => {
                let place = split.place(hash);
                &mut split.tables[place].entries
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_split(&mut self, hash: u64, key: K, value: V) -> Option<V> {
        let hasher = &self.hasher;
        let split = self.split.get_or_insert_with(|| {
            let entries = mem::take(&mut self.only);
            Box::new(Split::of(entries))
        });
        let place = split.make_room(hash, hasher);
        let before = set(&mut split.tables[place].entries, hash, (key, value), hasher);
        split.len += usize::from(before.is_none());
        before
    }

    #[cold]
    #[inline(never)]
    fn get_split<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let split = self.split.as_deref()?;
        let hash = self.hasher.hash_one(key);
        let entries = &split.tables[split.place(hash)].entries;
        let entry = entries.find(hash, |(known, _)| known.borrow() == key)?;
        Some(&entry.1)
    }

    #[cold]
    #[inline(never)]
    fn find_split(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&K> {
        let split = self.split.as_deref()?;
        let entries = &split.tables[split.place(hash)].entries;
        let found = entries.find(hash, |(key, _)| is(key))?;
        Some(&found.0)
    }

    #[cold]
    #[inline(never)]
    fn remove_split<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let split = self.split.as_deref_mut()?;
        let hash = self.hasher.hash_one(key);
        let is_key = |(known, _): &(K, V)| known.borrow() == key;
        let place = split.place(hash);
        let entries = &mut split.tables[place].entries;
        let ((_, value), _) = entries.find_entry(hash, is_key).ok()?.remove();
        split.len -= 1;
        // The memory of many entries is free when most of them are removed, a table at a time.
        let len = entries.len();
        if len < entries.capacity() / 8 {
            entries.shrink_to(2 * len, |(key, _)| self.hasher.hash_one(key));
        }
        if split.len == 0 {
            self.split = None;
        }
        Some(value)
    }
}

/// Puts an entry into a table; the value that its key had.
#[inline]
fn set<K, V>(
    table: &mut HashTable<(K, V)>,
    hash: u64,
    (key, value): (K, V),
    hasher: &impl BuildHasher,
) -> Option<V>
where
    K: Eq + Hash,
{
    match table.entry(
        hash,
        |(known, _)| *known == key,
        |(key, _)| hasher.hash_one(key),
    ) {
        Entry::Occupied(mut entry) => Some(mem::replace(&mut entry.get_mut().1, value)),
        Entry::Vacant(entry) => {
            entry.insert((key, value));
            None
        }
    }
}

impl<K, V, S> GrowingMap<K, V, S>
where
    K: Eq + Hash,
    S: BuildHasher + Default,
{
    pub fn new() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> GrowingMap<K, V, S> {
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    pub fn len(&self) -> usize {
        match &self.split {
            None => self.only.len(),
            Some(split) => split.len,
        }
    }
}

impl<K, V, S> Default for GrowingMap<K, V, S>
where
    K: Eq + Hash,
    S: BuildHasher + Default,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S> fmt::Debug for GrowingMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrowingMap of {}", self.len())
    }
}
