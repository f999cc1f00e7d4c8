//! What operators of a broker change at run time: users, vhosts, permissions, topic permissions, limits and global
//! parameters, policies.
//!
//! ```text
//! Layers of the configuration and its defaults ─▶ Metadata ◀─ restore(key, value), from a store
//!
//! Change (parsed from JSON) ─▶ Metadata::apply ─▶ Applied { outcome, records for a store, effects }
//!                                             └─▶ Refusal, with RabbitMQ's reason
//! ```
//!
//! Three layers decide on each entry. The configuration's entries cannot be changed here. Next come the entries made at
//! run time; the last layer has the defaults (the user `guest`), which can be changed and deleted.
//! To change something durably: clone the state, apply the change to the clone, store its records, then replace the
//! state by the clone and carry out the effects.
//!
//! An import of definitions is a [`Change::All`] of the entries that are not so already ([`Metadata::has`]). At the start
//! they are a layer ([`Layers::add`]).
//!
//! The entries of run time of a replicated vhost are in its log, and here while this node owns it
//! ([`Metadata::begin_term`]).
//!
//! *Never:* IO, a clock, chance (a salt is an argument), a connection.

mod apply;
mod body;
mod change;
mod draft;
mod edits;
mod imported;
mod key;
mod layered;
mod limits;
mod listing;
mod metadata;
mod named;
mod permission;
mod policies;
mod promise;
mod refusal;
mod stored;
mod terms;
mod user;
mod vhost;

pub use change::{Change, Entry};
pub use crosstie_queues::policy::PolicyKind;
pub use key::{Key, Stored};
pub use layered::Origin;
pub use limits::{Limits, UserLimit, VhostLimit};
pub use metadata::{
    Applied, Configured, Effect, Layers, Metadata, Outcome, UserInVhost, UserOnExchange,
};
pub use permission::{Permission, TopicPermission};
pub use policies::{definition_to_json, policy_value};
pub use promise::{LogPlace, Promise, Verdict};
pub use refusal::{Refusal, RefusalKind};
pub use serde_json::Value as Json;
pub use stored::Unreadable;
pub use terms::{BEGUN, Begun};
pub use user::{NewPassword, NewUser, User};
pub use vhost::VhostAbout;
