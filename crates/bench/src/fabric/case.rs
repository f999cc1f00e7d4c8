//! What is measured: calls one after the other, many at once, events, what nodes must know of each other first.

use crate::subject::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Call,
    Calls,
    Events,
    Subscribe,
    Register,
}

names!(Case {
    Call = "call",
    Calls = "calls",
    Events = "events",
    Subscribe = "subscribe",
    Register = "register"
} "call, calls, events, subscribe or register");
