//! The events of an upgrade in the node's loop.

use super::message::Said;
use super::steps::Phase;

/// An event of an upgrade.
pub(crate) enum News {
    Said(Said),
    /// The successor sent something that is no message.
    Nonsense,
    /// The descriptors could not be sent.
    Lost(String),
    /// The successor has ended.
    Ended,
    Overdue(Phase),
    /// Clients are due to leave.
    Due,
    /// All routers have stopped.
    Stopped,
}
