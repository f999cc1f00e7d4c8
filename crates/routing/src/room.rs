//! Returns the memory of a slab that most of its entries have left.

use slab::Slab;

/// Slabs of fewer places keep their memory: a session takes some 100 bytes.
const PLACES_MIN: usize = 128;

/// The room of one slab. Its entries keep their places, so what can be returned is behind the last of them: after a burst,
/// nearly all.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// The slab's places when the last entry was looked for.
    places: usize,
    /// The place of that entry. Until it leaves there is nothing more to return, so that looking for the last entry takes
    /// each place once.
    last: usize,
}

impl Room {
    /// To be called after an entry has left.
    #[inline]
    pub(crate) fn shrink<T>(&mut self, slab: &mut Slab<T>) {
        if slab.len() < slab.capacity() / 8 && slab.capacity() >= PLACES_MIN {
            self.shrink_behind_last(slab);
        }
    }

    #[cold]
    #[inline(never)]
    fn shrink_behind_last<T>(&mut self, slab: &mut Slab<T>) {
        let is_known = self.places == slab.capacity();
        if is_known && slab.contains(self.last) {
            return;
        }
        let end = if is_known { self.last } else { slab.capacity() };
        let last = (0..end).rev().find(|place| slab.contains(*place));
        self.last = last.unwrap_or(0);
        if self.last < slab.capacity() / 2 {
            slab.shrink_to_fit();
        }
        self.places = slab.capacity();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a slab, and empties it but for the entries at some places, in an order that `step` makes.
    fn after_a_burst(kept: &[usize], step: usize) -> Slab<usize> {
        let (mut slab, mut room) = (Slab::new(), Room::default());
        for number in 0..20_000 {
            slab.insert(number);
        }
        let leaving = (1..=20_000).map(|turn| turn * step % 20_000);
        for key in leaving.filter(|key| !kept.contains(key)) {
            slab.remove(key);
            room.shrink(&mut slab);
        }
        slab
    }

    #[test]
    fn a_slab_that_empties_returns_its_memory() {
        let cases: [&[usize]; 4] = [&[], &[0], &[0, 10, 300], &[1, 2, 3, 4, 5]];
        for kept in cases {
            for step in [1, 7_919, 19_999] {
                let places = after_a_burst(kept, step).capacity();
                let last = kept.last().map_or(0, |last| last + 1);
                let most = PLACES_MIN.max(2 * last);
                assert!(places <= most, "{kept:?}, {step}: {places}");
            }
        }
    }

    #[test]
    fn entries_keep_their_places() {
        let cases: [&[usize]; 3] = [&[0, 3000], &[19_999], &[100, 5000, 19_000]];
        for kept in cases {
            let mut slab = after_a_burst(kept, 7_919);
            assert_eq!(slab.len(), kept.len());
            for number in 0..20_000 {
                slab.insert(number);
            }
            assert_eq!(slab.len(), kept.len() + 20_000);
            assert!(kept.iter().all(|key| slab[*key] == *key));
        }
    }
}
