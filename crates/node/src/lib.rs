//! A node, as an operator sees it: a directory with a key and a configuration, workers that are
//! started, watched and stopped together, and a management realm to ask about them.
//!
//! ```text
//!             one loop, on one thread
//!  signals ──▶ ┌───────────┐ ──▶ routers (threads of this process)
//!  children ─▶ │   Node    │ ──▶ child processes: containers, guests
//!  timers ───▶ │ one Event │ ──▶ events of the management realm
//!  requests ─▶ └───────────┘ ──▶ answers there
//! ```
//!
//! Whatever wakes the node is an `Event`; whatever waits is a task that sends one.

pub mod directory;
mod event;
mod management;
mod node;
mod place;
pub mod process;
mod programs;
mod report;
mod shutdown;
mod task;
mod triggers;
mod workers;

/// What a node would make of files that it is given, without one.
pub use crosstie_router::{amqp::try_import, certificates, check_peer, check_tls};
pub use node::{Node, Options, Outcome, StartError};
pub use report::CHILD_LINES;
