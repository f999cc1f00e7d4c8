//! The cases: calls in sequence, many concurrent calls, events, knowledge that nodes must share first, and publications
//! confirmed through a node that does not own the vhost.

use crate::subject::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Call,
    Calls,
    Events,
    Subscribe,
    Register,
    Confirm,
    Confirms,
}

impl Case {
    /// Whether it is about clients of a replicated vhost, and not about a realm.
    pub(super) fn is_of_a_vhost(self) -> bool {
        matches!(self, Self::Confirm | Self::Confirms)
    }
}

names!(Case {
    Call = "call",
    Calls = "calls",
    Events = "events",
    Subscribe = "subscribe",
    Register = "register",
    Confirm = "confirm",
    Confirms = "confirms"
} "call, calls, events, subscribe, register, confirm or confirms");
