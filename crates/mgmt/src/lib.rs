//! RabbitMQ's management HTTP API over a broker: a request in, an answer out.
//!
//! ```text
//! Head ─▶ Api::begin (path, method, login, rights) ─▶ Admitted ─▶ Api::finish (with the body) ─▶ Answer
//!                └▶ Answer: 401, 404, 405, 406
//! ```
//!
//! The body of a request is read only after the login, so that strangers hold no memory. Lists are written while they
//! are sent, in parts for which the lock of a vhost is held once each. *Never:* a socket, HTTP itself, the configuration.

mod answer;
mod bindings;
mod call;
mod caller;
mod channels;
mod connections;
mod consumers;
mod cors;
mod definitions;
mod entry;
mod exchanges;
mod form;
mod health;
mod input;
mod inside;
mod list;
mod login;
mod maintenance;
mod memory;
mod messages;
mod node;
mod overview;
mod policies;
mod process;
pub mod prometheus;
mod queues;
mod request;
mod route;
mod row;
mod sampler;
mod settings;
mod stats;
mod surroundings;
mod table;
mod talk;
mod topology;
mod transfer;
mod vhosts;

pub use answer::{Answer, Body};
pub use call::Api;
pub use cors::Cors;
pub use entry::{Admitted, Begun};
pub use node::name_of;
pub use request::{Head, Headers, Rows};
pub use surroundings::{Listener, Surroundings};
pub use transfer::{NotTransferred, Transfer, Transferred};
