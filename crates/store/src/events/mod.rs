//! A realm's recorded events, the latest of each recorded topic or pattern, and its retained ones, in one file.
//!
//! ```text
//! EventStore::open ─▶ EventKeeper::start ◀─ record  retain  acknowledge  recall
//!                          │
//!                          └▶ EventOwner::stored  recalled  failed     from the keeper's thread
//! ```
//!
//! The thread writes the events that were recorded during the last transaction as the next one. If no publisher waits,
//! it lets events gather for a moment: a sync for each would cost more than everything else. A query sees all events
//! recorded before it, because the thread writes these first. A long search is made in turns, with commits and other
//! searches between them.
//!
//! Never: the identity of a session, its permissions.

mod chunk;
mod keeper;
mod recall;
mod retained;
mod store;

pub use self::keeper::{EventKeeper, EventOwner};
pub use self::store::{EventStore, EventStoreConfig};
