//! A queue's ready messages: the highest priority first, and within one in the order of their places.
//!
//! Messages without a priority wait in one lane, as all messages of a queue without `x-max-priority` do: such a queue
//! has nothing else. Of the levels above, only those with messages take memory, and a bitmap finds them. A message
//! costs the same, whatever the number of levels is.
//!
//! Of a deep queue the middle of each level is on the disk ([`Depths`]). While the head of the highest level is empty
//! and the disk holds messages of it, no message is ready, and the queue is not empty.

use super::Entry;
use super::depths::Depths;
use super::lane::Lane;
use super::level::Level;
use crate::Position;

#[derive(Debug, Default)]
pub(crate) struct Messages {
    lowest: Level,
    /// `None` until the first message with a priority arrives.
    upper: Option<Box<Upper>>,
    /// Whether a part may be on the disk. Until then no level has depths.
    is_deep: bool,
}

#[derive(Debug, Default)]
struct Upper {
    /// A bit for each level with messages.
    filled: [u64; 4],
    /// These levels, the lowest first. None is empty.
    levels: Vec<Level>,
    len: usize,
}

/// The bits of a place that are the order of arrivals. In a queue with priorities those above are its level and one: the
/// places of different levels are apart, so that a page has messages of one level. Earlier versions had no other bits.
const AGE_BITS: u32 = 48;

/// The place of a message of that age, in a queue with priorities.
pub(super) fn placed(age: i64, level: u8) -> i64 {
    (i64::from(level) + 1) << AGE_BITS | age
}

/// A place in the order of arrivals.
pub(super) fn age(place: i64) -> i64 {
    place & ((1 << AGE_BITS) - 1)
}

/// The level of a message that was on the disk alone.
pub(super) fn level_of(place: i64) -> u8 {
    ((place >> AGE_BITS) - 1).max(0) as u8
}

/// The first place that has a level. The places before it are of queues without priorities, or of earlier versions.
pub const LEVELED: i64 = 1 << AGE_BITS;

/// The last place of the level that a place has.
pub fn level_end(place: i64) -> i64 {
    place | (LEVELED - 1)
}

impl Messages {
    pub(crate) fn len(&self) -> usize {
        self.lowest.len() + self.upper.as_ref().map_or(0, |upper| upper.len)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.front().is_none() && !self.is_deep()
    }

    /// Whether a part of them is on the disk alone, or may soon be.
    #[inline]
    pub(crate) fn is_deep(&self) -> bool {
        self.is_deep
    }

    /// The next, if it is in memory.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Entry> {
        self.front_level().lane.front()
    }

    #[inline]
    fn front_level(&self) -> &Level {
        let highest = self.upper.as_ref().and_then(|upper| upper.levels.last());
        highest.unwrap_or(&self.lowest)
    }

    /// Those in memory, in the order of their departure.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let upper = self.upper.iter();
        let upper = upper.flat_map(|upper| upper.levels.iter().rev());
        upper.chain([&self.lowest]).flat_map(Level::iter)
    }

    /// Adds behind all others of its level. A deep queue needs the position of the entry's record.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry, position: Position) {
        let is_deep = self.is_deep;
        match entry.level {
            0 => self.lowest.push(entry, position, is_deep),
            level => self.upper_level(level).push(entry, position, is_deep),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = match &mut self.upper {
            Some(upper) if upper.len > 0 => upper.pop(),
            _ => self.lowest.pop(),
        };
        if self.is_deep {
            self.judge();
        }
        entry
    }

    /// Returns an entry to its place.
    pub(crate) fn insert(&mut self, entry: Entry, position: Position) {
        match entry.level {
            0 => self.lowest.insert(entry, position),
            level => self.upper_level(level).insert(entry, position),
        }
    }

    /// The parts on the disk, one for each level that has one.
    pub(crate) fn depths(&self) -> impl Iterator<Item = &Depths> {
        self.levels().filter_map(Level::depths)
    }

    pub(crate) fn depths_mut(&mut self) -> impl Iterator<Item = &mut Depths> {
        self.levels_mut().filter_map(Level::depths_mut)
    }

    /// The part with that place.
    pub(crate) fn depths_of(&mut self, place: i64) -> Option<&mut Depths> {
        self.level_mut(place)?.depths_mut()
    }

    /// Begins depths behind each lane, if there are none.
    pub(crate) fn deepen(&mut self) {
        self.is_deep = true;
        let has_upper = self.upper.as_ref().is_some_and(|upper| upper.len > 0);
        for level in self.levels_mut() {
            if !has_upper || !level.is_empty() {
                level.begin();
            }
        }
    }

    /// Has these depths from the restart on, at the level of those places. The level has no other messages yet but
    /// those of earlier versions.
    pub(crate) fn restore_depths(&mut self, place: i64, depths: Depths) {
        self.is_deep = true;
        match level_of(place) {
            0 => self.lowest.restore_depths(depths),
            level => self.upper.get_or_insert_default().restore(level, depths),
        }
    }

    /// The places to read next, if a page is due. Only the highest level's is, since others wait for it.
    pub(crate) fn wanted(&self) -> Option<(i64, i64)> {
        self.front_level().wanted()
    }

    /// Adds a page from the disk, of the level with that place.
    pub(crate) fn add_page(&mut self, place: i64, entries: impl Iterator<Item = Entry>) {
        let Some(level) = self.level_mut(place) else {
            return;
        };
        entries.for_each(|entry| level.lane.push(entry));
        level.surface();
        self.recount();
    }

    /// Forgets the messages on the disk; returns the places of each level's.
    pub(crate) fn forget_sunk(&mut self) -> Vec<(i64, i64)> {
        let mut sunk = Vec::new();
        for level in self.levels_mut() {
            sunk.extend(level.depths_mut().and_then(Depths::forget));
            level.surface();
        }
        self.recount();
        sunk
    }

    /// If nothing is on the disk and the head is empty, the tail becomes the head.
    #[cold]
    pub(crate) fn surface(&mut self) {
        self.lowest.surface();
        self.judge();
    }

    /// Ends to be deep if no level has depths.
    #[cold]
    fn judge(&mut self) {
        let is_deep = self.depths().next().is_some();
        self.is_deep = is_deep;
    }

    /// Counts the messages of upper levels anew, and removes levels without messages.
    #[cold]
    fn recount(&mut self) {
        if let Some(upper) = &mut self.upper {
            upper.recount();
        }
        self.judge();
    }

    /// The entry with that place, at any level, if it is in memory.
    pub(crate) fn find_mut(&mut self, place: i64) -> Option<&mut Entry> {
        let mut levels = self.levels_mut();
        levels.find_map(|level| level.find_mut(place))
    }

    /// Those in memory, in no particular order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.levels_mut().flat_map(Level::iter_mut)
    }

    /// The lanes of the lowest level, and of each other level with messages.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.levels().map(Level::lane)
    }

    fn levels(&self) -> impl Iterator<Item = &Level> {
        let upper = self.upper.iter().flat_map(|upper| &upper.levels);
        [&self.lowest].into_iter().chain(upper)
    }

    pub(super) fn levels_mut(&mut self) -> impl Iterator<Item = &mut Level> {
        let upper = self.upper.iter_mut().flat_map(|upper| &mut upper.levels);
        [&mut self.lowest].into_iter().chain(upper)
    }

    /// Takes out the entry with that place, if it is in memory.
    pub(crate) fn take(&mut self, place: i64) -> Option<Entry> {
        let found = self.lowest.take(place);
        let found = found.or_else(|| self.upper.as_mut()?.take(place));
        if self.is_deep {
            self.judge();
        }
        found
    }

    /// The level of a message that was on the disk alone.
    fn level_mut(&mut self, place: i64) -> Option<&mut Level> {
        match level_of(place) {
            0 => Some(&mut self.lowest),
            level => self.upper.as_mut()?.find(level),
        }
    }

    /// A level above the lowest, to add an entry.
    fn upper_level(&mut self, level: u8) -> &mut Level {
        self.upper.get_or_insert_default().level(level)
    }
}

impl Upper {
    fn restore(&mut self, level: u8, depths: Depths) {
        self.len += depths.len();
        // The level counts one more.
        self.level(level).restore_depths(depths);
        self.len -= 1;
    }

    fn level(&mut self, level: u8) -> &mut Level {
        self.len += 1;
        let (word, bit) = place_of(level);
        let at = self.rank(level);
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.levels.insert(at, Level::for_one());
        }
        &mut self.levels[at]
    }

    /// The level, if it has messages.
    fn find(&mut self, level: u8) -> Option<&mut Level> {
        let (word, bit) = place_of(level);
        let at = self.rank(level);
        (self.filled[word] & bit != 0).then(|| &mut self.levels[at])
    }

    /// Number of levels below that have messages.
    fn rank(&self, level: u8) -> usize {
        let (word, bit) = place_of(level);
        let before = self.filled[..word].iter().map(|word| word.count_ones());
        (before.sum::<u32>() + (self.filled[word] & (bit - 1)).count_ones()) as usize
    }

    fn pop(&mut self) -> Option<Entry> {
        let level = self.levels.last_mut()?;
        let entry = level.pop()?;
        self.len -= 1;
        if level.is_empty() {
            self.remove_level(self.levels.len() - 1, entry.level);
        }
        Some(entry)
    }

    fn take(&mut self, place: i64) -> Option<Entry> {
        let mut levels = self.levels.iter_mut().enumerate();
        let (at, entry) = levels.find_map(|(at, level)| Some((at, level.take(place)?)))?;
        self.len -= 1;
        if self.levels[at].is_empty() {
            self.remove_level(at, entry.level);
        }
        Some(entry)
    }

    fn recount(&mut self) {
        for level in (1..=u8::MAX).rev() {
            if self.find(level).is_some_and(|found| found.is_empty()) {
                self.remove_level(self.rank(level), level);
            }
        }
        self.len = self.levels.iter().map(Level::len).sum();
    }

    fn remove_level(&mut self, at: usize, level: u8) {
        let (word, bit) = place_of(level);
        self.filled[word] &= !bit;
        self.levels.remove(at);
        // A queue that once had messages at all levels does not keep room for that.
        if self.levels.capacity() > LANES_MIN && self.levels.len() < self.levels.capacity() / 4 {
            self.levels.shrink_to(self.levels.capacity() / 2);
        }
    }
}

/// Capacity for fewer levels is not worth a reallocation.
const LANES_MIN: usize = 8;

fn place_of(level: u8) -> (usize, u64) {
    (usize::from(level) / 64, 1 << (level % 64))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::MessageContent;
    use crate::random::Random;

    fn entry(level: u8, place: i64) -> Entry {
        Entry {
            content: Arc::new(MessageContent::new("", "", &[0, 0], b"")),
            place,
            expires_at: None,
            deliveries: 0,
            level,
            is_redelivered: false,
            is_stored: false,
            is_spilled: false,
        }
    }

    /// Its messages, and a sorted list of the same.
    #[derive(Default)]
    struct Both {
        messages: Messages,
        /// Ends with the next.
        list: Vec<(u8, i64)>,
    }

    impl Both {
        fn add(&mut self, level: u8, place: i64) {
            self.list.push((level, place));
            self.list.sort_by_key(|(level, place)| (*level, -*place));
        }

        fn check(&self) {
            let found: Vec<_> = self.messages.iter().map(|e| (e.level, e.place)).collect();
            let expected: Vec<_> = self.list.iter().rev().copied().collect();
            assert_eq!(found, expected);
            assert_eq!(self.messages.len(), expected.len());
            let front = self.messages.front().map(|e| (e.level, e.place));
            assert_eq!(front, expected.first().copied());
        }
    }

    #[test]
    fn any_order_of_inputs_leaves_the_order_of_levels_and_places() {
        for seed in 0..30 {
            let mut random = Random::new(seed);
            let levels: &[u8] = match seed % 3 {
                0 => &[0],
                1 => &[0, 1, 5, 63, 64, 127, 128, 191, 192, 255],
                _ => &[3, 4],
            };
            let mut both = Both::default();
            let mut taken: Vec<Entry> = Vec::new();
            for place in 0..400 {
                let level = levels[random.next() as usize % levels.len()];
                match random.next() % 8 {
                    0..=3 => {
                        both.messages.push(entry(level, place), Position(0));
                        both.add(level, place);
                    }
                    4 | 5 => {
                        let popped = both.messages.pop();
                        let expected = both.list.pop();
                        assert_eq!(popped.as_ref().map(|e| (e.level, e.place)), expected);
                        taken.extend(popped);
                    }
                    6 if taken.len() > 1 => {
                        for entry in &taken {
                            both.add(entry.level, entry.place);
                        }
                        // Forwards, backwards, and in the order of their departure.
                        match seed % 4 {
                            0 => taken.sort_by_key(|entry| entry.place),
                            1 => taken.sort_by_key(|entry| -entry.place),
                            _ => {}
                        }
                        for entry in taken.drain(..) {
                            both.messages.insert(entry, Position(0));
                        }
                    }
                    6 => {
                        if let Some(entry) = taken.pop() {
                            both.add(entry.level, entry.place);
                            both.messages.insert(entry, Position(0));
                        }
                    }
                    _ if !both.list.is_empty() => {
                        let at = random.next() as usize % both.list.len();
                        let (level, place) = both.list.remove(at);
                        let found = both.messages.find_mut(place).map(|e| e.level);
                        assert_eq!(found, Some(level));
                        let entry = both.messages.take(place);
                        assert_eq!(entry.map(|e| (e.level, e.place)), Some((level, place)));
                        assert!(both.messages.take(place).is_none());
                    }
                    _ => {}
                }
                both.check();
            }
        }
    }

    #[test]
    fn levels_that_are_empty_hold_nothing() {
        let mut messages = Messages::default();
        for level in 0..=255 {
            messages.push(entry(level, level.into()), Position(0));
        }
        assert!(
            (0..=255)
                .rev()
                .all(|l| messages.pop().is_some_and(|e| e.level == l))
        );
        let upper = messages.upper.expect("there were some above");
        assert_eq!((upper.filled, upper.len), ([0; 4], 0));
        assert!(upper.levels.capacity() <= LANES_MIN);
    }
}
