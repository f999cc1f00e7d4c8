//! A realm's link to those of its name on other nodes.
//!
//! ```text
//! keeper: dial ─▶ INFO, CONNECT ─▶ transport::Connection ─▶ reading: nats ─▶ fabric::Member ─▶ SharedRealm
//! SharedRealm ─▶ RealmOutbox ─▶ Link ─▶ fabric::Member ─▶ nats ─▶ Connection (leaves with the cork)
//! ```
//!
//! What nodes say to each other, and who is there, is `crosstie_fabric`'s; here are the socket, the clock and the
//! lock. Locks are taken in one order: the realm's, then the link's.

mod asking;
mod dial;
mod keeper;
mod reading;
mod singles;

pub(crate) use keeper::{keep, speaking};
