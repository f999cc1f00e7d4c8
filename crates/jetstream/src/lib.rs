//! A connection to NATS that asks and is answered, and JetStream's streams by it.
//!
//! ```text
//! Connection::dial ─▶ request ─▶ Message        one answer
//!                  ├▶ ask_many ─▶ Subscription  several, to one question
//!                  ├▶ subscribe ─▶ Subscription whatever is published
//!                  ├▶ Stream: create, inspect, append behind a sequence, read, purge
//!                  └▶ Register: keys with values, each written behind what it had
//! ```
//!
//! A [`Connection`] is one to one server; when it has ended ([`Connection::ended`]), whoever had it dials the next.
//! Requests are few and their answers are awaited, so that the order which [`crosstie_nats`] exists for is no matter
//! here: each question has an inbox of its own. What servers answer is JSON, of which [`answer`] takes what is needed.
//!
//! [`Credentials`] and [`Greeting`] are also those of connections that speak by other means.
//!
//! Never: what an entry or a key means.

pub mod answer;
mod connection;
mod credentials;
mod dial;
mod failed;
mod greeting;
mod message;
mod register;
mod running;
mod shared;
mod stream;
mod subscription;

pub use connection::Connection;
pub use credentials::Credentials;
pub use dial::{Server, Speaking, client_config};
pub use failed::Failed;
pub use greeting::{Greeting, LINE_BYTES_MAX};
pub use message::Message;
pub use register::{Put, Register};
pub use stream::{Append, Batch, Stream, StreamConfig};
pub use subscription::Subscription;
