//! AMQP 0-9-1: the broker of a router worker, with one user list, one store and one memory bound. A vhost corresponds
//! to a realm of WAMP.
//!
//! ```text
//! listen ─▶ conversation (one per connection: header, negotiation, frames, channels)
//!                │ a method, or a message with its content
//!                ▼
//!           vhost (one lock, taken once per turn) ─▶ outbox ─▶ peers' queues
//!                │ journal
//!                ▼
//!           store's committer ─▶ vhost (confirms) ─▶ peers' queues
//! ```
//!
//! Work that exceeds a turn stays in the vhost; `backlog` does it between the turns of connections.
//!
//! To use the broker: call `Router::start_amqp` once, before the transports that lead to it; then
//! `Router::amqp` for operators.

mod admission;
pub mod arguments;
mod asking;
mod backends;
mod backlog;
mod broker;
mod certificate;
mod changed_users;
mod changed_vhosts;
mod channels;
mod channels_max;
mod client;
mod client_patterns;
mod client_rights;
pub mod clock;
mod closing;
mod commit_latency;
mod commits;
mod content;
mod conversation;
mod declared;
mod definitions;
mod deletion;
mod flow;
pub mod guest;
mod handled;
pub mod http_logins;
mod identity;
mod incomplete;
pub mod inspection;
mod judged;
mod let_in;
pub mod limits;
mod listings;
mod logins;
mod metadata;
mod metrics;
mod negotiation;
mod octets;
mod open;
mod operator_error;
mod operators;
mod ordered;
mod outbox;
mod pages;
mod particulars;
mod peer;
mod phase;
mod policies;
pub mod replicated;
pub mod replication;
pub mod resident;
mod shared;
mod spans;
pub mod splice;
mod status;
mod stored;
mod stream_files;
mod stream_line;
mod streams;
pub mod sums;
mod totals;
mod trace;
mod turn;
mod turned_away;
mod unfinished;
mod unreadable;
mod update_secret;
mod users;
pub mod vhost;
mod vhost_changes;
mod vhost_memory;
mod vhost_times;
mod vhosts;

pub use broker::{Broker, Home};
pub use certificate::certified_name;
pub use changed_users::ReadyUsers;
pub use changed_vhosts::ReadyVhosts;
pub use client::About;
pub use conversation::AmqpEndpoint;
pub use crosstie_jetstream::Credentials as NatsCredentials;
pub use crosstie_metadata::{
    Change, Entry, Metadata, Origin, Outcome, PolicyKind, Refusal, RefusalKind, UserLimit,
    VhostLimit,
};
pub use crosstie_queues::{DeleteIf, Fault, MessageContent, RetainedMax, SIZES, Sizes};
pub use definitions::try_import;
pub use flow::Resource;
pub use metrics::{register as register_metrics, totals, vhost_times};
pub use operator_error::OperatorError;
pub use operators::Operators;
pub use particulars::Particulars;
pub use replicated::{Means, Moved, Recovered, Whose};
pub use replication::{Ownership, cluster_listeners};
pub use status::{
    Alarm, BindingStatus, ConnectionStatus, ExchangeStatus, Named, QueueStatus, ReplicatedStatus,
    VhostStatus, alarms, replicated_page, replicated_vhosts,
};
pub use vhost_times::VhostTimes;
