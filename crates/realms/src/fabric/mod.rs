//! A realm's port to the realms of its name on other nodes.
//!
//! ```text
//! keeper: dial ─▶ INFO, CONNECT ─▶ transport::Connection ─▶ reader: nats ─▶ fabric::Member ─▶ SharedRealm
//! SharedRealm ─▶ RealmOutbox ─▶ FabricPort ─▶ fabric::Member ─▶ nats ─▶ Connection (leaves with the cork)
//! ```
//!
//! `crosstie_fabric` defines the messages between nodes and tracks the nodes; here are the socket, the clock and the
//! lock. Locks are taken in one order: the realm's, then the port's.

mod bucket_queries;
mod dial;
mod exclusive_grants;
mod keeper;
mod lease;
pub mod port;
mod reader;

pub use keeper::{keep, speaking};
