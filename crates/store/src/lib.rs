//! What survives: durable exchanges, queues and bindings, and the persistent messages in them; and, in files of their
//! own, the events that realms record ([`EventStore`]).
//!
//! ```text
//! Store::open ─▶ Restored records, for Vhost::restore
//!      │
//!      ▼
//! Committer::start ◀─ submit(vhost, records, position), in the journal's order
//!      │
//!      └▶ on_committed(vhost, position, Ok | Err)     from the committer's thread
//! ```
//!
//! One SQLite file with a write-ahead log, synced at each commit. A [`Committer`] makes one
//! transaction of whatever was submitted while the last one was being written, so that one sync
//! serves everybody who waits. There is no file before there is a record.
//!
//! A [`Backup`] is made on the same thread, between commits.
//!
//! Never: which client waits for what.

mod backup;
mod batch;
mod claim;
mod committer;
mod content;
mod error;
mod events;
mod file;
mod form;
mod read;
mod replace;
mod room;
mod store;
mod write;

pub use backup::{Backup, back_up};
pub use batch::Batch;
pub use committer::{Committer, CommitterConfig, DiskLow};
pub use error::{StoreError, StoreErrorKind};
pub use events::{EventKeeper, EventOwner, EventStore, EventStoreConfig};
pub use replace::{Replaced, replace};
pub use room::Room;
pub use store::{Restored, Store, StoreConfig};
