//! The router, put together: listeners lead to sessions, sessions to realms.
//!
//! ```text
//! listen ─▶ conversation (one per connection: first octets, handshake, frames)
//!                │ one message
//!                ▼
//!           session (HELLO … GOODBYE) ─▶ realm (one lock) ─▶ outbox ─▶ peers' queues
//! ```
//!
//! AMQP is built in the same way, in [`amqp`]: there a vhost is what a realm is here.
//!
//! A [`Router`] is one of them with its threads; realms, roles and transports come and go while
//! it runs. Everything below is pure or knows only octets; this crate is where a message meets a
//! socket.

mod addresses;
mod admin;
mod admission;
pub mod amqp;
mod compress;
mod conversation;
mod counters;
mod end_reason;
mod error;
mod frames;
mod hub;
mod leaving;
mod listen;
mod message_counts;
mod metrics;
mod origin;
mod origins;
mod outbox;
mod overview;
mod pages;
mod peer;
mod realm;
mod rendered;
mod report;
mod router;
mod session;
mod sessions;
mod testee;
mod transports;
mod upgrade;
mod urls;
mod watch;

pub use admin::{Admin, start_admin};
pub use crosstie_transport::descriptors;
pub use error::{StartError, StartFault, StopError};
pub use listen::check_tls;
pub use overview::{Overview, WorkerOverview};
pub use router::{RealmStatus, RoleStatus, Router, RouterOptions};
pub use sessions::{NoSuchSession, SessionStatus};
pub use transports::TransportStatus;
