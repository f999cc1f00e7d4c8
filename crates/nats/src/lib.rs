//! The client's side of NATS' protocol, as functions of bytes.
//!
//! [`decode`] gets the bytes from a server and returns an [`Operation`] that borrows from them, or the number of
//! further bytes needed. [`Denial`] reads the errors that keep the connection open. [`encode`] has a function for each
//! operation of a client, which appends to a vector; a [`Growing`] message can be extended while it waits. [`headers`]
//! reads a message's headers, and [`nkey`] reads and writes users' keys.
//!
//! NATS libraries exist. This crate has only the data path, for the sake of order: the libraries deliver each
//! subscription into its own queue, so that messages of two subjects lose their order, which WAMP promises between a
//! publisher and a subscriber.
//!
//! Never: a socket, a clock, the meaning of a subject.

mod denial;
pub mod encode;
mod growth;
pub mod headers;
pub mod nkey;
mod operation;
mod subject;

pub use denial::Denial;
pub use growth::Growing;
pub use operation::{DecodeError, Decoded, Limits, Message, Operation, decode};
pub use subject::{escaped, is_pattern, is_subject};
