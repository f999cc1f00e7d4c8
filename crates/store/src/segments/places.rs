//! Sets of places: which messages of a queue a segment still has.
//!
//! A place of a dense set takes about one and a half bits in memory. On disk a set is a list of ranges.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::bytes::{Cursor, put_number, put_signed};

/// A set of places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceSet {
    /// A bit for each place, by the place divided by [`CHUNK`].
    chunks: BTreeMap<i64, [u64; WORDS]>,
    count: usize,
}

const WORDS: usize = 4;
const CHUNK: i64 = 64 * WORDS as i64;

impl PlaceSet {
    /// Adds a place; returns whether it was missing.
    pub(crate) fn insert(&mut self, place: i64) -> bool {
        let (chunk, word, bit) = split(place);
        let words = match self.chunks.last_entry() {
            Some(last) if *last.key() == chunk => last.into_mut(),
            _ => self.chunks.entry(chunk).or_default(),
        };
        let is_new = words[word] & bit == 0;
        words[word] |= bit;
        self.count += usize::from(is_new);
        is_new
    }

    /// Removes a place; returns whether it was there.
    pub(crate) fn remove(&mut self, place: i64) -> bool {
        let (chunk, word, bit) = split(place);
        let Some(words) = self.chunks.get_mut(&chunk) else {
            return false;
        };
        if words[word] & bit == 0 {
            return false;
        }
        words[word] &= !bit;
        if *words == [0; WORDS] {
            self.chunks.remove(&chunk);
        }
        self.count -= 1;
        true
    }

    /// Removes the places from the first to the last.
    pub(crate) fn clear(&mut self, from: i64, to: i64) {
        let (first, last) = (split(from).0, split(to).0);
        if from > to {
            return;
        }
        let mut chunks = self.chunks.split_off(&first);
        self.chunks.append(&mut chunks.split_off(&(last + 1)));
        let words = chunks.values().flatten();
        self.count -= words.map(|word| word.count_ones() as usize).sum::<usize>();
        // At both ends a part of a chunk stays.
        chunks.retain(|chunk, _| *chunk == first || *chunk == last);
        let ends = Self { chunks, count: 0 };
        for place in ends.iter().filter(|place| !(from..=to).contains(place)) {
            self.insert(place);
        }
    }

    pub(crate) fn contains(&self, place: i64) -> bool {
        let (chunk, word, bit) = split(place);
        self.chunks
            .get(&chunk)
            .is_some_and(|words| words[word] & bit != 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The first place at or after `from`.
    pub(crate) fn first_from(&self, from: i64) -> Option<i64> {
        self.iter_from(from).next()
    }

    pub(crate) fn first(&self) -> Option<i64> {
        self.first_from(i64::MIN)
    }

    pub(crate) fn last(&self) -> Option<i64> {
        let (chunk, words) = self.chunks.last_key_value()?;
        let word = words.iter().rposition(|word| *word != 0)?;
        let bit = 63 - words[word].leading_zeros();
        Some(chunk * CHUNK + word as i64 * 64 + i64::from(bit))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> {
        self.iter_from(i64::MIN)
    }

    /// The places at or after `from`, in order.
    pub(crate) fn iter_from(&self, from: i64) -> impl Iterator<Item = i64> {
        let (first, ..) = split(from);
        let chunks = self.chunks.range(first..);
        let words = chunks.flat_map(|(chunk, words)| {
            let base = *chunk * CHUNK;
            let words = words.iter().enumerate();
            words.map(move |(at, word)| (base + at as i64 * 64, *word))
        });
        let places = words.flat_map(|(base, word)| Bits(word).map(move |bit| base + bit));
        places.skip_while(move |place| *place < from)
    }

    /// Consecutive places.
    fn ranges(&self) -> Vec<RangeInclusive<i64>> {
        let mut ranges: Vec<RangeInclusive<i64>> = Vec::new();
        for place in self.iter() {
            match ranges.last_mut() {
                Some(last) if last.end().checked_add(1) == Some(place) => {
                    *last = *last.start()..=place;
                }
                _ => ranges.push(place..=place),
            }
        }
        ranges
    }

    /// Appends the set.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let ranges = self.ranges();
        put_number(out, ranges.len() as u64);
        let mut before = 0_i64;
        for range in ranges {
            put_signed(out, range.start().wrapping_sub(before));
            put_number(out, range.end().wrapping_sub(*range.start()) as u64);
            before = *range.end();
        }
    }

    /// Reads a set. One range may name many places, so their number is bounded by `count_max`.
    pub(crate) fn decode(cursor: &mut Cursor<'_>, count_max: usize) -> Option<Self> {
        let mut places = Self::default();
        let mut before = 0_i64;
        for nth in 0..cursor.count()? {
            let start = before.wrapping_add(cursor.signed()?);
            // Ranges ascend, so that each place costs its bytes once.
            if nth > 0 && start <= before {
                return None;
            }
            let more = cursor.number()?;
            if more >= (count_max - places.len()) as u64 {
                return None;
            }
            let end = start.checked_add(i64::try_from(more).ok()?)?;
            for place in start..=end {
                places.insert(place);
            }
            before = end;
        }
        Some(places)
    }
}

impl FromIterator<i64> for PlaceSet {
    fn from_iter<I: IntoIterator<Item = i64>>(places: I) -> Self {
        let mut set = Self::default();
        for place in places {
            set.insert(place);
        }
        set
    }
}

fn split(place: i64) -> (i64, usize, u64) {
    let within = place.rem_euclid(CHUNK) as usize;
    (place.div_euclid(CHUNK), within / 64, 1 << (within % 64))
}

/// The bits of a word, the lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let bit = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        (bit < 64).then_some(i64::from(bit))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_is_what_a_tree_of_places_is() {
        let mut random = 7_u64;
        let mut expected = BTreeSet::new();
        let mut places = PlaceSet::default();
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let place = (random >> 33) as i64 % 3000 - 1000;
            if random >> 20 & 3 == 0 {
                assert_eq!(places.remove(place), expected.remove(&place));
            } else {
                assert_eq!(places.insert(place), expected.insert(place));
            }
        }
        assert_eq!(places.len(), expected.len());
        assert!(places.iter().eq(expected.iter().copied()));
        for from in [-1200, -256, 0, 17, 1999, 5000] {
            let after = expected.range(from..).copied();
            assert!(places.iter_from(from).eq(after), "from {from}");
        }
        assert_eq!(places.first(), expected.first().copied());
        assert_eq!(places.last(), expected.last().copied());
        let mut bytes = Vec::new();
        places.encode(&mut bytes);
        let decoded = PlaceSet::decode(&mut Cursor::new(&bytes), places.len());
        assert_eq!(decoded, Some(places.clone()));
        assert_eq!(
            PlaceSet::decode(&mut Cursor::new(&bytes), places.len() - 1),
            None
        );
    }

    #[test]
    fn places_between_two_are_cleared() {
        let all: BTreeSet<i64> = (-900..900).filter(|place| place % 3 != 0).collect();
        for from in [i64::MIN, -901, -512, -3, 0, 255, 256, 700, i64::MAX] {
            for to in [i64::MIN, -600, -1, 1, 256, 511, 899, i64::MAX] {
                let mut places: PlaceSet = all.iter().copied().collect();
                places.clear(from, to);
                let is_left = |place: &i64| *place < from || to < *place;
                let expected: PlaceSet = all.iter().copied().filter(is_left).collect();
                assert_eq!(places, expected, "{from}..={to}");
            }
        }
    }

    #[test]
    fn the_ends_of_all_places() {
        let all = [i64::MIN, -1, 0, 1, i64::MAX - 1, i64::MAX];
        let places: PlaceSet = all.into_iter().collect();
        assert!(places.iter().eq(all));
        assert_eq!(
            (places.first(), places.last()),
            (Some(all[0]), Some(all[5]))
        );
        let mut bytes = Vec::new();
        places.encode(&mut bytes);
        assert_eq!(PlaceSet::decode(&mut Cursor::new(&bytes), 6), Some(places));
    }

    #[test]
    fn one_range_cannot_claim_all_memory() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, 1);
        put_signed(&mut bytes, 0);
        put_number(&mut bytes, 1 << 60);
        assert_eq!(PlaceSet::decode(&mut Cursor::new(&bytes), 1000), None);
        // Nor can many that are the same again all time.
        let mut bytes = Vec::new();
        put_number(&mut bytes, 2);
        for start in [0, -9] {
            put_signed(&mut bytes, start);
            put_number(&mut bytes, 9);
        }
        assert_eq!(PlaceSet::decode(&mut Cursor::new(&bytes), 1000), None);
    }
}
