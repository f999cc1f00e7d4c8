//! One AMQP vhost as a pure state machine: exchanges, bindings, queues, consumers, confirms.
//!
//! ```text
//! open_connection ─▶ open_channel ─▶ handle (a method) / publish (a message) ─▶ Outbox
//!                                          │
//!                                          └▶ Journal ─▶ (a store) ─▶ handle_committed
//! ```
//!
//! `(now, channel, method) → methods and messages into an Outbox, records into a Journal`. Time is a number that the
//! owner passes in; random values follow from a seed.
//!
//! Never: a socket, a clock, a thread, a file.

mod assembly;
mod channels;
mod config;
mod confirms;
mod consumers;
mod fault;
mod histories;
mod holders;
mod journal;
mod keys;
mod lasting;
mod ledger;
mod message;
mod outbox;
#[cfg(test)]
mod paper_disk;
pub mod policy;
mod queues;
mod random;
mod settlements;
mod shrink;
mod status;
mod steps;
mod streams;
mod tally;
mod time;
mod timers;
mod topology;
mod transactions;
mod vhost;
mod waits;

pub use assembly::ContentAssembly;
pub use channels::Client;
pub use config::{Paging, VhostConfig, VhostLimits};
pub use fault::Fault;
pub use journal::{Destination, Journal, Kept, Position, QueueId, Record, StoredMessage};
pub use keys::{ChannelKey, ConnectionKey, QueueKey};
pub use lasting::find_lasting;
pub use message::MessageContent;
pub use outbox::{Outbox, Refused};
pub use queues::{LEVELED, Page, Paged, RetainedMax, Want, level_end};
pub use status::{
    BindingStatus, ChannelStatus, ConsumerStatus, Counts, ExchangeStatus, Part, QueueStatus,
    QueueView, RefusedLetters, Uncommitted,
};
pub use streams::{
    StreamAppend, StreamChange, StreamDeclared, StreamExtent, StreamFilter, StreamFrom,
    StreamLimits, StreamMessage, StreamPage, StreamPlace, StreamWant,
};
pub use tally::{ChannelTally, Deliveries, ExchangeTally, QueueTally, SIZES, Sizes};
pub use time::Time;
pub use topology::{QueueKind, arguments_hash};
pub use vhost::{DeleteIf, OperatorError, Vhost};
