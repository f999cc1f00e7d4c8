//! The bodies of the fuzz targets, so that an ordinary test can run them too, and what that test
//! needs: inputs from a seed.
//!
//! A body panics where an invariant does not hold; it is told in the body's documentation.

pub mod amqp;
pub mod codec;
pub mod fabric;
pub mod framing;
pub mod joints;
pub mod ledger;
pub mod mqtt;
pub mod mutation;
pub mod oauth2;
pub mod proxy;
pub mod scenario;
pub mod store;
pub mod streams;
pub mod topics;
pub mod web;
pub mod x509;
