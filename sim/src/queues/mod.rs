//! A vhost simulated from a seed: clients do random things to it, its store commits when it likes,
//! fails, and forgets what was not committed.
//!
//! ```text
//! Operation ─▶ Vhost ─▶ what it sent ─▶ Model: may it have sent that, and was that all?
//!                └─▶ records ─▶ Disk ─▶ at every commit: a vhost restored from it has what the
//!                                        model had then, in its order, and nothing else
//! ```
//!
//! A vhost may choose: who of several consumers is given a message, and which queue is first. The
//! [`Model`] therefore does not say what is sent; it says whether what was sent may have been, and
//! whether anything is left that had to be. It is written for the eye: flat lists and scans.

mod disk;
mod draw;
mod model;
mod operation;
mod recorder;
mod run;

pub use disk::Disk;
pub use model::Model;
pub use operation::{Channel, Operation, QueueKind, Settlement};
pub use recorder::Sent;
pub use run::VhostSimulation;
