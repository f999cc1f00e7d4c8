//! Replicated vhosts: one of several nodes owns each vhost, and its journal is a JetStream stream with several
//! replicas.
//!
//! ```text
//! SharedVhost ─▶ Journal ─▶ driver (a thread for each such vhost): Ledger ─▶ jetstream
//!                              │      the stream's acknowledgement ─▶ SharedVhost::handle_commit (confirms)
//!                              └─▶ Holder (the broker's side): opened, committed, closed; the owner if it is another node
//! ```
//!
//! `crosstie_ledger` defines the log's contents and decides which node may write. Here are the thread, the clock, the
//! connection, and the heartbeats beside the log ([`beat::Beat`]), which announce the owner and the log's length. A
//! heartbeat decides nothing: the log alone determines the owner.
//!
//! A node's ownership of a vhost is a *term*: it begins when the node becomes the owner, and ends when it stops being
//! that. Each term has its own `SharedVhost`, so that a client of an earlier term does not reach the next.

mod beat;
mod claim;
mod copy;
mod driver;
mod filling;
mod handing;
mod handover;
mod heartbeats;
mod held;
mod journal;
mod known_log;
mod log;
mod monitor;
mod orders;
mod owner;
mod page;
mod pages;
mod peers;
mod preparation;
mod progress;
mod questions;
mod reading;
mod recovery_task;
mod seen;
mod spare;
mod standby;
mod suspicion;
mod task;
mod term;
mod unread;

pub(crate) use driver::start;
pub use held::Held;
pub(crate) use journal::Journal;
pub use orders::Reply;
pub(crate) use orders::{Move, ORDERS_MAX, Order, Recover};
pub use page::page;
pub(crate) use pages::Wanted;
pub use seen::{Role, Seen};
pub use task::Whose;
pub(crate) use task::{Beginning, Building, Holder, Task, shown};

pub use orders::{Means, Moved, Recovered};
