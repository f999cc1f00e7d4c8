//! Nodes of one realm on an engine that spreads what is wanted late, and loses what comes last.
//!
//! Each node is a realm and a member, as the router puts them together. Without faults every event reaches whoever
//! was subscribed when it was published, once: the nodes are one realm. With faults events may be lost, and nothing
//! else: their order stays, none comes twice, before SUBSCRIBED or after UNSUBSCRIBED, and all is well again when the
//! faults are over.

mod asks;
mod calls;
mod cluster;
mod engine;
mod granting;
mod keeps;
mod node;
mod play;
mod run;
mod wills;

pub use asks::Asks;
pub use calls::Calls;
pub use cluster::Setting;
pub use keeps::Keeps;
pub use run::Run;
pub use wills::Wills;
