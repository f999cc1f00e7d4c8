//! The router, put together: listeners lead to sessions, sessions to realms.
//!
//! ```text
//! listen ─▶ conversation (one per connection: first octets, handshake, frames)
//!                │ one message
//!                ▼
//!           session (HELLO … GOODBYE) ─▶ realm (one lock) ─▶ outbox ─▶ peers' queues
//! ```
//!
//! Everything below is pure or knows only octets; this crate is where a message meets a socket.

mod compress;
mod conversation;
mod counters;
mod listen;
mod node;
mod outbox;
mod pages;
mod peer;
mod realm;
mod report;
mod router;
mod session;
mod testee;
mod upgrade;
mod watch;

pub use node::{Node, NodeOptions, StartError, Started};
