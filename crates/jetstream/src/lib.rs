//! A connection to NATS with requests and answers, and JetStream's streams over it.
//!
//! ```text
//! Connection::dial ─▶ request ─▶ Message        one answer
//!                  ├▶ ask_many ─▶ Subscription  several, to one question
//!                  ├▶ subscribe ─▶ Subscription whatever is published
//!                  ├▶ Stream: create, inspect, append behind a sequence, read, purge, delete
//!                  └▶ Register: keys with values, each written behind what it had
//! ```
//!
//! A [`Connection`] has one server; after its end ([`Connection::ended`]), its owner dials the next. Requests are few
//! and their answers awaited, so that the order for which [`crosstie_nats`] exists does not matter here: each request
//! has its own inbox. Answers are JSON, from which [`answer`] reads the necessary parts.
//!
//! Connections of other kinds use [`LoginFiles`] and [`Greeting`], too.
//!
//! Never: the meaning of an entry or a key.

pub mod answer;
mod connection;
mod credentials;
mod dial;
mod failed;
mod greeting;
mod io_task;
mod login;
mod message;
mod register;
mod shared;
mod stream;
mod subscription;

pub use connection::Connection;
pub use credentials::Credentials;
pub use dial::{Server, Speaking};
pub use failed::Failed;
pub use greeting::{Greeting, LINE_BYTES_MAX};
pub use login::{Login, LoginFiles};
pub use message::Message;
pub use register::{Put, Register};
pub use stream::{Append, Batch, Stream, StreamConfig};
pub use subscription::Subscription;
