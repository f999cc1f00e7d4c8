//! A map to places of a slab whose entries have the keys: a table of keys beside them would be most of its memory.

use std::hash::{BuildHasher, Hash, Hasher};

use crate::GrowingMap;

/// Eight bytes an entry. Hashes are the owner's, and so is the comparison: the entry at a place either has the key or not.
#[derive(Debug, Default)]
pub struct PlaceMap(GrowingMap<Hashed, (), Spread>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Hashed {
    hash: u32,
    place: u32,
}

impl PlaceMap {
    /// The place of a key with that hash, for which `is` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.0.find(spread(hash as u32), |known| is(known.place))?;
        Some(found.place)
    }

    /// Adds a key that is not in the map.
    pub fn insert_new(&mut self, hash: u64, place: u32) {
        let hash = hash as u32;
        self.0.insert_new(Hashed { hash, place }, ());
    }

    /// Removes a key by its place.
    pub fn remove(&mut self, hash: u64, place: u32) {
        let hash = hash as u32;
        self.0.remove(&Hashed { hash, place });
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A table chooses by low and high bits, a map of several by those between.
#[inline(always)]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

/// The hasher of a hash.
#[derive(Clone, Copy, Default)]
struct Spread;

struct Spreading(u64);

impl BuildHasher for Spread {
    type Hasher = Spreading;

    fn build_hasher(&self) -> Spreading {
        Spreading(0)
    }
}

impl Hasher for Spreading {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        // Only `write_u32` is called.
    }

    fn write_u32(&mut self, hash: u32) {
        self.0 = spread(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SplitMix, mix};

    #[test]
    fn every_key_is_found_at_its_place() {
        // The last ones are so many that tables are split, and all have few hashes.
        for (count, hashes) in [(1, 1), (100, 7), (20_000, u64::MAX), (20_000, 5_000)] {
            let hash = |key: u64| mix(key) % hashes;
            let mut random = SplitMix(3);
            let (mut keys, mut map) = (Vec::new(), PlaceMap::default());
            for place in 0..count {
                let key = random.number();
                keys.push(Some(key));
                map.insert_new(hash(key), place);
            }
            for place in (0..count).step_by(3) {
                let key = keys[place as usize].take().expect("a key");
                map.remove(hash(key), place);
                let found = map.find(hash(key), |at| keys[at as usize] == Some(key));
                assert_eq!(found, None);
            }
            assert_eq!(map.len(), keys.iter().flatten().count());
            for (place, key) in keys.iter().enumerate() {
                let Some(key) = key else { continue };
                let found = map.find(hash(*key), |at| keys[at as usize] == Some(*key));
                assert_eq!(found, Some(place as u32));
            }
        }
    }

    #[test]
    fn an_entry_takes_eight_bytes() {
        assert_eq!(size_of::<(Hashed, ())>(), 8);
    }
}
