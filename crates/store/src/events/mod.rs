//! A realm's recorded events, the last so many of each topic or pattern that it records, and its retained ones; in one
//! file.
//!
//! ```text
//! EventStore::open ─▶ EventKeeper::start ◀─ record  retain  acknowledge  recall
//!                          │
//!                          └▶ EventOwner::stored  recalled  failed     from the keeper's thread
//! ```
//!
//! The thread makes one transaction of what was recorded while the last one was being written. Where nobody waits it
//! lets events gather for a moment: a sync for each would cost more than all else. Whoever asks for events is shown
//! what was recorded before, because the thread writes that first. A long search is made in turns, with commits and
//! other searches between them.
//!
//! Never: who a session is, what it may see.

mod chunk;
mod keeper;
mod recalling;
mod retained;
mod store;

pub use self::keeper::{EventKeeper, EventOwner};
pub use self::store::{EventStore, EventStoreConfig};
