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

mod accepting;
mod admin;
mod amqp_stop;
mod bridges;
mod certificates;
mod conversing;
mod departure;
mod drain;
mod error;
mod fabric_status;
mod figures;
mod histograms;
mod joint_counts;
mod joint_state;
mod joints;
mod leaving;
mod management_api;
mod meta_session;
mod metrics;
mod mqtt_homes;
mod opening;
mod otlp;
mod prometheus;
mod registry;
mod replace;
mod rlink_metrics;
mod rlink_state;
mod rlink_table;
mod rlinks;
mod router;
mod sessions;
mod start;
mod status_page;
mod stop;
mod succession;
mod testee;
mod threads;
mod traces;
mod transports;
mod urls;
mod worker_table;

#[cfg(test)]
mod residents_tests;
#[cfg(test)]
mod splice_tests;

pub use admin::{Admin, start_admin};
pub use amqp_stop::ClosedListener;
pub use certificates::ListenerCertificate;
pub use crosstie_auth::wamp::SigningKey;
pub use crosstie_broker as amqp;
pub use crosstie_broker::{ReadyUsers, ReadyVhosts};
pub use crosstie_collections::Histogram;
pub use crosstie_front::tls_files::{check_peer, check_tls};
pub use crosstie_front::trace::{Trace, TraceOptions, Traces};
pub use crosstie_mgmt::Transfer;
pub use crosstie_realms::audit::Audit;
pub use crosstie_realms::certificate::certificates;
pub use crosstie_realms::seen::EntryKind;
pub use crosstie_routing::meta_procedures;
pub use crosstie_site::overview::{COMPONENT_STATES, ComponentOverview, Overview, WorkerOverview};
pub use crosstie_site::programs::{Executable, Program, Programs, Running};
pub use crosstie_transport::unmap_program;
pub use crosstie_transport::{descriptors, handed, passed};
pub use error::{StartError, StartFault, StopError};
pub use fabric_status::FabricStatus;
pub use figures::{RouterFigures, figures};
pub use histograms::{Series, histograms};
pub use joint_state::JointStatus;
pub use meta_session::{MetaEvents, MetaFailure, MetaPayload, MetaSession};
pub use otlp::{Exporter, ReadyExporter};
pub use replace::ReadyTransport;
pub use rlink_state::RLinkStatus;
pub use router::{RealmStatus, RoleStatus, Router, RouterOptions};
pub use sessions::{EntryStatus, NoSuchSession, Rows, SessionCounters, SessionStatus};
pub use succession::{Haste, socket_name};
pub use threads::Threads;
pub use traces::NotTraced;
pub use transports::TransportStatus;
