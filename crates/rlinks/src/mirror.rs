//! What a link holds in one realm for the other.

use crate::interests::Path;

/// What the link holds in a realm for the other one.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) state: State,
    /// As other links were told.
    pub(crate) path: Path,
    /// The realm has said no; it is asked again when something has changed there.
    pub(crate) is_refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Asking,
    /// By the id of the subscription or registration.
    Held(u64),
    Dropping,
}
