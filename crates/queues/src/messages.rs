//! A queue's ready messages: the highest priority first, and within one in the order of their
//! places.
//!
//! What has no priority waits in one line, as all messages of a queue without `x-max-priority` do:
//! such a queue has nothing else. Of the levels above, only those hold memory where somebody waits,
//! and a map of bits finds them: a message costs the same whatever the number of levels is.

use std::collections::VecDeque;

use crate::queue::Entry;
use crate::shrink::shrink;

#[derive(Debug, Default)]
pub(crate) struct Messages {
    lowest: VecDeque<Entry>,
    /// None until the first message comes that has a priority.
    upper: Option<Box<Upper>>,
}

#[derive(Debug, Default)]
struct Upper {
    /// A bit for each level where messages wait.
    filled: [u64; 4],
    /// Their lines, the lowest level's first. None is empty.
    lines: Vec<VecDeque<Entry>>,
    len: usize,
}

impl Messages {
    pub(crate) fn len(&self) -> usize {
        let upper = self.upper.as_ref().map_or(0, |upper| upper.len);
        self.lowest.len() + upper
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    /// The next.
    pub(crate) fn front(&self) -> Option<&Entry> {
        let highest = self.upper.as_ref().and_then(|upper| upper.lines.last());
        highest.unwrap_or(&self.lowest).front()
    }

    /// As they are taken, one after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let upper = self.upper.iter().flat_map(|upper| upper.lines.iter().rev());
        upper.chain([&self.lowest]).flatten()
    }

    /// Behind all others of its level.
    pub(crate) fn push(&mut self, entry: Entry) {
        match entry.level {
            0 => self.lowest.push_back(entry),
            _ => self.upper_line(entry.level, 1).push_back(entry),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        if let Some(upper) = &mut self.upper
            && upper.len > 0
        {
            return upper.pop();
        }
        let entry = self.lowest.pop_front()?;
        shrink(&mut self.lowest);
        Some(entry)
    }

    /// Back to its place.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let line = match entry.level {
            0 => &mut self.lowest,
            level => self.upper_line(level, 1),
        };
        let at = line.partition_point(|other| other.place < entry.place);
        line.insert(at, entry);
    }

    /// Many back to their places, which mostly are before the first that is there, or not far
    /// behind it.
    pub(crate) fn put_back(&mut self, mut entries: Vec<Entry>) {
        entries.sort_unstable_by_key(|entry| (entry.level, entry.place));
        while let Some(last) = entries.last() {
            let level = last.level;
            let start = entries.partition_point(|entry| entry.level < level);
            let of_level = entries.split_off(start);
            match level {
                0 => merge(&mut self.lowest, of_level),
                _ => merge(self.upper_line(level, of_level.len()), of_level),
            }
        }
    }

    /// The one of that place, which may be at any level.
    pub(crate) fn find_mut(&mut self, place: i64) -> Option<&mut Entry> {
        let upper = self.upper.iter_mut().flat_map(|upper| &mut upper.lines);
        [&mut self.lowest]
            .into_iter()
            .chain(upper)
            .find_map(|line| {
                let at = find(line, place)?;
                line.get_mut(at)
            })
    }

    /// Takes out the one of that place.
    pub(crate) fn take(&mut self, place: i64) -> Option<Entry> {
        if let Some(at) = find(&self.lowest, place) {
            return self.lowest.remove(at);
        }
        self.upper.as_mut()?.take(place)
    }

    /// The line of a level above the lowest, for so many more.
    fn upper_line(&mut self, level: u8, more: usize) -> &mut VecDeque<Entry> {
        self.upper.get_or_insert_default().line(level, more)
    }
}

impl Upper {
    fn line(&mut self, level: u8, more: usize) -> &mut VecDeque<Entry> {
        self.len += more;
        let (word, bit) = place_of(level);
        let before = self.filled[..word].iter().map(|word| word.count_ones());
        let before = before.sum::<u32>() + (self.filled[word] & (bit - 1)).count_ones();
        let at = before as usize;
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.lines.insert(at, VecDeque::with_capacity(1));
        }
        &mut self.lines[at]
    }

    fn pop(&mut self) -> Option<Entry> {
        let line = self.lines.last_mut()?;
        let entry = line.pop_front()?;
        shrink(line);
        self.len -= 1;
        if line.is_empty() {
            self.remove_line(self.lines.len() - 1, entry.level);
        }
        Some(entry)
    }

    fn take(&mut self, place: i64) -> Option<Entry> {
        let mut lines = self.lines.iter().enumerate();
        let (at, place) = lines.find_map(|(at, line)| Some((at, find(line, place)?)))?;
        let entry = self.lines[at].remove(place)?;
        self.len -= 1;
        if self.lines[at].is_empty() {
            self.remove_line(at, entry.level);
        }
        Some(entry)
    }

    fn remove_line(&mut self, at: usize, level: u8) {
        let (word, bit) = place_of(level);
        self.filled[word] &= !bit;
        self.lines.remove(at);
        // A queue that once had messages at all levels does not keep room for that.
        if self.lines.capacity() > LINES_MIN && self.lines.len() < self.lines.capacity() / 4 {
            self.lines.shrink_to(self.lines.capacity() / 2);
        }
    }
}

/// Room for so many levels is not worth a move.
const LINES_MIN: usize = 8;

fn place_of(level: u8) -> (usize, u64) {
    (usize::from(level) / 64, 1 << (level % 64))
}

fn find(line: &VecDeque<Entry>, place: i64) -> Option<usize> {
    line.binary_search_by_key(&place, |entry| entry.place).ok()
}

/// Both are in the order of their places.
fn merge(line: &mut VecDeque<Entry>, mut entries: Vec<Entry>) {
    let last_place = entries.last().map_or(i64::MIN, |last| last.place);
    let mut before = Vec::new();
    while line.front().is_some_and(|front| front.place < last_place) {
        before.extend(line.pop_front());
    }
    // The later of both lists' ends goes first.
    while let Some(entry) = entries.pop() {
        while let Some(between) = before.pop_if(|other| other.place > entry.place) {
            line.push_front(between);
        }
        line.push_front(entry);
    }
    for entry in before.into_iter().rev() {
        line.push_front(entry);
    }
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
        }
    }

    /// What it holds, and what a sorted list of the same would.
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
                        both.messages.push(entry(level, place));
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
                        both.messages.put_back(std::mem::take(&mut taken));
                    }
                    6 => {
                        if let Some(entry) = taken.pop() {
                            both.add(entry.level, entry.place);
                            both.messages.insert(entry);
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
            messages.push(entry(level, level.into()));
        }
        assert!(
            (0..=255)
                .rev()
                .all(|l| messages.pop().is_some_and(|e| e.level == l))
        );
        let upper = messages.upper.expect("there were some above");
        assert_eq!((upper.filled, upper.len), ([0; 4], 0));
        assert!(upper.lines.capacity() <= LINES_MIN);
    }
}
