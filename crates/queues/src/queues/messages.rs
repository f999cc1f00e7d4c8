//! A queue's ready messages: the highest priority first, and within one in the order of their places.
//!
//! Messages without a priority wait in one lane, as all messages of a queue without `x-max-priority` do: such a queue
//! has nothing else. Of the levels above, only those with messages take memory, and a bitmap finds them. A message
//! costs the same, whatever the number of levels is.
//!
//! Of a deep queue the middle is on the disk ([`Depths`]). While the head is empty and the disk holds messages, no
//! message is ready, and the queue is not empty.

use super::Entry;
use super::depths::Depths;
use super::lane::Lane;
use crate::Position;

#[derive(Debug, Default)]
pub(crate) struct Messages {
    lowest: Lane,
    /// `None` until the first message with a priority arrives.
    upper: Option<Box<Upper>>,
    /// What is behind the lowest lane in a deep queue. `None` if that lane is empty and the disk holds nothing.
    depths: Option<Box<Depths>>,
}

#[derive(Debug, Default)]
struct Upper {
    /// A bit for each level with messages.
    filled: [u64; 4],
    /// The lanes of these levels, the lowest first. No lane is empty.
    lanes: Vec<Lane>,
    len: usize,
}

impl Messages {
    pub(crate) fn len(&self) -> usize {
        let upper = self.upper.as_ref().map_or(0, |upper| upper.len);
        let depths = self.depths.as_ref().map_or(0, |found| found.len_of_all());
        self.lowest.len() + upper + depths
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.front().is_none() && self.depths.is_none()
    }

    /// The next, if it is in memory.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Entry> {
        let highest = self.upper.as_ref().and_then(|upper| upper.lanes.last());
        highest.unwrap_or(&self.lowest).front()
    }

    /// Those in memory, in the order of their departure.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let upper = self.upper.iter().flat_map(|upper| upper.lanes.iter().rev());
        let tail = self.depths.iter().flat_map(|depths| depths.tail());
        upper.chain([&self.lowest]).flat_map(Lane::iter).chain(tail)
    }

    /// Adds behind all others of its level. A deep queue needs the position of the entry's record.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry, position: Position) {
        match entry.level {
            0 => match &mut self.depths {
                None => self.lowest.push(entry),
                Some(depths) => depths.push(entry, position),
            },
            level => self.upper_lane(level).push(entry),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        if let Some(upper) = &mut self.upper
            && upper.len > 0
        {
            return upper.pop();
        }
        let entry = self.lowest.pop();
        if self.depths.is_some() {
            self.surface();
        }
        entry
    }

    /// Returns an entry to its place.
    pub(crate) fn insert(&mut self, entry: Entry, position: Position) {
        match (entry.level, &mut self.depths) {
            (0, Some(depths)) if depths.is_last(entry.place) => depths.push(entry, position),
            (0, _) => self.lowest.insert(entry),
            (level, _) => self.upper_lane(level).insert(entry),
        }
    }

    pub(crate) fn depths(&self) -> Option<&Depths> {
        self.depths.as_deref()
    }

    pub(crate) fn depths_mut(&mut self) -> Option<&mut Depths> {
        self.depths.as_deref_mut()
    }

    /// Begins depths behind the lowest lane, if there are none.
    pub(crate) fn deepen(&mut self) {
        let head = self.lowest.len();
        self.depths
            .get_or_insert_with(|| Box::new(Depths::behind(head)));
    }

    /// Has these depths from the restart on; the queue has no other messages yet.
    pub(crate) fn restore_depths(&mut self, depths: Depths) {
        self.depths = Some(Box::new(depths));
    }

    /// The places to read next, if a page is due.
    pub(crate) fn wanted(&self) -> Option<(i64, i64)> {
        self.depths.as_ref()?.wanted(self.lowest.len())
    }

    /// Adds a page from the disk behind the lowest lane.
    pub(crate) fn add_page(&mut self, entries: impl Iterator<Item = Entry>) {
        entries.for_each(|entry| self.lowest.push(entry));
    }

    /// If nothing is on the disk and the head is empty, the tail becomes the head.
    #[cold]
    pub(crate) fn surface(&mut self) {
        let is_over = |depths: &mut Box<Depths>| depths.len() == 0;
        if self.lowest.is_empty()
            && let Some(depths) = self.depths.take_if(is_over)
        {
            self.lowest = Lane::of(depths.into_tail());
        }
    }

    /// The entry with that place, at any level, if it is in memory.
    pub(crate) fn find_mut(&mut self, place: i64) -> Option<&mut Entry> {
        let upper = self.upper.iter_mut().flat_map(|upper| &mut upper.lanes);
        let mut lanes = [&mut self.lowest].into_iter().chain(upper);
        let found = lanes.find_map(|lane| lane.find_mut(place));
        found.or_else(|| self.depths.as_mut()?.find_mut(place))
    }

    /// Those in memory, in no particular order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let upper = self.upper.iter_mut().flat_map(|upper| &mut upper.lanes);
        let tail = self.depths.iter_mut().flat_map(|depths| depths.tail_mut());
        [&mut self.lowest]
            .into_iter()
            .chain(upper)
            .flat_map(Lane::iter_mut)
            .chain(tail)
    }

    /// The lowest lane, and one for each other level with messages.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let upper = self.upper.iter().flat_map(|upper| &upper.lanes);
        [&self.lowest].into_iter().chain(upper)
    }

    /// Takes out the entry with that place, if it is in memory.
    pub(crate) fn take(&mut self, place: i64) -> Option<Entry> {
        let found = self.lowest.take(place);
        let found = found.or_else(|| self.upper.as_mut()?.take(place));
        let found = found.or_else(|| self.depths.as_mut()?.take(place));
        self.surface();
        found
    }

    /// The lane of a level above the lowest, to add an entry.
    fn upper_lane(&mut self, level: u8) -> &mut Lane {
        self.upper.get_or_insert_default().lane(level)
    }
}

impl Upper {
    fn lane(&mut self, level: u8) -> &mut Lane {
        self.len += 1;
        let (word, bit) = place_of(level);
        let before = self.filled[..word].iter().map(|word| word.count_ones());
        let before = before.sum::<u32>() + (self.filled[word] & (bit - 1)).count_ones();
        let at = before as usize;
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.lanes.insert(at, Lane::for_one());
        }
        &mut self.lanes[at]
    }

    fn pop(&mut self) -> Option<Entry> {
        let lane = self.lanes.last_mut()?;
        let entry = lane.pop()?;
        self.len -= 1;
        if lane.is_empty() {
            self.remove_lane(self.lanes.len() - 1, entry.level);
        }
        Some(entry)
    }

    fn take(&mut self, place: i64) -> Option<Entry> {
        let mut lanes = self.lanes.iter_mut().enumerate();
        let (at, entry) = lanes.find_map(|(at, lane)| Some((at, lane.take(place)?)))?;
        self.len -= 1;
        if self.lanes[at].is_empty() {
            self.remove_lane(at, entry.level);
        }
        Some(entry)
    }

    fn remove_lane(&mut self, at: usize, level: u8) {
        let (word, bit) = place_of(level);
        self.filled[word] &= !bit;
        self.lanes.remove(at);
        // A queue that once had messages at all levels does not keep room for that.
        if self.lanes.capacity() > LANES_MIN && self.lanes.len() < self.lanes.capacity() / 4 {
            self.lanes.shrink_to(self.lanes.capacity() / 2);
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
        assert!(upper.lanes.capacity() <= LANES_MIN);
    }
}
