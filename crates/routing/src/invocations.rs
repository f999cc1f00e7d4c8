//! The open calls that one callee serves, by their ids.

use crosstie_collections::GrowingMap;
use crosstie_wamp::RequestId;
use rustc_hash::FxBuildHasher;

use crate::keys::CallKey;

/// The open calls of one callee; one word for a session that serves none.
#[derive(Debug, Default)]
pub(crate) struct Invocations(Option<Box<Table>>);

/// A hash table with linear probing. The realm counts the ids up itself, so they need no secret hash, and nearly all find
/// their place free: with one map for all callees, and a list for each, a call and its answer took 80 instructions more.
///
/// At most half of its places are taken. A callee with more calls than [`TABLE_MAX`] has the others in a map, which does
/// not grow at once.
#[derive(Debug, Default)]
struct Table {
    /// None, or a power of two.
    places: Box<[Place]>,
    /// Number of taken places.
    taken: usize,
    more: Option<Box<GrowingMap<RequestId, CallKey, FxBuildHasher>>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Ids count from 1; 0 is a free place.
    id: u64,
    key: CallKey,
}

impl Place {
    const FREE: Self = Self {
        id: 0,
        key: CallKey(0),
    };
}

const PLACES_MIN: usize = 4;

/// Moving so many into a larger table takes a tenth of a millisecond.
const TABLE_MAX: usize = 8 * 1024;

impl Invocations {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.len())
    }

    /// Adds a call, whose id is that of no other one.
    #[inline]
    pub(crate) fn insert(&mut self, id: RequestId, key: CallKey) {
        let table = self.0.get_or_insert_default();
        if table.taken >= table.places.len() / 2 && !table.make_room(id, key) {
            return;
        }
        let at = table.find(id, 0);
        table.places[at] = Place { id: id.0, key };
        table.taken += 1;
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<CallKey> {
        let table = self.0.as_deref()?;
        let place = table.place_of(id).map(|at| table.places[at].key);
        place.or_else(|| table.more.as_ref()?.get(&id).copied())
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<CallKey> {
        let table = self.0.as_deref_mut()?;
        match table.place_of(id) {
            Some(at) => Some(table.take(at)),
            None => table.remove_more(id),
        }
    }

    /// At most that many of the calls.
    pub(crate) fn some(&self, count_max: usize) -> Vec<CallKey> {
        let calls = self.0.iter().flat_map(|table| table.calls());
        calls.take(count_max).collect()
    }
}

impl Table {
    fn len(&self) -> usize {
        self.taken + self.more.as_ref().map_or(0, |more| more.len())
    }

    fn calls(&self) -> impl Iterator<Item = CallKey> {
        let taken = self.places.iter().filter(|place| place.id != 0);
        let more = self.more.iter().flat_map(|more| {
            let ids = more.keys();
            ids.filter_map(|id| more.get(id).copied())
        });
        taken.map(|place| place.key).chain(more)
    }

    /// Frees a taken place.
    #[inline]
    fn take(&mut self, at: usize) -> CallKey {
        let key = self.places[at].key;
        // Those behind it that it kept from their places move up.
        let mask = self.places.len() - 1;
        let (mut hole, mut next) = (at, (at + 1) & mask);
        while self.places[next].id != 0 {
            let first = self.first(self.places[next].id);
            if next.wrapping_sub(first) & mask >= next.wrapping_sub(hole) & mask {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.places[hole].id = 0;
        self.taken -= 1;
        if self.taken < self.places.len() / 16 {
            self.resize((self.places.len() / 4).max(PLACES_MIN));
        }
        key
    }

    #[inline]
    fn place_of(&self, id: RequestId) -> Option<usize> {
        if self.taken == 0 {
            return None;
        }
        let at = self.find(id, id.0);
        (self.places[at].id == id.0 && id.0 != 0).then_some(at)
    }

    /// The first place, from that of `id` on, that has `sought` or is free.
    #[inline]
    fn find(&self, id: RequestId, sought: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.first(id.0);
        while self.places[at].id != sought && self.places[at].id != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// The place of an id in an empty table (Fibonacci hashing: ids that are counted up fall far from each other).
    #[inline]
    fn first(&self, id: u64) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        (id.wrapping_mul(GOLDEN) >> 32) as usize & (self.places.len() - 1)
    }

    /// Makes room in the table; if it may not grow, puts the call into the map.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, id: RequestId, key: CallKey) -> bool {
        if self.taken >= TABLE_MAX {
            self.more.get_or_insert_default().insert_new(id, key);
            return false;
        }
        self.resize((self.places.len() * 2).max(PLACES_MIN));
        true
    }

    #[cold]
    #[inline(never)]
    fn remove_more(&mut self, id: RequestId) -> Option<CallKey> {
        let removed = self.more.as_mut()?.remove(&id);
        self.more.take_if(|more| more.is_empty());
        removed
    }

    #[cold]
    #[inline(never)]
    fn resize(&mut self, places: usize) {
        let free = vec![Place::FREE; places].into_boxed_slice();
        let before = std::mem::replace(&mut self.places, free);
        for place in before.into_iter().filter(|place| place.id != 0) {
            let at = self.find(RequestId(place.id), 0);
            self.places[at] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::Random;

    /// Callees that answer in order, in the opposite order and in none.
    #[test]
    fn invocations_are_found_by_their_ids() {
        let mut random = Random::new(1);
        for open_max in [1, 3, 4, 5, 64, 1000, TABLE_MAX + 1000] {
            let (mut table, mut model) = (Invocations::default(), BTreeMap::new());
            for id in 1..(2 * open_max + 2000) as u64 {
                table.insert(RequestId(id), CallKey(id as u32));
                model.insert(id, CallKey(id as u32));
                while model.len() > open_max {
                    let (first, last) = (*model.keys().next().expect("one"), id);
                    let removed = match random.publication_id().0 % 3 {
                        0 => first,
                        1 => last,
                        _ => first + random.publication_id().0 % (last - first + 1),
                    };
                    assert_eq!(table.remove(RequestId(removed)), model.remove(&removed));
                    assert_eq!(table.remove(RequestId(removed)), None);
                    assert_eq!(table.get(RequestId(removed)), None);
                }
                assert_eq!(table.len(), model.len());
            }
            assert_eq!(table.get(RequestId(0)), None);
            assert_eq!(table.remove(RequestId(0)), None);
            for (id, key) in &model {
                assert_eq!(table.get(RequestId(*id)), Some(*key));
            }
            let mut all = table.some(usize::MAX);
            all.sort_unstable();
            assert!(all.into_iter().eq(model.into_values()));
            assert_eq!(table.some(1).len(), 1);
        }
    }

    #[test]
    fn a_table_that_empties_returns_its_memory() {
        let mut invocations = Invocations::default();
        let places = |invocations: &Invocations| {
            let table = invocations.0.as_ref().expect("one");
            (table.places.len(), table.more.is_some())
        };
        (1..=100_000).for_each(|id| invocations.insert(RequestId(id), CallKey(0)));
        assert_eq!(places(&invocations), (2 * TABLE_MAX, true));
        (1..=100_000).for_each(|id| assert!(invocations.remove(RequestId(id)).is_some()));
        assert_eq!(places(&invocations), (PLACES_MIN, false));
    }
}
