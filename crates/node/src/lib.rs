//! A node: a directory with a key and a configuration, workers that are started, watched and stopped together, and a
//! management realm for operators.
//!
//! ```text
//!             one loop, on one thread
//!  signals ──▶ ┌───────────┐ ──▶ routers (threads of this process)
//!  children ─▶ │   Node    │ ──▶ child processes: containers, guests
//!  timers ───▶ │ one Event │ ──▶ events of the management realm
//!  requests ─▶ └───────────┘ ──▶ answers there
//! ```
//!
//! Everything that wakes the node is an `Event`; every wait is a task that sends one.

/// The guide's examples compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tasks/rust.md")]
struct Guide;

pub mod directory;
mod drain;
mod embedded;
mod event;
mod log_level;
mod management;
mod node;
mod outcome;
mod place;
pub mod process;
mod programs;
mod reload;
mod report;
mod service_manager;
mod shutdown;
mod start;
mod task;
mod triggers;
mod upgrade;
mod workers;

pub use crosstie_config as config;
/// Checks of files as a node would use them, without a node; and the sockets that the process was passed.
pub use crosstie_router::{
    amqp::NatsCredentials, amqp::try_import, certificates, check_peer, check_tls, handed, passed,
};
pub use embedded::{EmbeddedError, EmbeddedNode, EmbeddedOptions, test_node};
pub use log_level::{LogLine, ReadLog};
pub use node::Node;
pub use outcome::Outcome;
pub use reload::{ReloadSource, Reloader};
pub use report::CHILD_LINES;
pub use service_manager::ServiceManager;
pub use start::{Options, StartError};
pub use upgrade::{TAKES_OVER, Takeover};
