//! WAMP in this router; [`amqp`](crate::amqp) is built alike.
//!
//! A [`conversation`] is one connection's first bytes, handshake and frames. A [`session`] in it spans HELLO to
//! GOODBYE, and [`joining`] performs its handshake. A [`realm`] is the lock under which its messages are routed. An
//! [`outbox`] encodes the realm's messages into the queues of the [`peer`]s, each payload once per serializer
//! ([`payload_encodings`]). If a role has an authorizer, messages of its sessions wait for verdicts in [`judging`]. A
//! session that outlives its connection continues in [`resuming`].

mod across;
pub(crate) mod authenticators;
pub(crate) mod authids;
mod compression;
mod control;
pub(crate) mod conversation;
mod draining;
pub(crate) mod elsewhere;
mod entering;
pub(crate) mod event_store;
pub(crate) mod farewell;
mod frames;
pub(crate) mod handled;
mod hosted;
mod hourly_lines;
mod in_realm;
mod issuer;
mod joining;
pub(crate) mod judged;
mod judging;
mod knowing;
mod limiting;
pub(crate) mod live_methods;
mod looking;
pub(crate) mod message_counts;
mod not_joined;
pub(crate) mod open;
pub(crate) mod outbox;
mod payload_encodings;
pub(crate) mod peer;
mod pending;
mod question;
pub(crate) mod rate;
pub(crate) mod realm;
mod realm_log;
pub(crate) mod resident;
mod resuming;
mod roles;
pub(crate) mod session;
mod started_role;
mod stored;
pub(crate) mod supervision;
mod surrogates;
mod telling;
mod unreadable;
pub(crate) mod upgrade;
mod welcome;
