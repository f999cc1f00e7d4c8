//! The tables that say what a configuration may hold.
//!
//! The checks, the builder, the JSON Schema and the reference in the documentation all come from these tables. A key
//! that is not in a [`Table`] is unknown, unless [`refused`] has it from Crossbar.io with the reason.

pub(crate) mod amqp;
mod auth;
pub(crate) mod auth_backends;
mod certificates;
mod connecting;
pub(crate) mod cookie;
mod cryptosign;
mod effect;
pub(crate) mod endpoint;
mod fabric;
mod form;
pub(crate) mod http_bridge;
pub(crate) mod joint;
mod jwt;
pub(crate) mod mqtt;
pub(crate) mod node;
pub(crate) mod options;
pub(crate) mod other_options;
pub(crate) mod otlp;
pub(crate) mod realm;
pub mod refused;
pub(crate) mod replicated;
pub(crate) mod rlink;
mod rule;
mod scram;
mod session_limits;
pub(crate) mod store;
mod table;
pub(crate) mod transport;
pub(crate) mod web;
pub(crate) mod web_files;
pub(crate) mod web_other;
pub(crate) mod worker;

pub(crate) use amqp::AMQP;
pub(crate) use auth::AUTH;
pub use effect::Effect;
pub use form::{Fallback, Key, Kind, Table, Tagged, Words};
pub(crate) use joint::JOINT;
pub use node::CONFIG;
pub(crate) use options::WEBSOCKET_OPTIONS;
pub(crate) use realm::{REALM, ROLE};
pub(crate) use rlink::RLINK;
pub use rule::Rule;
pub(crate) use rule::network;
pub(crate) use transport::{SERIALIZERS, TRANSPORT};
pub(crate) use web::WEB_OPTIONS;
pub(crate) use worker::{CONTAINER_COMPONENT, ROUTER_COMPONENT, WORKER};
