//! The time as a vhost knows it.

/// Milliseconds since 1970, by a clock that never goes backwards: expirations survive a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);
