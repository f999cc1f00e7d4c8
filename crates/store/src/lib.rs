//! Durable state: exchanges, queues and bindings with their persistent messages; and, in files of their own, recorded
//! events of realms ([`EventStore`]).
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
//! One SQLite file with a write-ahead log, synced at each commit. A [`Committer`] writes the records submitted during
//! the last transaction as the next one, so that one sync serves all waiting clients. The file is created with the
//! first record.
//!
//! A [`Backup`] is made on the same thread, between commits.
//!
//! Never: which client waits for what.

mod backup;
mod batch;
mod claim;
mod committer;
mod content;
mod disk;
mod error;
mod events;
mod file;
mod form;
mod page;
mod read;
mod replace;
mod room;
mod rows;
mod store;
mod write;

pub use backup::{Backup, back_up};
pub use batch::Batch;
pub use committer::{Committer, CommitterConfig};
pub use disk::DiskLow;
pub use error::{StoreError, StoreErrorKind};
pub use events::{EventKeeper, EventOwner, EventStore, EventStoreConfig};
pub use replace::{Replaced, records, replace};
pub use room::Room;
pub use store::{Restored, Store, StoreConfig};
