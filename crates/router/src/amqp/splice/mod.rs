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
mod dial;
mod greeting;
mod key;
mod listeners;
mod relay;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use cluster::Cluster;
pub(super) use cluster::{Greeted, Greeting, accept, refuse};
pub(super) use greeting::{Account, Refusal};
pub(super) use listeners::transport;
pub(crate) use relay::{Spliced, serve};
pub(crate) use settings::{Splicing, splicing};
pub(super) use settings::{WAIT_MAX, Way};

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters over all vhosts of a broker.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    /// Number of clients currently spliced to other nodes.
    pub(crate) open: AtomicU64,
    pub(crate) opened: AtomicU64,
    /// Number of clients refused because their vhost has no owner, or its owner accepts no spliced clients.
    pub(crate) refused: AtomicU64,
    /// Bytes relayed from clients to owners.
    pub(crate) sent_bytes: AtomicU64,
    /// Bytes relayed from owners to clients.
    pub(crate) received_bytes: AtomicU64,
    /// Number of peers on a cluster listener that failed to prove that they are nodes of the vhost.
    pub(crate) strangers: AtomicU64,
}

impl Splices {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
