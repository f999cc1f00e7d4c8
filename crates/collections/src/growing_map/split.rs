//! The tables of a map that was full once.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;

/// Maximum entries of a table: the size of 8,192 places of a hash table. Splitting one takes about a millisecond if the
/// keys are texts out of the cache. Up to here a map costs as much as a plain one; an operation on a split map takes
/// about 60 instructions more.
pub(super) const TABLE_ENTRIES_MAX: usize = 7_168;

/// Bits of the hash that choose a table. Tables grow alone beyond, which takes 4 × 10^8 entries, or keys
/// that collide: then a map is as good as a plain one, and has no more than 65,536 tables.
pub(super) const BITS_MAX: u32 = 16;

/// The lowest of those bits. A table takes the lowest and the seven highest ones for itself.
const BITS_FROM: u32 = 32;

/// The tables of a map that was full once, until it is empty.
pub(super) struct Split<K, V> {
    pub(super) tables: Vec<Table<K, V>>,
    /// By the hash's bits: the table. There are two to the power of the most bits that a table has.
    pub(super) places: Vec<u16>,
    pub(super) len: usize,
}

/// The entries whose hashes have some bits in common.
pub(super) struct Table<K, V> {
    pub(super) entries: HashTable<(K, V)>,
    pub(super) bits: u32,
}

impl<K: Hash, V> Split<K, V> {
    pub(super) fn of(entries: HashTable<(K, V)>) -> Self {
        Self {
            len: entries.len(),
            tables: vec![Table { entries, bits: 0 }],
            places: vec![0],
        }
    }

    /// The table of a hash.
    #[inline]
    pub(super) fn place(&self, hash: u64) -> usize {
        let bits = (hash >> BITS_FROM) as usize;
        usize::from(self.places[bits & (self.places.len() - 1)])
    }

    /// The table of a hash, which is split if it is full.
    pub(super) fn make_room(&mut self, hash: u64, hasher: &impl BuildHasher) -> usize {
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
