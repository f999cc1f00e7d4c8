//! Clients of a vhost that another node owns: their octets go to that node, and come from it, as they are.
//!
//! ```text
//! client ─▶ conversation ─ connection.open ─▶ Elsewhere: who owns the vhost?
//!                │ this node                 another one │
//!                ▼                                       ▼ serving: dial, greeting, relay both ways
//!              Open                       the owner's cluster listener ─▶ conversation ─ greeting ─▶ Open
//! ```
//!
//! The node where a client is says who it is, what it may do and what was agreed on with it; so the owner's vhost sees a
//! connection as any other. A greeting is for nodes alone: each side proves that it knows the key that the owner has made
//! for that, and that nodes are told where they are told of the owner.

mod boundary;
mod cluster;
mod dial;
mod greeting;
mod key;
mod listeners;
mod serving;
mod splicing;
#[cfg(test)]
mod tests;

pub(crate) use cluster::Cluster;
pub(super) use cluster::{Greeted, Greeting, accept, refuse};
pub(super) use greeting::{Account, Refusal};
pub(super) use listeners::transport;
pub(crate) use serving::{Spliced, serve};
pub(crate) use splicing::{Splicing, splicing};
pub(super) use splicing::{WAIT_MAX, Way};

use std::sync::atomic::{AtomicU64, Ordering};

/// Of all of a broker's vhosts.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    /// Clients whose octets go to another node.
    pub(crate) open: AtomicU64,
    pub(crate) opened: AtomicU64,
    /// Clients that were told to go elsewhere, because nobody owns their vhost, or its owner takes none.
    pub(crate) refused: AtomicU64,
    /// Octets of clients to owners.
    pub(crate) sent_bytes: AtomicU64,
    /// Octets of owners to clients.
    pub(crate) received_bytes: AtomicU64,
    /// Who has come to a cluster listener and is no node of the vhost.
    pub(crate) strangers: AtomicU64,
}

impl Splices {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
