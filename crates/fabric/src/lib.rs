//! What nodes that serve one realm say to each other, and who of them is there.
//!
//! Nodes meet on an engine that passes messages by subject, and that this crate knows as an [`Engine`]: it keeps
//! the order of one connection, also over several servers, and may lose what comes last. On it:
//!
//! - [`Frame`]: the form of what is said, with a head of 24 octets;
//! - [`Subjects`]: URIs and patterns as subjects, and back;
//! - [`event`]: an event in a frame, [`crossing`]: what a realm says to another node's;
//! - [`pack`]: many frames for one node in one message;
//! - [`Member`]: one node in the realm. It says who it is, knows who else is there, wants what is subscribed to
//!   here, and tells from when on others know that.
//!
//! # How to drive a [`Member`]
//!
//! 1. [`Member::attach`] when there is a connection to a server, [`Member::detach`] when there is none any more.
//! 2. [`Member::handle_message`] for each of the [frames](pack::frames) that came under its subscriptions, [`Member::handle_pong`] for each answer to
//!    [`Engine::ping`].
//! 3. [`Member::interest`] and [`Member::publish`] for what the realm says.
//! 4. [`Member::cross`] for what the realm says to another node's. Before the realm is given a crossing that came, and
//!    after each tick, it is given [`Member::take_changes`], in the same order and under the same lock.
//! 5. [`Member::handle_tick`] some four times a second. Where it says that the link is silent, the connection is to
//!    be closed.
//! 6. [`Member::handle_denied`] where the engine does not let the node do something, and what that says is to be done.
//! 7. After each of them [`Member::in_force`] may have grown, and is the realm's to know.
//!
//! Never: a socket, a clock, an engine's name.

pub mod crossing;
mod denied;
mod engine;
pub mod event;
mod fields;
mod frame;
mod interests;
mod member;
mod neighbours;
pub mod pack;
mod pair;
mod refusal;
mod subjects;
mod versions;

pub use denied::{Denied, Matters};
pub use engine::{Engine, Refused};
pub use frame::{Frame, HEAD_BYTES, Head, Kind};
pub use member::{Change, Counts, Detached, Input, Member, Options, State, Ticked, To};
pub use pair::Cause;
pub use refusal::Refusal;
pub use subjects::{SUBJECT_BYTES_MAX, Subjects};
pub use versions::Versions;
