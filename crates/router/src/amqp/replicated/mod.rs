//! Vhosts that survive their machine: one node of several owns such a vhost, and its journal is a stream that several
//! servers of NATS have.
//!
//! ```text
//! SharedVhost ─▶ Journal ─▶ driver (a thread for each such vhost): Ledger ─▶ jetstream
//!                              │      the stream's acknowledgement ─▶ SharedVhost::handle_commit (confirms)
//!                              └─▶ Holder (the broker's side): opened, committed, closed; whose it is instead
//! ```
//!
//! What is in the log, and who may write to it, is `crosstie_ledger`'s. Here are the thread, the clock, the connection, and
//! what nodes tell each other beside the log (a [`beat::Beat`]): who owns the vhost, and how far the log is. A
//! beat decides nothing: who owns the vhost is decided by the log alone.
//!
//! A vhost is one of its *terms* from when the node has become its owner until it is that no more. Each has a
//! `SharedVhost` of its own, so that a client of a former one reaches nothing of the next.

mod beat;
mod claiming;
mod copy;
mod driver;
mod hearing;
mod journal;
mod known;
mod log;
mod monitor;
mod moving;
mod orders;
mod others;
mod owning;
mod page;
mod questions;
mod recovering;
mod seen;
mod standing_by;
mod suspicion;
mod task;
mod term;

pub(crate) use driver::start;
pub(crate) use journal::Journal;
pub(crate) use orders::{Move, ORDERS_MAX, Order, Recover, Reply};
pub(crate) use page::page;
pub(crate) use seen::{Role, Seen};
pub(crate) use task::{Held, Holder, Task, Whose, shown};

pub use orders::{Means, Moved, Recovered};
