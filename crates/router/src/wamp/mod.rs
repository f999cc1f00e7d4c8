//! WAMP in this router; [`amqp`](crate::amqp) is built alike.
//!
//! A [`conversation`] is one connection's first bytes, handshake and frames. A [`session`] in it spans HELLO to
//! GOODBYE, and [`handshake`] performs its handshake. A [`realm`] is the lock under which its messages are routed. An
//! [`outbox`] encodes the realm's messages into the queues of the [`peer`]s, each payload once per serializer
//! ([`payload_encodings`]). If a role has an authorizer, messages of its sessions wait for verdicts in [`authorization`]. A
//! session that outlives its connection continues in [`resumption`].

mod across;
mod aftermath;
pub(crate) mod authenticators;
pub(crate) mod authids;
mod authorization;
pub(crate) mod certificate;
mod challenged;
mod compression;
mod control;
pub(crate) mod conversation;
mod cookie_login;
pub(crate) mod cookies;
mod credential_check;
pub(crate) mod denials;
pub(crate) mod door;
pub(crate) mod elsewhere;
pub(crate) mod endpoints;
pub(crate) mod entrance;
mod entry;
pub(crate) mod event_store;
pub(crate) mod farewell;
mod frames;
pub(crate) mod handled;
mod handshake;
mod hosted;
mod hourly_lines;
pub(crate) mod http;
mod in_realm;
mod issuer;
pub(crate) mod judged;
mod key_derivation;
pub(crate) mod live_methods;
pub(crate) mod message_counts;
mod not_joined;
pub(crate) mod open;
mod open_calls;
mod origin;
pub(crate) mod outbox;
mod payload_encodings;
pub(crate) mod peer;
mod pending_handshake;
pub(crate) mod probes;
mod question;
pub(crate) mod rate;
pub(crate) mod realm;
mod realm_log;
pub(crate) mod realms;
pub(crate) mod resident;
mod resumption;
mod roles;
pub(crate) mod seen;
pub(crate) mod session;
mod session_limits;
pub(crate) mod silence;
mod started_role;
mod stored;
pub(crate) mod supervision;
mod surrogates;
mod unreadable;
pub(crate) mod upgrade;
mod welcome;
