//! The order of a reload.

use crate::management::Reply;

/// A requested reload.
pub(crate) struct ReloadOrder {
    /// Only reports the difference.
    pub(crate) is_dry: bool,
    /// Applies the changes that need no restart, and leaves out the others.
    pub(crate) is_partial: bool,
    /// The caller that waits for it; `None` for a signal.
    pub(crate) reply: Option<Reply>,
}
