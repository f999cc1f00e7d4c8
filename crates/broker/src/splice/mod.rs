//! Splices clients to the node that owns their vhost: relays their bytes unchanged in both directions.
//!
//! ```text
//! client ─▶ conversation ─ connection.open ─▶ Elsewhere: who owns the vhost?
//!                │ this node                 another one │
//!                ▼                                       ▼ serving: dial, greeting, relay both ways
//!              Open                       the owner's cluster listener ─▶ conversation ─ greeting ─▶ Open
//! ```
//!
//! The client's node sends the client's identity, permissions and negotiated parameters, so that the owner's vhost sees
//! an ordinary connection. Only nodes can send a greeting: each side proves that it knows the owner's key. Nodes learn
//! that key together with the owner's address.

mod boundary;
mod cluster;
mod counts;
mod dial;
pub mod greeting;
pub mod key;
mod listeners;
mod relay;
pub mod settings;

pub use cluster::Cluster;
pub use cluster::accept;
pub(super) use cluster::{Greeted, Greeting, refuse};
pub use counts::Splices;
pub use greeting::Account;
pub(super) use greeting::Refusal;
pub use listeners::transport;
pub(crate) use relay::Spliced;
pub(crate) use relay::serve;
pub use settings::{Splicing, splicing};
pub(super) use settings::{WAIT_MAX, Way};
