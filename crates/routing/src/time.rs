//! Time as the realm knows it: a number that its owner reads from a clock.

/// A point in time, in microseconds since an arbitrary start that the owner keeps to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// The point that many milliseconds later; the far end of time when it lies beyond.
    pub fn after_ms(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds.saturating_mul(1_000)))
    }
}
