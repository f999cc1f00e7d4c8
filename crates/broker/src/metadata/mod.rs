//! The entries that operators change at run time: kept in the store, and put into effect on present connections.
//!
//! ```text
//! configuration ─▶ layers ─┐
//! store ─▶ settings ───────┴▶ Metadata ─▶ Users, limits of vhosts
//!
//! Broker::change ─▶ Metadata::apply ─▶ Shared::create_vhosts ─▶ effects
//!                                  └▶ a replicated vhost's log (`terms`)
//! ```

mod change;
mod layers;
mod limits;
mod live;
mod log_settings;
mod owed;
mod seats;
mod terms;
mod users;

pub(crate) use change::salt;
pub(crate) use layers::{add_created, layers};
pub(crate) use live::{HeldSettings, LiveMetadata};
pub(crate) use log_settings::{Begin, LogSettings};
pub(crate) use seats::Seat;
pub(crate) use users::users;
