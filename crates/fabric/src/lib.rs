//! The protocol between nodes that serve one realm, and the tracking of these nodes.
//!
//! Nodes are connected by an engine that passes messages by subject, seen here as an [`Engine`]. It keeps the order of
//! one connection, across servers too, and may lose the latest messages. On it:
//!
//! - [`Frame`]: the wire format, with a head of 24 bytes;
//! - [`Subjects`]: URIs and patterns as subjects, and back;
//! - [`event`]: an event as a frame, [`crossing`]: messages between realms;
//! - [`pack`]: many frames for one node in one message;
//! - [`Member`]: one node of the realm. It announces itself, tracks the others, subscribes to the subjects of its
//!   sessions, and tells from when on the others know these.
//!
//! # How to drive a [`Member`]
//!
//! 1. [`Member::attach`] when a connection to a server opens, [`Member::detach`] when it ends.
//! 2. [`Member::handle_message`] for each of the [frames](pack::frames) received on its subscriptions,
//!    [`Member::handle_pong`] for each answer to [`Engine::ping`].
//! 3. [`Member::interest`] and [`Member::publish`] for the realm's subscriptions and events.
//! 4. [`Member::cross`] for messages to another node's realm. Before each received crossing, and after each tick, the
//!    realm gets [`Member::take_changes`], in the same order and under the same lock.
//! 5. [`Member::handle_tick`] about four times a second. If it reports a silent link, close the connection.
//! 6. [`Member::handle_denied`] if the engine denies a permission; its result tells what to do.
//! 7. Afterwards [`Member::in_force`] may have grown, which the realm must know.
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
pub use member::status::NeighbourStatus;
pub use member::{Change, Counts, Detached, Input, Member, Options, State, Ticked, To};
pub use pair::Cause;
pub use refusal::Refusal;
pub use subjects::{SUBJECT_BYTES_MAX, Subjects};
pub use versions::Versions;
