//! Nodes of one realm on an engine that spreads subscriptions late, and may lose the latest messages.
//!
//! Each node is a realm and a member, as the router puts them together. Without faults every event reaches each
//! subscriber of the time of its publication, once: the nodes are one realm. With faults events may be lost, and
//! nothing else. Their order stays; none arrives twice, before SUBSCRIBED or after UNSUBSCRIBED. After the faults,
//! everything works again.

mod asks;
mod calls;
mod cluster;
mod engine;
mod grants;
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
