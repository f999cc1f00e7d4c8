//! A queue whose next page cannot be read.

use crosstie_queues::Want;

pub(super) struct Unreadable {
    /// `None` while it is read again.
    pub(super) want: Option<Want>,
    pub(super) why: String,
}
