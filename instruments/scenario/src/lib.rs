//! Scenarios of WAMP sessions: what several clients of a router send, and what each of them must be sent.
//!
//! A scenario is text, a line for each message; docs/conformance.md has the form. Here it is parsed, played and
//! judged, without IO:
//!
//! ```text
//! text ─parse─▶ Feature ─▶ Scenario ─▶ Play
//!                                      │ ▲
//!                   next_action() an Action, handle() what Happened …
//!                                      ▼ │
//!                          whoever has sockets: opens, sends, receives, waits
//!                                      … until next_action() is Action::Done: outcome()
//! ```
//!
//! Every message is a plain list of values, as it was on the wire: what a router adds or leaves out is seen, and
//! a scenario may say what is no message at all.

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
