//! A hash map whose longest insertion does not grow with what it holds.
//!
//! A plain hash map that is full moves all its entries into one twice as large: a realm with 1.8 million
//! subscriptions was locked for half a second while three maps did so at once. Here a full table of
//! [`TABLE_ENTRIES_MAX`] is split in two by one more bit of the hashes, and the others stay as they are
//! (extendible hashing: Fagin, Nievergelt, Pippenger and Strong, 1979):
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

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::mem;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Entries of a table that is not split: what 8,192 places of a hash table take. To split one takes
/// about a millisecond where the keys are texts out of the cache, and up to here a map costs what a
/// plain one does; an operation of a map that is split takes some 60 instructions more.
const TABLE_ENTRIES_MAX: usize = 7_168;

/// Bits of the hash that choose a table. Tables grow alone beyond, which takes 4 × 10^8 entries, or keys
/// that collide: then a map is as good as a plain one, and has no more than 65,536 tables.
const BITS_MAX: u32 = 16;

/// The lowest of those bits. A table takes the lowest and the seven highest ones for itself.
const BITS_FROM: u32 = 32;

/// A hash map in pieces.
pub(crate) struct GrowingMap<K, V, S> {
    /// The only table of a map that never was full; empty in one that is split.
    only: HashTable<(K, V)>,
    split: Option<Box<Split<K, V>>>,
    hasher: S,
}

/// The tables of a map that was full once, until it is empty.
struct Split<K, V> {
    tables: Vec<Table<K, V>>,
    /// By the hash's bits: the table. There are two to the power of the most bits that a table has.
    places: Vec<u16>,
    len: usize,
}

/// The entries whose hashes have some bits in common.
struct Table<K, V> {
    entries: HashTable<(K, V)>,
    bits: u32,
}

impl<K, V, S> GrowingMap<K, V, S>
where
    K: Eq + Hash,
    S: BuildHasher,
{
    pub(crate) fn with_hasher(hasher: S) -> Self {
        Self {
            only: HashTable::new(),
            split: None,
            hasher,
        }
    }

    #[inline]
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<&V>
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

    /// Sets a key's value; the one that it had.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(&key);
        if self.split.is_some() || self.only.len() >= TABLE_ENTRIES_MAX {
            return self.insert_split(hash, key, value);
        }
        set(&mut self.only, hash, (key, value), &self.hasher)
    }

    /// The same for a key that is not in the map, which is not looked for.
    #[inline]
    pub(crate) fn insert_new(&mut self, key: K, value: V) {
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
    #[inline]
    pub(crate) fn remove<Q>(&mut self, key: &Q) -> Option<V>
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

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        let split = self.split.iter().flat_map(|split| &split.tables);
        let tables = split.map(|table| &table.entries);
        let entries = self.only.iter().chain(tables.flatten());
        entries.map(|(key, _)| key)
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
        // What many entries took is free when most of them are gone, a table at a time.
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

impl<K: Hash, V> Split<K, V> {
    fn of(entries: HashTable<(K, V)>) -> Self {
        Self {
            len: entries.len(),
            tables: vec![Table { entries, bits: 0 }],
            places: vec![0],
        }
    }

    /// The table of a hash.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        let bits = (hash >> BITS_FROM) as usize;
        usize::from(self.places[bits & (self.places.len() - 1)])
    }

    /// The table of a hash, which is split where it is full.
    fn make_room(&mut self, hash: u64, hasher: &impl BuildHasher) -> usize {
        loop {
            let place = self.place(hash);
            let table = &mut self.tables[place];
            if table.entries.len() < TABLE_ENTRIES_MAX || table.bits == BITS_MAX {
                return place;
            }
            let bit = 1 << table.bits;
            table.bits += 1;
            let bits = table.bits;
            let is_other =
                |(key, _): &mut (K, V)| (hasher.hash_one(key) >> BITS_FROM) as usize & bit != 0;
            let mut other = HashTable::with_capacity(TABLE_ENTRIES_MAX);
            for entry in table.entries.extract_if(is_other) {
                let hash = hasher.hash_one(&entry.0);
                other.insert_unique(hash, entry, |(key, _)| hasher.hash_one(key));
            }
            if self.places.len() == bit {
                self.places.extend_from_within(..);
            }
            let new = self.tables.len() as u16;
            let first = (hash >> BITS_FROM) as usize & (bit - 1) | bit;
            for place in self.places.iter_mut().skip(first).step_by(2 * bit) {
                *place = new;
            }
            self.tables.push(Table {
                entries: other,
                bits,
            });
        }
    }
}

impl<K, V, S> GrowingMap<K, V, S>
where
    K: Eq + Hash,
    S: BuildHasher + Default,
{
    pub(crate) fn new() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> GrowingMap<K, V, S> {
    pub(crate) fn len(&self) -> usize {
        match &self.split {
            None => self.only.len(),
            Some(split) => split.len,
        }
    }
}

impl<K, V, S> fmt::Debug for GrowingMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrowingMap of {}", self.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rustc_hash::FxBuildHasher;

    use super::*;
    use crate::random::Random;

    /// Does the same to it and to the standard library's map, as a seed says.
    fn check<S: BuildHasher>(mut map: GrowingMap<u64, u64, S>, steps: u64, keys: usize) {
        let (mut model, mut random) = (HashMap::new(), Random::new(7));
        for step in 0..steps {
            let key = random.below(keys) as u64;
            // It grows for a quarter of the steps, then shrinks, and does both again.
            let grows = (step / (steps / 4)).is_multiple_of(2);
            if (random.below(8) < 7) == grows {
                assert_eq!(map.insert(key, step), model.insert(key, step));
            } else {
                assert_eq!(map.remove(&key), model.remove(&key));
            }
            let key = random.below(keys) as u64;
            assert_eq!((map.len(), map.get(&key)), (model.len(), model.get(&key)));
            if step.is_multiple_of(steps / 16) {
                check_tables(&map);
                assert_eq!(sorted(map.keys()), sorted(model.keys()));
            }
        }
        for key in sorted(map.keys()) {
            assert_eq!(map.remove(&key), model.remove(&key));
        }
        assert!(map.is_empty() && model.is_empty() && map.split.is_none());
        assert_eq!(map.keys().count(), 0);
    }

    fn sorted<'k>(keys: impl Iterator<Item = &'k u64>) -> Vec<u64> {
        let mut keys: Vec<_> = keys.copied().collect();
        keys.sort_unstable();
        keys
    }

    /// Asserts that each place leads to the table whose hashes end as it says, and each entry is there.
    fn check_tables<K: Hash, V, S: BuildHasher>(map: &GrowingMap<K, V, S>) {
        let Some(split) = &map.split else { return };
        assert!(map.only.is_empty());
        let mut places = vec![0; split.tables.len()];
        split
            .places
            .iter()
            .for_each(|place| places[usize::from(*place)] += 1);
        for (place, table) in split.tables.iter().enumerate() {
            assert_eq!(places[place] << table.bits, split.places.len());
            for (key, _) in &table.entries {
                assert_eq!(split.place(map.hasher.hash_one(key)), place);
            }
        }
        let entries = split.tables.iter().map(|table| table.entries.len());
        assert_eq!(entries.sum::<usize>(), split.len);
    }

    #[test]
    fn it_is_a_map() {
        check(GrowingMap::<_, _, FxBuildHasher>::new(), 4_000, 100);
        check(GrowingMap::<_, _, FxBuildHasher>::new(), 200_000, 50_000);
        let keys = Random::new(1).hash_keys();
        check(GrowingMap::with_hasher(keys), 200_000, 50_000);
    }

    /// What was promised not to be in the map is found like everything else, on both sides of a split.
    #[test]
    fn new_keys_need_no_search() {
        let mut map = GrowingMap::<_, _, FxBuildHasher>::new();
        for number in 0..20_000_u64 {
            map.insert_new(number, number);
            assert_eq!(map.len() as u64, number + 1);
        }
        check_tables(&map);
        assert!((0..20_000).all(|number| map.get(&number) == Some(&number)));
    }

    #[test]
    fn no_table_is_longer_than_it_may_be() {
        let mut map = GrowingMap::<_, _, FxBuildHasher>::new();
        for number in 0..200_000_u64 {
            map.insert((7_u32, number), ());
        }
        let split = map.split.as_ref().expect("it was full");
        let longest = split.tables.iter().map(|table| table.entries.len()).max();
        assert!(longest <= Some(TABLE_ENTRIES_MAX));
        assert!(split.tables.len() < 4 * 200_000 / TABLE_ENTRIES_MAX);
    }

    /// Of keys that all hash alike, the map is one long table, and not many.
    #[test]
    fn collisions_do_not_split_for_ever() {
        #[derive(Default)]
        struct Alike;
        impl std::hash::Hasher for Alike {
            fn finish(&self) -> u64 {
                1
            }
            fn write(&mut self, _bytes: &[u8]) {}
        }
        let hasher = std::hash::BuildHasherDefault::<Alike>::new();
        let mut map = GrowingMap::with_hasher(hasher);
        for number in 0..8_000_u64 {
            map.insert_new(number, number);
        }
        let split = map.split.as_ref().expect("it was full");
        assert_eq!(split.tables.len(), 1 + BITS_MAX as usize);
        let mut some = (0..8_000).step_by(500);
        assert!(some.all(|number| map.get(&number) == Some(&number)));
    }

    /// What most entries took is free before the last one has gone.
    #[test]
    fn room_is_given_back() {
        let mut map = GrowingMap::<_, _, FxBuildHasher>::new();
        for number in 0..100_000_u64 {
            map.insert(number, number);
        }
        for number in 0..99_900 {
            map.remove(&number);
        }
        let split = map.split.as_ref().expect("it was full");
        let room = split.tables.iter().map(|table| table.entries.capacity());
        assert!(room.sum::<usize>() < 2_000);
        check_tables(&map);
    }
}
