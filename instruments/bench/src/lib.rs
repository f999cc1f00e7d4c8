//! Load drivers, floors and reports: the implementation of the command line's `bench`.
//!
//! The bench has no dependency on the router. It starts one like a user, or gets the URL of a foreign one, and measures
//! both exactly alike:
//!
//! ```text
//!            ┌────────── bench: placement, rounds, accounting, reports ──────────┐
//!            ▼                            ▼                                      ▼
//!   caller ──────▶ router ──────▶ callee      caller ──────▶ relay ──────▶ callee
//!     (pipe, one thread, blocking)               (the floor: the same bytes, no messages)
//! ```
//!
//! Every box is a process. Caller, callee and relay are this executable started again with [`roles::SUBCOMMAND`], which
//! the command line forwards to [`roles::main`].
//!
//! Every instrument is a folder: [`rpc`], [`pubsub`], [`accept`], [`handshake`], [`echo`], [`stream`], [`footprint`],
//! [`node`], [`hostile`], [`join`], [`http`], [`fabric`], for brokers of AMQP [`amqp`] and [`oslo`], for those of MQTT [`mqtt`]; [`all`] runs
//! them one after the other. Their shared parts:
//!
//! | folder | |
//! |---|---|
//! | [`process`] | the bench's own processes, from inside and outside |
//! | [`machine`] | cores, processor time, memory |
//! | [`subject`] | a subject: its name, its address, its start |
//! | [`peer`] | live routers, brokers and echo servers of others |
//! | [`network`] | the line between clients and servers |
//! | [`load`] | sockets, the one loop of all callers, times |
//! | [`wamp`], [`broker`] | a driver's messages to a router and to a broker |
//! | [`floor`] | the same bytes without messages |
//! | [`frame`] | the common part of all instruments: the loop, tables, goals, the results file |
//! | [`figures`], [`report`] | the results, for people and for programs |

mod accept;
mod all;
mod amqp;
mod broker;
mod echo;
mod error;
mod fabric;
mod figures;
mod floor;
mod footprint;
mod frame;
mod handshake;
mod hostile;
mod http;
mod join;
mod load;
mod machine;
mod mqtt;
mod network;
mod node;
mod nodes;
mod oslo;
mod peer;
mod process;
mod pubsub;
mod report;
mod roles;
mod roundtrip;
mod rpc;
mod stream;
mod subject;
mod wamp;

pub use accept::{AcceptOptions, accept};
pub use all::{AllOptions, all};
pub use amqp::{AmqpOptions, amqp};
pub use echo::{EchoOptions, echo};
pub use error::BenchError;
pub use fabric::{FabricOptions, fabric};
pub use footprint::{FootprintOptions, footprint};
pub use frame::arguments::Host;
pub use handshake::{Analysis, HandshakeOptions, Log, handshake, handshake_log};
pub use hostile::{HostileOptions, hostile};
pub use http::{HttpOptions, http};
pub use join::{JoinOptions, join};
pub use mqtt::{MqttOptions, mqtt};
pub use network::exactness::{MeasureOptions, measure as measure_link};
pub use node::{NodeOptions, node};
pub use oslo::{OsloOptions, oslo};
pub use process::descriptors::raise as raise_descriptors;
pub use process::stop::Stop;
pub use pubsub::{PubSubOptions, pubsub};
pub use report::document::line as document_line;
pub use report::json::Build;
pub use roles::{SUBCOMMAND as WORKER_SUBCOMMAND, main as worker};
pub use roundtrip::{CallerOptions, EndOptions, Leave, callee, caller};
pub use rpc::{RpcOptions, rpc};
pub use stream::{StreamOptions, stream};
pub use subject::target::Url;
