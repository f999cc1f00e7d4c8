//! MQTT in AMQP vhosts, laid out as RabbitMQ's MQTT plugin does: a client's subscriptions are queues and bindings, and its
//! publications go through a topic exchange.
//!
//! ```text
//! spaces' conversation (CONNECT, packets) ─▶ login ─▶ open
//!                                                      │ methods (names, translation)   ┌───────────────┐
//!                                                      └────────────────────────────────▶ broker's guest│
//!                     client's socket ◀─ packets ◀─ deliveries ◀─ frames in a mailbox ──┤ in the vhost  │
//!                                                                                       └───────────────┘
//! ```
//!
//! A fleet is the MQTT clients of one vhost, by identifier. All other state is the vhost's.

mod deliveries;
mod fleet;
mod fleets;
mod ground;
mod inbound;
mod login;
mod member;
mod methods;
mod names;
mod open;
mod properties;
mod session;
mod subscribing;
mod will;

pub use fleet::FleetCounts;
pub use fleets::{BrokerPlace, Fleets, VhostListener};
