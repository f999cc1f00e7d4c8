//! The client's side of NATS' protocol, as functions of bytes.
//!
//! [`decode`] is offered what has come from a server and says what it found: an [`Operation`] that borrows from
//! the bytes, or how many more it needs; [`Denial`] reads the errors after which a server goes on. [`encode`] has a
//! function for each operation of a client, which appends to a vector; a [`Growing`] message is appended to while it waits. [`headers`] finds what is in a message's headers,
//! and [`nkey`] reads and writes the keys that users are known by.
//!
//! There are libraries for NATS. This is its data path only, and own code for the sake of order: they deliver each
//! subscription into a queue of its own, so that messages of two subjects lose their order, which WAMP promises
//! between a publisher and a subscriber.
//!
//! Never: a socket, a clock, what a subject means.

mod denial;
pub mod encode;
mod growing;
pub mod headers;
pub mod nkey;
mod operation;
mod subject;

pub use denial::Denial;
pub use growing::Growing;
pub use operation::{DecodeError, Decoded, Limits, Message, Operation, decode};
pub use subject::{escaped, is_pattern, is_subject};
