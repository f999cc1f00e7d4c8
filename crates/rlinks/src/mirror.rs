//! The mirrors that a link holds in one realm for the other.

use crate::interests::Path;

/// A mirror that the link holds in a realm for the other one.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) state: State,
    /// As announced to other links.
    pub(crate) path: Path,
    /// The realm has refused it; the link retries after a change there.
    pub(crate) is_refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Asking,
    /// With the id of the subscription or registration.
    Held(u64),
    Dropping,
}
