//! The tables that say what a configuration may hold.
//!
//! The checks, the JSON Schema and the reference in the documentation are all read from here,
//! so that none of them can say something else than the others. A key that is not in a
//! [`Table`] is unknown, unless [`refused`] knows it from Crossbar.io and says why it is not
//! taken.

mod amqp;
mod auth;
mod certificates;
mod connecting;
mod cookie;
mod cryptosign;
mod endpoint;
mod fabric;
mod form;
mod http_bridge;
mod joint;
mod jwt;
mod node;
mod options;
mod other_options;
mod realm;
pub mod refused;
mod replicated;
mod rlink;
mod rule;
mod scram;
mod session_limits;
mod store;
mod transport;
mod web;
mod web_files;
mod web_other;
mod worker;

pub(crate) use amqp::AMQP;
pub(crate) use auth::AUTH;
pub use form::{Fallback, Key, Kind, Table, Tagged, Words};
pub(crate) use joint::JOINT;
pub use node::CONFIG;
pub(crate) use realm::{REALM, ROLE};
pub(crate) use rlink::RLINK;
pub use rule::Rule;
pub(crate) use rule::network;
pub(crate) use transport::{PAGES, SERIALIZERS, TRANSPORT};
pub(crate) use worker::{CONTAINER_COMPONENT, ROUTER_COMPONENT, WORKER};
