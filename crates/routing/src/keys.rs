//! Places in the tables of the dealer and the broker, as sessions and neighbours list them.

/// An open call's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallKey(pub(crate) u32);

/// A registration's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegistrationKey(pub(crate) u32);

/// A subscription's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SubscriptionKey(pub(crate) u32);
