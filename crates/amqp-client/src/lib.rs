//! A blocking AMQP 0-9-1 connection.
//!
//! How to drive it: [`Connection::open`], [`Connection::open_channel`]; then [`Connection::send`] and
//! [`Connection::publish`] buffer their frames until [`Connection::flush`], or until a wait by
//! [`Connection::next_event`] or [`Connection::call`]. So a request and its related frames leave in one write, and all
//! received events are returned before the socket is read again. Heartbeats are answered and sent during every wait; a
//! user that does not wait for half of the interval calls [`Connection::keep_alive`].
//!
//! Writes are buffered until a wait, reads are large, and events are borrowed from the read buffer, so that a round trip
//! costs one system call each way.
//!
//! Never: a broker's own code; brokers are used by URL like any other.

mod connection;
mod error;
mod event;
mod input;
mod negotiation;
mod url;

pub use connection::{Connection, ConnectionOptions, Mechanism};
pub use error::ConnectionError;
pub use event::{Content, Event};
pub use url::{Host, TransportUrl, UrlError};
