//! What is measured: calls one after the other, many at once, events.

use crate::subject::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Call,
    Calls,
    Events,
}

names!(Case {
    Call = "call",
    Calls = "calls",
    Events = "events"
} "call, calls or events");
