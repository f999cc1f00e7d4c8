//! The extents that hold a queue's messages, by place.
//!
//! Messages arrive in the order of their places, and a batch has many of one queue. So the places are kept as *runs*:
//! a bit for each place, and once for all of them the extent. No run begins within another one's places.

use std::collections::BTreeMap;

use crosstie_queues::LEVELED;

/// The runs of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// By a place that is not after their first, and after all of the run before.
    runs: BTreeMap<i64, Run>,
    count: usize,
    body_bytes: u64,
}

/// Places of one extent.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    extent: u64,
    /// The place of the first bit: a multiple of 64.
    base: i64,
    words: Vec<u64>,
    count: usize,
    /// Approximate octets in the log, and those of the bodies alone. Each message has an equal share once others leave.
    bytes: u64,
    body_bytes: u64,
}

/// The size of a message, as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) body_bytes: u64,
}

/// Messages of one extent that have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) extent: u64,
    pub(crate) count: usize,
    pub(crate) size: Size,
}

/// Messages with consecutive places of one priority: the first place, the last, their number and their bodies' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) count: usize,
    pub(crate) body_bytes: u64,
}

const BITS: i64 = 64;

/// A place that is further behind its run's last begins a run of its own, which takes less memory than the bits between.
const GAP_MAX: i64 = 1024;

impl Runs {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        // Rounded up by the tree's free room.
        self.runs.len() * RUN_MEMORY_BYTES + self.count / 8
    }

    /// The extent that holds a place.
    pub(crate) fn find(&self, place: i64) -> Option<u64> {
        let (_, run) = self.runs.range(..=place).next_back()?;
        run.has(place).then_some(run.extent)
    }

    /// Adds a place that none of them has. Returns the keys of runs that begin with that, and their extents.
    pub(crate) fn insert(&mut self, place: i64, extent: u64, size: Size) -> Vec<(i64, u64)> {
        self.count += 1;
        self.body_bytes += size.body_bytes;
        let mut begun = Vec::new();
        begun.extend(self.make_way(place, extent));
        if let Some((key, run)) = self.runs.range_mut(..=place).next_back() {
            if run.extent == extent && place <= run.last().saturating_add(GAP_MAX) {
                run.add(place, size);
                return begun;
            }
            if place < run.last() {
                let (key, behind) = (*key, run.split(place));
                let is_empty = run.count == 0;
                if let Some(first) = behind.first() {
                    begun.push((first, behind.extent));
                    self.runs.insert(first, behind);
                }
                if is_empty {
                    self.runs.remove(&key);
                }
            }
        }
        let mut run = Run::beginning(place, extent);
        run.add(place, size);
        self.runs.insert(place, run);
        begun.push((place, extent));
        begun
    }

    /// Moves the key of another extent's run whose places are all behind that one, so that the run before is found for
    /// it: a message that is written again leaves its run from the front. Returns the key.
    fn make_way(&mut self, place: i64, extent: u64) -> Option<(i64, u64)> {
        let (key, run) = self.runs.range(..=place).next_back()?;
        let first = run.first().filter(|first| *first > place)?;
        if run.extent == extent {
            return None;
        }
        let key = *key;
        let run = self.runs.remove(&key)?;
        let moved = (first, run.extent);
        self.runs.insert(first, run);
        Some(moved)
    }

    /// Removes a place, if it is there.
    pub(crate) fn remove(&mut self, place: i64) -> Option<Gone> {
        let (key, run) = self.runs.range_mut(..=place).next_back()?;
        if !run.has(place) {
            return None;
        }
        let (key, gone) = (*key, run.remove(place));
        if run.count == 0 {
            self.runs.remove(&key);
        }
        self.count -= 1;
        self.body_bytes -= gone.size.body_bytes;
        Some(gone)
    }

    /// Removes all places.
    pub(crate) fn clear(&mut self) -> Vec<Gone> {
        let runs = std::mem::take(self).runs;
        runs.into_values().map(|run| run.all()).collect()
    }

    /// The places from the first to the last of these, in order, with their extents.
    pub(crate) fn between(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, u64)> {
        let before = self.runs.range(..from).next_back();
        let begin = before.map_or(from, |(key, _)| *key);
        let runs = self.runs.range(begin..=to.max(begin)).map(|(_, run)| run);
        let places = runs.flat_map(|run| run.places().map(|place| (place, run.extent)));
        places
            .skip_while(move |(place, _)| *place < from)
            .take_while(move |(place, _)| *place <= to)
    }

    /// The places of the run with that key, if it is of that extent.
    pub(crate) fn run(&self, key: i64, extent: u64) -> Option<&Run> {
        self.runs.get(&key).filter(|run| run.extent == extent)
    }

    /// The messages from a place on, as few stretches as there are priorities. Places of earlier versions tell none: a
    /// queue's vhost takes them for those of the lowest priority.
    pub(crate) fn stretches(&self, from: i64) -> Vec<Stretch> {
        let level = |place: i64| place.div_euclid(LEVELED).max(1);
        let mut found: Vec<Stretch> = Vec::new();
        for run in self.runs.values() {
            let (Some(first), to) = (run.first(), run.last()) else {
                continue;
            };
            match found.last_mut() {
                _ if first < from => {}
                Some(last) if level(last.to) == level(first) => {
                    last.to = to;
                    last.count += run.count;
                    last.body_bytes += run.body_bytes;
                }
                _ => found.push(Stretch {
                    from: first,
                    to,
                    count: run.count,
                    body_bytes: run.body_bytes,
                }),
            }
        }
        found
    }
}

/// Memory of a run, with its key and its place in an extent.
const RUN_MEMORY_BYTES: usize = 160;

impl Run {
    fn beginning(place: i64, extent: u64) -> Self {
        Self {
            extent,
            base: place.div_euclid(BITS) * BITS,
            words: Vec::new(),
            count: 0,
            bytes: 0,
            body_bytes: 0,
        }
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = i64> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(at, word)| {
            let base = self.base + at as i64 * BITS;
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                (left != 0).then(|| {
                    left &= left - 1;
                    base + i64::from(bit)
                })
            })
        })
    }

    /// The size of each, on average.
    pub(crate) fn share(&self) -> Size {
        let count = self.count.max(1) as u64;
        Size {
            bytes: self.bytes / count,
            body_bytes: self.body_bytes / count,
        }
    }

    fn first(&self) -> Option<i64> {
        self.places().next()
    }

    /// The last place; before all others if there is none.
    fn last(&self) -> i64 {
        let Some(at) = self.words.iter().rposition(|word| *word != 0) else {
            return i64::MIN;
        };
        let bit = 63 - self.words[at].leading_zeros();
        self.base + at as i64 * BITS + i64::from(bit)
    }

    fn has(&self, place: i64) -> bool {
        let (word, bit) = self.split_place(place);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    fn add(&mut self, place: i64, size: Size) {
        let (word, bit) = self.split_place(place);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        self.count += 1;
        self.bytes += size.bytes;
        self.body_bytes += size.body_bytes;
    }

    fn remove(&mut self, place: i64) -> Gone {
        let (word, bit) = self.split_place(place);
        self.words[word] &= !bit;
        // The last one takes what is left.
        let size = self.share();
        self.count -= 1;
        self.bytes -= size.bytes;
        self.body_bytes -= size.body_bytes;
        Gone {
            extent: self.extent,
            count: 1,
            size,
        }
    }

    /// Takes out the places behind that one.
    fn split(&mut self, place: i64) -> Self {
        let behind: Vec<i64> = self.places().filter(|found| *found > place).collect();
        let mut split = Self::beginning(behind.first().copied().unwrap_or(place), self.extent);
        for place in behind {
            let gone = self.remove(place);
            split.add(place, gone.size);
        }
        split
    }

    fn all(self) -> Gone {
        Gone {
            extent: self.extent,
            count: self.count,
            size: Size {
                bytes: self.bytes,
                body_bytes: self.body_bytes,
            },
        }
    }

    /// The word of a place that is not before the first bit, and its bit there.
    fn split_place(&self, place: i64) -> (usize, u64) {
        let offset = place - self.base;
        ((offset / BITS) as usize, 1 << (offset % BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs beside a plain map, with the keys that each extent was told of.
    #[derive(Default)]
    struct Both {
        runs: Runs,
        map: BTreeMap<i64, (u64, Size)>,
        keys: Vec<(i64, u64)>,
    }

    impl Both {
        fn insert(&mut self, place: i64, extent: u64) {
            self.remove(place);
            let size = Size {
                bytes: 40 + place.unsigned_abs() % 7,
                body_bytes: place.unsigned_abs() % 7,
            };
            self.keys.extend(self.runs.insert(place, extent, size));
            self.map.insert(place, (extent, size));
        }

        fn remove(&mut self, place: i64) {
            let gone = self.runs.remove(place);
            let expected = self.map.remove(&place).map(|(extent, _)| extent);
            assert_eq!(gone.map(|gone| gone.extent), expected);
        }

        fn check(&self) {
            let all: Vec<_> = self.runs.between(i64::MIN, i64::MAX).collect();
            let expected = self.map.iter();
            let expected: Vec<_> = expected.map(|(place, (of, _))| (*place, *of)).collect();
            assert_eq!(all, expected);
            assert_eq!(self.runs.len(), expected.len());
            let mut last = i64::MIN;
            let mut sum = (0, 0);
            for (key, run) in &self.runs.runs {
                let first = run.first().expect("no run is empty");
                assert!(*key <= first && *key >= last, "{key} {first} {last}");
                assert_eq!(run.count, run.places().count());
                assert!(self.keys.contains(&(*key, run.extent)), "{key} is unknown");
                last = run.last();
                sum.0 += run.count;
                sum.1 += run.body_bytes;
            }
            assert_eq!(sum, (self.runs.count, self.runs.body_bytes));
        }
    }

    fn random(chance: &mut u64, count: u64) -> u64 {
        *chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*chance >> 33) % count
    }

    #[test]
    fn places_in_any_order_are_in_the_extent_that_took_them_last() {
        for seed in 0..40 {
            let mut chance = seed;
            let mut both = Both::default();
            let mut next = -50;
            for step in 0..600 {
                let extent = step / 20;
                match random(&mut chance, 10) {
                    0..6 => {
                        next += 1 + random(&mut chance, 3).cast_signed();
                        both.insert(next, extent);
                    }
                    6 => {
                        let back = random(&mut chance, 200).cast_signed();
                        both.insert(next - back, extent);
                    }
                    7 if random(&mut chance, 30) == 0 => next += 3 * GAP_MAX,
                    _ => {
                        let back = random(&mut chance, 200).cast_signed();
                        both.remove(next - back);
                    }
                }
                both.check();
                let from = next - random(&mut chance, 100).cast_signed();
                let to = from + random(&mut chance, 60).cast_signed();
                let found: Vec<_> = both.runs.between(from, to).collect();
                let expected = both.map.range(from..=to);
                let expected: Vec<_> = expected.map(|(place, (of, _))| (*place, *of)).collect();
                assert_eq!(found, expected);
            }
            let all: usize = both.runs.clear().iter().map(|gone| gone.count).sum();
            assert_eq!(all, both.map.len());
            assert_eq!(both.runs.memory_bytes(), 0);
        }
    }

    #[test]
    fn a_dense_queue_takes_less_than_a_byte_for_each_message() {
        let mut runs = Runs::default();
        for place in 0..100_000 {
            runs.insert(place, place.unsigned_abs() / 1000, Size::default());
        }
        assert_eq!(runs.runs.len(), 100);
        assert!(runs.memory_bytes() < 50_000, "{}", runs.memory_bytes());
    }

    #[test]
    fn messages_that_are_written_again_take_no_more_than_before() {
        let mut both = Both::default();
        let insert = |both: &mut Both, place: i64, extent| {
            both.runs.remove(place);
            both.keys
                .extend(both.runs.insert(place, extent, Size::default()));
            both.map.insert(place, (extent, Size::default()));
        };
        for place in 0..20_000 {
            insert(&mut both, place, place.unsigned_abs() / 1000);
        }
        // Cleaning rewrites an extent after the other.
        for place in 0..20_000 {
            insert(&mut both, place, 100 + place.unsigned_abs() / 1000);
        }
        both.check();
        assert_eq!(both.runs.runs.len(), 20);
    }

    #[test]
    fn stretches_end_with_their_priority() {
        let mut runs = Runs::default();
        let (first, second) = (LEVELED, 2 * LEVELED);
        for place in [3, 4, first + 105, first + 106, second + 3] {
            let size = Size {
                bytes: 50,
                body_bytes: 10,
            };
            runs.insert(place, 1, size);
        }
        let stretch = |from, to, count| Stretch {
            from,
            to,
            count,
            body_bytes: 10 * count as u64,
        };
        let second = stretch(second + 3, second + 3, 1);
        // The first two were given by an earlier version.
        assert_eq!(
            runs.stretches(i64::MIN),
            [stretch(3, first + 106, 4), second]
        );
        let leveled = [stretch(first + 105, first + 106, 2), second];
        assert_eq!(runs.stretches(first), leveled);
    }
}
