//! The name of a listener, which outlives sessions.

/// A registration or subscription of this client, for the client's lifetime: the routers' ids change with each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListenerKey(pub(crate) u64);
