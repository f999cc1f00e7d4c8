//! WAMP in this router; [`amqp`](crosstie_broker) is built alike.
//!
//! A [`conversation`] is one connection's first bytes, handshake and frames. A [`session`] in it spans HELLO to
//! GOODBYE, and [`handshake`] performs its handshake. A [`realm`] is the lock under which its messages are routed. An
//! [`outbox`] encodes the realm's messages into the queues of the [`peer`]s, each payload once per serializer
//! ([`payload_encodings`]). If a role has an authorizer, messages of its sessions wait for verdicts in [`authorization`]. A
//! session that outlives its connection continues in [`resumption`].

mod across;
mod aftermath;
pub mod audit;
pub(crate) mod authenticators;
pub(crate) mod authids;
mod authorization;
pub mod certificate;
mod challenged;
mod compression;
mod control;
pub mod conversation;
mod cookie_login;
pub mod cookies;
mod credential_check;
pub mod denials;
pub mod door;
pub mod elsewhere;
pub mod endpoints;
pub mod entrance;
mod entry;
pub mod event_store;
pub mod fabric;
pub mod farewell;
mod frames;
pub mod handled;
mod handshake;
mod hosted;
mod hourly_lines;
pub mod http;
mod in_realm;
pub mod judged;
mod key_derivation;
pub mod live_methods;
mod logins;
pub mod message_counts;
pub mod mqtt;
mod not_joined;
pub mod open;
mod open_calls;
mod origin;
pub mod outbox;
mod payload_encodings;
pub mod peer;
mod pending_handshake;
pub mod probes;
mod question;
pub mod rate;
pub mod realm;
mod realm_log;
pub mod realms;
pub mod replaced;
pub mod resident;
mod resumption;
mod roles;
pub mod seen;
pub mod session;
pub mod session_limits;
pub mod silence;
mod spans;
mod started_role;
mod stored;
pub(crate) mod supervision;
mod surrogates;
pub mod trace;
mod unreadable;
pub mod upgrade;
mod welcome;
