//! The router simulated from a seed: many sessions send random messages to one realm, and a naive model computes the
//! messages that each must receive.
//!
//! [`Model`] is a second realm, written for the eye: flat lists, scans, no indices, and none of the first one's code.
//! [`Simulation`] draws operations, gives each to both, and compares the messages to every session. Time is a number
//! that it advances. A failure names its seed, and the same seed plays the same operations again.
//!
//! [`queues`] does the same with an AMQP vhost and a store that forgets, [`fabric`] with realms of several nodes,
//! [`ledger`] with a vhost whose journal several nodes share.

mod ask;
mod chance;
pub mod fabric;
pub mod ledger;
mod model;
mod operation;
pub mod queues;
mod reflect;
mod sent;
mod simulation;

pub use ask::{About, Ask, Kind, Whom};
pub use chance::Chance;
pub use model::Model;
pub use operation::{Name, Operation, Refusing, Request};
pub use reflect::{Defined, Reflect, Whether};
pub use sent::Sent;
pub use simulation::{Failure, Simulation};
