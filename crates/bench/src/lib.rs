//! Load drivers, floors and reports: what the command line's `bench` runs.
//!
//! The bench has no edge to the router. It starts one as a user would, or is given the URL of
//! somebody else's, and measures both exactly alike:
//!
//! ```text
//!            ┌────────── bench: placement, rounds, accounting, reports ──────────┐
//!            ▼                            ▼                                      ▼
//!   caller ──────▶ router ──────▶ callee      caller ──────▶ relay ──────▶ callee
//!     (pipe, one thread, blocking)               (the floor: the same bytes, no messages)
//! ```
//!
//! Every box is a process. Caller, callee and relay are this executable started again with
//! [`worker::SUBCOMMAND`], which the command line forwards to [`worker::main`].
//!
//! Brokers of AMQP are measured the same way: [`oslo::oslo`] and [`amqp::amqp`], on what [`broker`]
//! has for both.
//!
//! From the outside: [`rpc::rpc`] and [`footprint::footprint`]. Below them, from the sockets up:
//! [`socket`], [`pipe`] (a blocking WAMP session), [`drive`] (the one loop of all callers),
//! [`caller`], [`callee`], [`floor`], [`relay`], [`holder`]; [`worker`] and [`crew`] (processes
//! from inside and outside), [`round`] (one measurement), [`summary`] (many).

pub mod accept;
pub mod accounting;
pub mod all;
pub mod amqp;
pub mod argument;
pub mod broker;
pub mod callee;
pub mod caller;
pub mod case;
pub mod crew;
pub mod descriptors;
pub mod directory;
pub mod document;
pub mod drive;
pub mod echo;
pub mod error;
pub mod figures;
pub mod floor;
pub mod footprint;
pub mod goals;
pub mod handshake;
pub mod histogram;
pub mod holder;
pub mod hostile;
pub mod link;
pub mod machine;
pub mod network;
pub mod node;
pub mod oslo;
pub mod peer;
pub mod pipe;
pub mod place;
pub mod placement;
pub mod pubsub;
pub mod relay;
pub mod report;
pub mod round;
pub mod roundtrip;
pub mod router;
pub mod routers;
pub mod rpc;
mod sequence;
pub mod server;
pub mod socket;
pub mod stop;
pub mod stream;
pub mod summary;
pub mod target;
pub mod websocket_floor;
pub mod worker;
