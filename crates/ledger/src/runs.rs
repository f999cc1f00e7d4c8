//! The extents that hold a queue's messages, by place.
//!
//! Messages arrive in the order of their places, and a batch has many of one queue. So the places are kept as *runs*:
//! a bit for each place, and once for all of them the extent. No run begins within another one's places.

mod run;

use std::collections::BTreeMap;

use crosstie_queues::LEVELED;

pub(crate) use self::run::{Gone, Run, Size};

/// The runs of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// By a place that is not after their first, and after all of the run before.
    runs: BTreeMap<i64, Run>,
    count: usize,
    body_bytes: u64,
}

/// Messages with consecutive places of one priority: the first place, the last, their number and their bodies' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) count: usize,
    pub(crate) body_bytes: u64,
}

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

    /// Removes the places from the first to the last of these: a run at a time, however many places it has. The runs at both
    /// ends may keep some.
    pub(crate) fn clear_between(&mut self, from: i64, to: i64) -> Vec<Gone> {
        let before = self.runs.range(..from).next_back();
        let begin = before.map_or(from, |(key, _)| *key);
        let met = self.runs.range_mut(begin..=to.max(begin));
        let (mut emptied, mut gone) = (Vec::new(), Vec::new());
        for (key, run) in met {
            let left = run.remove_between(from, to);
            if run.count == 0 {
                emptied.push(*key);
            }
            gone.extend(Some(left).filter(|left| left.count > 0));
        }
        for key in emptied {
            self.runs.remove(&key);
        }
        for gone in &gone {
            self.count -= gone.count;
            self.body_bytes -= gone.size.body_bytes;
        }
        gone
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

        fn clear(&mut self, from: i64, to: i64) {
            let gone = self.runs.clear_between(from, to);
            let mut expected: BTreeMap<u64, usize> = BTreeMap::new();
            self.map.retain(|place, (of, _)| {
                let is_gone = (from..=to).contains(place);
                *expected.entry(*of).or_default() += usize::from(is_gone);
                !is_gone
            });
            expected.retain(|_, count| *count > 0);
            let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
            for gone in gone {
                *counts.entry(gone.extent).or_default() += gone.count;
            }
            assert_eq!(counts, expected, "{from} to {to}");
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
                    8 if random(&mut chance, 10) == 0 => {
                        let back = random(&mut chance, 300).cast_signed();
                        let length = random(&mut chance, 250).cast_signed();
                        both.clear(next - back, next - back + length);
                    }
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
            let all = match seed % 2 {
                0 => both.runs.clear(),
                _ => both.runs.clear_between(i64::MIN, i64::MAX),
            };
            let all: usize = all.iter().map(|gone| gone.count).sum();
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
    fn a_clearance_meets_each_run_once() {
        let mut runs = Runs::default();
        for place in 0..100_000 {
            let size = Size {
                bytes: 50,
                body_bytes: 10,
            };
            runs.insert(place, place.unsigned_abs() / 1000, size);
        }
        let gone = runs.clear_between(500, 99_499);
        assert_eq!(gone.len(), 100);
        let count: usize = gone.iter().map(|gone| gone.count).sum();
        assert_eq!((count, runs.len()), (99_000, 1_000));
        assert_eq!(runs.body_bytes(), 10_000);
        let left: Vec<_> = runs.between(0, 100_000).map(|(place, _)| place).collect();
        let expected: Vec<_> = (0..500).chain(99_500..100_000).collect();
        assert_eq!(left, expected);
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
