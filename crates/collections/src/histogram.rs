//! Histograms with fixed classes: to note a value costs a few instructions and allocates nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of classes. Class 0 has the value 0, class n the values from 2^(n-1) to 2^n - 1, the last one all beyond.
pub const CLASSES: usize = 32;

/// Counts of values by class, and their sum. The unit is that of the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    classes: [u64; CLASSES],
    sum: u64,
}

impl Histogram {
    #[inline]
    pub fn note(&mut self, value: u64) {
        self.classes[class(value)] += 1;
        self.sum = self.sum.wrapping_add(value);
    }

    /// Adds so many values of 0.
    pub fn note_zeros(&mut self, count: u64) {
        self.classes[0] += count;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The counts by class.
    pub fn classes(&self) -> &[u64; CLASSES] {
        &self.classes
    }

    /// Adds the values of another.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.classes.iter_mut().zip(other.classes) {
            *own += other;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// A histogram that others read while it is written.
#[derive(Debug)]
pub struct SharedHistogram {
    classes: [AtomicU64; CLASSES],
    sum: AtomicU64,
}

impl SharedHistogram {
    pub const fn new() -> Self {
        Self {
            classes: [const { AtomicU64::new(0) }; CLASSES],
            sum: AtomicU64::new(0),
        }
    }

    /// Notes a value `weight` times. Only one thread may write: a load and a store, without a bus lock.
    #[inline]
    pub fn note_alone(&self, value: u64, weight: u64) {
        let add = |to: &AtomicU64, more: u64| {
            to.store(
                to.load(Ordering::Relaxed).wrapping_add(more),
                Ordering::Relaxed,
            );
        };
        add(&self.classes[class(value)], weight);
        add(&self.sum, value.wrapping_mul(weight));
    }

    /// Notes a value; any number of threads may write.
    pub fn note(&self, value: u64) {
        self.classes[class(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// The values so far.
    pub fn read(&self) -> Histogram {
        let mut read = Histogram::default();
        for (own, shared) in read.classes.iter_mut().zip(&self.classes) {
            *own = shared.load(Ordering::Relaxed);
        }
        read.sum = self.sum.load(Ordering::Relaxed);
        read
    }
}

impl Default for SharedHistogram {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of bits of a value.
#[inline]
fn class(value: u64) -> usize {
    ((u64::BITS - value.leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_the_values_of_so_many_bits() {
        for (value, expected) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 2),
            (4, 3),
            (1023, 10),
            (1024, 11),
            ((1 << 30) - 1, 30),
            (1 << 30, 31),
            (u64::MAX, 31),
        ] {
            let mut own = Histogram::default();
            own.note(value);
            assert_eq!(own.classes()[expected], 1, "{value}");
            let shared = SharedHistogram::new();
            shared.note(value);
            shared.note_alone(value, 2);
            assert_eq!(shared.read().classes()[expected], 3, "{value}");
            assert_eq!(shared.read().sum(), value.wrapping_mul(3), "{value}");
        }
    }

    #[test]
    fn histograms_add_up() {
        let mut all = Histogram::default();
        all.note(3);
        let mut more = Histogram::default();
        more.note(3);
        more.note(100);
        more.note_zeros(2);
        all.add(&more);
        assert_eq!((all.count(), all.sum()), (5, 106));
        assert_eq!(all.classes()[2], 2);
    }
}
