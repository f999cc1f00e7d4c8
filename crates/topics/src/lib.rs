//! One MQTT topic space as a pure state machine: sessions, subscriptions, retained messages, wills.
//!
//! ```text
//! connect ─▶ receive ─▶ publish ─▶ Outbox
//!                          │
//!                          └▶ Journal ─▶ (a store) ─▶ handle_committed
//! ```
//!
//! `(now, connection, packet) → packets into an Outbox, records into a Journal`. Time is a number that the owner passes
//! in; random values follow from a seed. Section numbers are of the OASIS specification of MQTT 5.
//!
//! Never: a socket, a clock, a thread, a file, the meaning of a topic elsewhere.

mod aliases;
mod clients;
mod config;
mod course;
mod ending;
mod fan;
mod few;
mod incoming;
mod inputs;
mod journal;
mod keys;
mod ledger;
mod level;
mod line;
mod message;
mod numbers;
mod outbox;
mod outgoing;
mod random;
mod record_codec;
mod retained;
mod session;
mod shares;
mod space;
mod status;
mod subscribers;
mod time;
mod timers;
mod trie;

pub use config::{SpaceConfig, SpaceLimits};
pub use inputs::{
    Arrival, Connect, Connected, ConnectionKey, Content, Received, Violation, Wanted, Will,
};
pub use journal::{Journal, Position, Record, Subject};

pub use message::Message;
pub use numbers::{MessageNumber, SessionNumber};
pub use outbox::{Answer, Outbox, Packet, Refused, Reply};
pub use random::ASSIGNED_ID_BYTES;
pub use record_codec::InvalidRecord;
pub use space::Space;
pub use status::{Counts, Page, RetainedStatus, SessionStatus, SubscriptionStatus};
pub use time::Time;
