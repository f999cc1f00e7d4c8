//! One run: places of one extent, a bit for each.

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

/// Places of one extent.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(super) extent: u64,
    /// The place of the first bit: a multiple of 64.
    base: i64,
    words: Vec<u64>,
    pub(super) count: usize,
    /// Approximate octets in the log, and those of the bodies alone. Each message has an equal share once others leave.
    bytes: u64,
    pub(super) body_bytes: u64,
}

const BITS: i64 = 64;

impl Run {
    pub(super) fn beginning(place: i64, extent: u64) -> Self {
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

    pub(super) fn first(&self) -> Option<i64> {
        self.places().next()
    }

    /// The last place; before all others if there is none.
    pub(super) fn last(&self) -> i64 {
        let Some(at) = self.words.iter().rposition(|word| *word != 0) else {
            return i64::MIN;
        };
        let bit = 63 - self.words[at].leading_zeros();
        self.base + at as i64 * BITS + i64::from(bit)
    }

    pub(super) fn has(&self, place: i64) -> bool {
        let (word, bit) = self.split_place(place);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn add(&mut self, place: i64, size: Size) {
        let (word, bit) = self.split_place(place);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        self.count += 1;
        self.bytes += size.bytes;
        self.body_bytes += size.body_bytes;
    }

    pub(super) fn remove(&mut self, place: i64) -> Gone {
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

    /// Removes the places from the first to the last of these, a word at a time.
    pub(super) fn remove_between(&mut self, from: i64, to: i64) -> Gone {
        let mut count = 0;
        for (at, word) in self.words.iter_mut().enumerate() {
            let base = self.base + at as i64 * BITS;
            // The bits of this word from the first place on, and those up to the last.
            let behind = u32::try_from(from.saturating_sub(base).max(0)).unwrap_or(u32::MAX);
            let before = u32::try_from((base + BITS - 1).saturating_sub(to).max(0));
            let behind = u64::MAX.checked_shl(behind).unwrap_or(0);
            let before = u64::MAX
                .checked_shr(before.unwrap_or(u32::MAX))
                .unwrap_or(0);
            let mask = behind & before;
            count += (*word & mask).count_ones() as usize;
            *word &= !mask;
        }
        // The last ones take what is left.
        let (share, all) = (self.share(), count == self.count);
        let part = |each: u64, whole: u64| if all { whole } else { each * count as u64 };
        let size = Size {
            bytes: part(share.bytes, self.bytes),
            body_bytes: part(share.body_bytes, self.body_bytes),
        };
        self.count -= count;
        self.bytes -= size.bytes;
        self.body_bytes -= size.body_bytes;
        Gone {
            extent: self.extent,
            count,
            size,
        }
    }

    /// Takes out the places behind that one.
    pub(super) fn split(&mut self, place: i64) -> Self {
        let behind: Vec<i64> = self.places().filter(|found| *found > place).collect();
        let mut split = Self::beginning(behind.first().copied().unwrap_or(place), self.extent);
        for place in behind {
            let gone = self.remove(place);
            split.add(place, gone.size);
        }
        split
    }

    pub(super) fn all(self) -> Gone {
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
