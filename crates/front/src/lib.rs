//! The front of a router: connections are accepted, admitted, counted, watched, and led to an endpoint.
//!
//! ```text
//! listener (─▶ a proxy's header) ─▶ Admitted ─▶ Endpoint::start ─▶ serve ─▶ Converse ─▶ Successor, if it hands the connection over
//!                                              │
//!                                            Watch (one sweep a second over all connections)
//! ```
//!
//! This crate names no protocol: an endpoint brings its conversation, the ping and the heartbeat of its connections.

pub mod addresses;
pub mod admission;
pub mod allowance;
pub mod bound;
pub mod bounds;
pub mod cause;
pub mod certificate;
pub mod connections;
pub mod counters;
pub mod end_reason;
pub mod ends;
pub mod http_client;
pub mod issuer;
pub mod listen;
pub mod markup;
pub mod origins;
pub mod pings;
mod proxied;
pub mod report;
pub mod seed;
pub mod serve;
pub mod sniff;
pub mod sockets;
pub mod stamp;
pub mod timer;
pub mod tls_files;
pub mod trace;
pub mod watch;
