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
//! [`roles::SUBCOMMAND`], which the command line forwards to [`roles::main`].
//!
//! Every instrument is a folder: [`rpc`], [`pubsub`], [`accept`], [`handshake`], [`echo`],
//! [`stream`], [`footprint`], [`node`], [`hostile`], and for brokers of AMQP [`amqp`] and [`oslo`];
//! [`all`] runs them one after the other. What several of them use:
//!
//! | folder | |
//! |---|---|
//! | [`process`] | the bench's own processes, from inside and outside |
//! | [`machine`] | cores, processor time, memory |
//! | [`subject`] | what is measured: its name, its address, how it is started |
//! | [`peer`] | live routers, brokers and echoes of others |
//! | [`network`] | what is between clients and servers |
//! | [`load`] | sockets, the one loop of all callers, times |
//! | [`wamp`], [`broker`] | what a driver says to a router and to a broker |
//! | [`floor`] | the same bytes without messages |
//! | [`frame`] | what all instruments have in common: the loop, tables, goals, the results file |
//! | [`figures`], [`report`] | what was found, for people and for programs |

pub mod accept;
pub mod all;
pub mod amqp;
pub mod broker;
pub mod echo;
pub mod error;
pub mod figures;
pub mod floor;
pub mod footprint;
pub mod frame;
pub mod handshake;
pub mod hostile;
pub mod load;
pub mod machine;
pub mod network;
pub mod node;
pub mod oslo;
pub mod peer;
pub mod process;
pub mod pubsub;
pub mod report;
pub mod roles;
pub mod roundtrip;
pub mod rpc;
pub mod stream;
pub mod subject;
pub mod wamp;
