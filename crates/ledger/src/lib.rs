//! A vhost's journal as octets in a log that several nodes share.
//!
//! ```text
//! handle_entry ─▶ (records for the vhost to restore)    following
//!      │
//!      ▼
//!    claim ─▶ Append{Owned} ─▶ Effect::Owning           one of several nodes
//!                                 │
//!    submit ─▶ Append ─▶ handle_appended ─▶ Committed   owning
//!      │           └───▶ handle_refused ─▶ Read ─▶ handle_end ─▶ the rest again, or Deposed
//!      ▼
//!    release ─▶ Append{Released} ─▶ Effect::Released    a planned handover
//! ```
//!
//! The log gives each entry the next number (a [`Sequence`]), and accepts an entry only if the one before it has the
//! number that its writer expects. So the log is the lock: a deposed owner cannot write any more, whatever it believes
//! of itself, and correctness depends on no lease.
//!
//! Never: the engine that stores the log, a file, a clock.

mod body;
mod broken;
mod cleaner;
mod config;
mod crowded;
mod entry;
mod excerpt;
mod extents;
mod filling;
mod follower;
mod history;
mod in_flight;
mod key;
mod leaving;
mod ledger;
mod live;
mod messages;
mod missing;
mod owner;
mod purging;
mod reader;
mod record;
mod recover;
mod release;
mod repeating;
mod runs;
mod salvage;
mod setting;
mod sizes;

pub use body::{Named, decode as decode_body, encode as encode_body};
pub use broken::Broken;
pub use config::Config;
pub use entry::Owner;
pub use excerpt::{Excerpt, Found};
pub use filling::Absent;
pub use follower::News;
pub use ledger::{Effect, Ledger, Role, Sequence, Status};
pub use record::{Recovery, Release};
pub use recover::Remains;
pub use salvage::{Salvage, Salvaged};
