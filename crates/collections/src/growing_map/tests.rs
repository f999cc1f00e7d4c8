//! A map in pieces beside the standard library's.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::split::BITS_MAX;
use super::*;
use crate::SplitMix;

/// Numbers from a seed.
struct Random(SplitMix);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        (self.0.number() % bound as u64) as usize
    }
}

/// Does the same to it and to the standard library's map, as a seed says.
fn check<S: BuildHasher>(mut map: GrowingMap<u64, u64, S>, steps: u64, keys: usize) {
    let (mut model, mut random) = (HashMap::new(), Random(SplitMix(7)));
    for step in 0..steps {
        let key = random.below(keys) as u64;
        // It grows for a quarter of the steps, then shrinks, and does both again.
        let grows = (step / (steps / 4)).is_multiple_of(2);
        if (random.below(8) < 7) == grows {
            match random.below(3) {
                0 => assert_eq!(map.insert(key, step), model.insert(key, step)),
                1 => {
                    let value = *map.get_or_insert_with(key, || step);
                    assert_eq!(value, *model.entry(key).or_insert(step));
                }
                _ => {
                    assert_eq!(map.get_mut(&key), model.get_mut(&key));
                    assert_eq!(map.get_key_value(&key), model.get_key_value(&key));
                    assert_eq!(map.insert(key, step), model.insert(key, step));
                }
            }
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

/// Asserts that each place leads to the table of its hashes, and each entry is found.
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
    let keys = ahash::RandomState::with_seeds(1, 2, 3, 4);
    check(GrowingMap::with_hasher(keys), 200_000, 50_000);
}

/// Keys inserted as new ones are found like all others, on both sides of a split.
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

/// The memory of most entries is free before the last one is removed.
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
