//! A vhost simulated from a seed: clients send random methods, and its store commits at any time, fails, and forgets
//! uncommitted records.
//!
//! ```text
//! Operation ─▶ Vhost ─▶ what it sent ─▶ Model: may it have sent that, and was that all?
//!                └─▶ records ─▶ Disk ─▶ at every commit: a vhost restored from it has what the
//!                                        model had then, in its order, and nothing else
//! ```
//!
//! A vhost may choose which of several consumers gets a message, and which queue is first. The [`Model`] therefore does
//! not predict messages. It checks that each message was permitted, and that no required one is missing. It is written
//! for readability: flat lists and scans.

mod delays;
mod disk;
mod draw;
mod model;
mod operation;
mod recorder;
mod run;

pub use delays::DelaySimulation;
pub use disk::Disk;
pub use model::Model;
pub use operation::{Channel, Operation, QueueKind, Settlement};
pub use recorder::Sent;
pub use run::VhostSimulation;
