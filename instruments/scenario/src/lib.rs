//! Scenarios of WAMP sessions: the messages that several clients send to a router, and those that each of them must
//! receive.
//!
//! A scenario is text, a line for each message; docs/conformance.md has the form. This crate parses, plays and judges,
//! without IO:
//!
//! ```text
//! text ─parse─▶ Feature ─▶ Scenario ─▶ Play
//!                                      │ ▲
//!                   next_action() an Action, handle() what Happened …
//!                                      ▼ │
//!                          the owner of the sockets: opens, sends, receives, waits
//!                                      … until next_action() is Action::Done: outcome()
//! ```
//!
//! Every message is a plain list of values, as it was on the wire: additions and omissions of a router are visible, and
//! a scenario may contain invalid messages.

mod compare;
mod happened;
mod labels;
mod lines;
mod model;
mod parse;
mod play;
mod show;
mod state;
mod term;
mod words;

pub use happened::{Action, Failure, Happened, Outcome};
pub use labels::Labels;
pub use model::{Act, Alternative, Announcement, Expected, Feature, Join, Scenario, Step};
pub use parse::{BYTES_MAX, LINES_MAX, ParseError, parse};
pub use play::Play;
pub use show::{show, show_value};
pub use term::{Entry, Item, Kind, Piece, Term};
