//! The time, which the owner passes in.

/// Milliseconds since a moment of the owner's choice. With a store, the moment is the same in every run (the Unix
/// epoch), because expiries are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    pub(crate) fn after_s(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(u64::from(seconds) * 1000))
    }
}
