//! The open calls of one caller, or of one callee, by their ids.

use crosstie_collections::GrowingMap;
use crosstie_wamp::RequestId;
use rustc_hash::FxBuildHasher;

use crate::keys::CallKey;

/// The open calls of one party; one word for a session that has none.
#[derive(Debug, Default)]
pub(crate) struct CallTable(Option<Box<Table>>);

/// A hash table with linear probing, in which nearly all ids find their place free, as they are counted up. With one map
/// for all parties, and a list for each, a call and its answer took 80 instructions more for the callee, and as many
/// for the caller.
///
/// At most half of its places are taken. A party with more calls than [`TABLE_MAX`] has the others in a map, which does
/// not grow at once.
#[derive(Debug)]
struct Table {
    /// Odd. See [`COUNTED`].
    factor: u64,
    /// None, or a power of two.
    places: Box<[Place]>,
    /// Number of taken places.
    taken: usize,
    /// The largest number of places and calls in the map so far.
    room: usize,
    /// By the products of ids and factor.
    more: Option<Box<GrowingMap<u64, CallKey, FxBuildHasher>>>,
}

/// The factor for ids that the realm counts up itself (Fibonacci hashing: they fall far from each other). For ids that a
/// peer chooses it is a secret number, so that nobody can plan collisions.
pub(crate) const COUNTED: u64 = 0x9e37_79b9_7f4a_7c15;

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

impl CallTable {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.len())
    }

    /// The room that it has had at most, in calls.
    pub(crate) fn room(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.room)
    }

    /// Adds a call, whose id is that of no other one. The factor of the first one stays.
    #[inline]
    pub(crate) fn insert(&mut self, id: RequestId, key: CallKey, factor: u64) {
        let table = self.0.get_or_insert_with(|| Table::new(factor));
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
        place.or_else(|| table.more.as_ref()?.get(&table.product(id)).copied())
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<CallKey> {
        let table = self.0.as_deref_mut()?;
        table.take(id).or_else(|| table.remove_more(id))
    }

    /// At most that many of the calls.
    pub(crate) fn some(&self, count_max: usize) -> Vec<CallKey> {
        let calls = self.0.iter().flat_map(|table| table.calls());
        calls.take(count_max).collect()
    }
}

impl Table {
    #[cold]
    fn new(factor: u64) -> Box<Self> {
        Box::new(Self {
            factor,
            places: Box::default(),
            taken: 0,
            room: 0,
            more: None,
        })
    }

    fn len(&self) -> usize {
        self.taken + self.more.as_ref().map_or(0, |more| more.len())
    }

    fn calls(&self) -> impl Iterator<Item = CallKey> {
        let taken = self.places.iter().filter(|place| place.id != 0);
        let more = self.more.iter().flat_map(|more| {
            let products = more.keys();
            products.filter_map(|product| more.get(product).copied())
        });
        taken.map(|place| place.key).chain(more)
    }

    /// Frees the place of an id, if it has one.
    #[inline]
    fn take(&mut self, id: RequestId) -> Option<CallKey> {
        let places = &mut *self.places;
        if places.is_empty() || id.0 == 0 {
            return None;
        }
        let (mask, factor) = (places.len() - 1, self.factor);
        let mut hole = first(id.0, factor) & mask;
        while places[hole].id != id.0 {
            if places[hole].id == 0 {
                return None;
            }
            hole = (hole + 1) & mask;
        }
        let key = places[hole].key;
        // Those behind it that it kept from their places move up.
        let mut next = (hole + 1) & mask;
        while places[next].id != 0 {
            let first = first(places[next].id, factor) & mask;
            if next.wrapping_sub(first) & mask >= next.wrapping_sub(hole) & mask {
                places[hole] = places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        places[hole].id = 0;
        self.taken -= 1;
        if self.taken < self.places.len() / 16 {
            self.resize((self.places.len() / 4).max(PLACES_MIN));
        }
        Some(key)
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
        let mut at = first(id.0, self.factor) & mask;
        while self.places[at].id != sought && self.places[at].id != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// No other id has the same.
    fn product(&self, id: RequestId) -> u64 {
        id.0.wrapping_mul(self.factor)
    }

    /// Makes room in the table; if it may not grow, puts the call into the map.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, id: RequestId, key: CallKey) -> bool {
        if self.taken >= TABLE_MAX {
            let product = self.product(id);
            let more = self.more.get_or_insert_default();
            more.insert_new(product, key);
            self.room = self.room.max(self.places.len() + more.len());
            return false;
        }
        self.resize((self.places.len() * 2).max(PLACES_MIN));
        self.room = self.room.max(self.places.len());
        true
    }

    #[cold]
    #[inline(never)]
    fn remove_more(&mut self, id: RequestId) -> Option<CallKey> {
        let product = self.product(id);
        let removed = self.more.as_mut()?.remove(&product);
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

/// The place of an id in an empty table, in its lowest bits.
#[inline]
fn first(id: u64, factor: u64) -> usize {
    (id.wrapping_mul(factor) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::random::Random;

    /// Callees that answer in order, in the opposite order and in none.
    #[test]
    fn calls_are_found_by_their_ids() {
        let mut random = Random::new(1);
        let opens = [1, 3, 4, 5, 64, 1000, TABLE_MAX + 1000];
        let factors = [COUNTED, 0x1234_5678_9abc_def1];
        for (open_max, factor) in opens
            .into_iter()
            .flat_map(|max| factors.map(|of| (max, of)))
        {
            let (mut table, mut model) = (CallTable::default(), BTreeMap::new());
            for id in 1..(2 * open_max + 2000) as u64 {
                table.insert(RequestId(id), CallKey(id as u32), factor);
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
        let mut invocations = CallTable::default();
        let places = |invocations: &CallTable| {
            let table = invocations.0.as_ref().expect("one");
            (table.places.len(), table.more.is_some())
        };
        (1..=100_000).for_each(|id| invocations.insert(RequestId(id), CallKey(0), COUNTED));
        assert_eq!(places(&invocations), (2 * TABLE_MAX, true));
        (1..=100_000).for_each(|id| assert!(invocations.remove(RequestId(id)).is_some()));
        assert_eq!(places(&invocations), (PLACES_MIN, false));
        // The room stays with the account of the session.
        assert!(invocations.room() > 90_000, "{}", invocations.room());
    }
}
