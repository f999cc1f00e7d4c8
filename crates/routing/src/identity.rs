//! The identity of a session, and the keys that name it.

use std::sync::Arc;

/// The identity of a session, as its authentication determined it. The texts are shared: a node with many anonymous
/// sessions stores their role and method once.
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
    /// No session.
    pub(crate) const NONE: Self = Self(u32::MAX);
}
