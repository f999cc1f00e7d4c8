//! A vhost's journal as octets in a log that several nodes share.
//!
//! ```text
//! handle_entry ─▶ (what the vhost restores)            following
//!      │
//!      ▼
//!    claim ─▶ Append{Owned} ─▶ Effect::Owning           of several nodes one
//!                                 │
//!    submit ─▶ Append ─▶ handle_appended ─▶ Committed   owning
//!      │           └───▶ handle_refused ─▶ Read ─▶ handle_end ─▶ the rest again, or Deposed
//!      ▼
//!    hand_over ─▶ Append{Handed} ─▶ Effect::Handed        a planned move
//! ```
//!
//! The log gives each entry the next number (a [`Sequence`]), and takes an entry only if the one before it
//! has the number that its writer expects. So the log is the lock: who was deposed cannot write any more,
//! whatever it believes of itself, and no lease has to be trusted.
//!
//! Never: what engine keeps the log, a file, a clock.

mod body;
mod broken;
mod cleaning;
mod entry;
mod following;
mod handed;
mod handing;
mod history;
mod ledger;
mod live;
mod owning;
mod pending;
mod reader;
mod recovering;
mod recovery;
mod salvage;

pub use body::{Named, decode as decode_body, encode as encode_body};
pub use broken::Broken;
pub use entry::Owner;
pub use following::News;
pub use handed::Handed;
pub use ledger::{Config, Effect, Ledger, Role, Sequence, Status};
pub use recovering::Remains;
pub use recovery::Recovery;
pub use salvage::{Salvage, Salvaged};
