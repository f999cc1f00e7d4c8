//! Places in the dealer's tables, as sessions and neighbours list them.

/// An open call's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallKey(pub(crate) u32);

/// A registration's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RegistrationKey(pub(crate) u32);
