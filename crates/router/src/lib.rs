//! The router: listeners lead to sessions, sessions to realms.
//!
//! ```text
//! listen ─▶ conversation (one per connection: first bytes, handshake, frames)
//!                │ one message
//!                ▼
//!           session (HELLO … GOODBYE) ─▶ realm (one lock) ─▶ outbox ─▶ peers' queues
//! ```
//!
//! AMQP is built in the same way, in [`amqp`]: a vhost corresponds to a realm.
//!
//! A [`Router`] is a worker with its threads; realms, roles and transports start and stop while it runs. Everything
//! below is pure or knows only bytes; this crate connects messages and sockets.

// Tests of modules share code with the integration tests.
#[cfg(test)]
extern crate self as crosstie_router;

mod addresses;
mod admin;
mod admission;
mod allowance;
pub mod amqp;
mod audit;
mod binding;
mod bound;
mod bounds;
mod bridges;
mod cause;
mod counters;
mod departure;
mod end_reason;
mod error;
mod fabric;
mod joint_counts;
mod joint_state;
mod joints;
mod listen;
mod markup;
mod meta_session;
mod metrics;
mod origins;
mod outgoing;
mod registry;
mod report;
mod request_counts;
mod rlink_metrics;
mod rlink_state;
mod rlink_table;
mod rlinks;
mod router;
mod seed;
mod serve;
mod sessions;
mod sniff;
mod start;
mod status_page;
mod stop;
mod testee;
mod timer;
mod tls_files;
mod transports;
mod urls;
mod wamp;
mod watch;
mod web;
mod worker_table;

pub use admin::{Admin, start_admin};
pub use audit::Audit;
pub use crosstie_auth::wamp::SigningKey;
pub use crosstie_routing::meta_procedures;
pub use crosstie_transport::descriptors;
pub use error::{StartError, StartFault, StopError};
pub use joint_state::JointStatus;
pub use meta_session::{MetaEvents, MetaFailure, MetaPayload, MetaSession};
pub use rlink_state::RLinkStatus;
pub use router::{RealmStatus, RoleStatus, Router, RouterOptions};
pub use sessions::{NoSuchSession, SessionStatus};
pub use tls_files::{check_peer, check_tls};
pub use transports::TransportStatus;
pub use wamp::certificate::certificates;
pub use web::overview::{COMPONENT_STATES, ComponentOverview, Overview, WorkerOverview};
pub use web::programs::{Executable, Program, Programs, Running};
