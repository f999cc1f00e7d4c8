//! Who a session is, and what names it.

use std::sync::Arc;

/// Who a session is, as its authentication found. The texts are shared: a node with many
/// anonymous sessions needs their role and method once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub authid: Arc<str>,
    pub authrole: Arc<str>,
    pub authmethod: Arc<str>,
    pub authprovider: Arc<str>,
}

/// Names a session to its realm. A key outlives its session harmlessly: it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub(crate) index: SessionIndex,
    pub(crate) generation: u32,
}

/// A session's place in the table, for references that end with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionIndex(pub(crate) u32);

impl SessionIndex {
    /// Of no session.
    pub(crate) const NOBODY: Self = Self(u32::MAX);
}
