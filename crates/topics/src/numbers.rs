//! The numbers by which records name sessions and messages.

/// The number of a kept session. It is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionNumber(pub u64);

/// The number of a message that waits for kept sessions. It is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageNumber(pub u64);
