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
//! A store is a directory of [segments](segments), synced at each commit. A [`Committer`] writes the records submitted
//! during the last commit as the next one, so that one sync serves all waiting clients. The directory is created with
//! the first record.
//!
//! Settings of the broker ([`Setting`]) are commits of their own, which their owner waits for ([`Committer::put_settings`]).
//!
//! A [`Backup`] is one file, made by a thread of its own. Pages of deep queues are read between commits.
//!
//! A [`RecordStore`] has the records of another state machine than a vhost in the same segments.
//!
//! Never: which client waits for what.

mod archive;
mod backup;
mod batch;
mod build;
mod check;
mod claim;
mod clock;
mod committer;
mod committing;
mod damage;
mod disk;
mod earlier;
mod error;
mod events;
mod file;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod inspect;
mod items;
mod loaded;
mod names;
mod opening;
mod orders;
mod page;
mod place;
mod record_store;
mod replace;
mod restore;
mod room;
mod salvage;
mod segments;
mod settings;
mod store;
mod tally;
mod tolerant;
mod write;

pub use backup::{Backup, back_up};
pub use batch::Batch;
pub use check::{Checked, CheckedQueue, CheckedVhost, FileFault, check};
pub use committer::Committer;
pub use committing::{CommitterConfig, NotCommitted};
pub use crosstie_disk::Room;
pub use damage::Damaged;
pub use disk::{DiskLow, FreeMin};
pub use error::{StoreError, StoreErrorKind};
pub use events::{EventKeeper, EventOwner, EventStore, EventStoreConfig};
pub use inspect::{Contents, all_contents, contents};
pub use loaded::Loaded;
pub use orders::Begun;
pub use record_store::{Change, FoundRecords, RecordCommitter, RecordStore, RecordStoreConfig};
pub use replace::{Replaced, records, replace};
pub use restore::{PutBack, restore};
pub use salvage::{Salvaged, salvage};
pub use settings::{NewSetting, Setting};
pub use store::{Restored, Store, StoreConfig};
