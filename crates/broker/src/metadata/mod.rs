//! What operators change at run time: kept in the store, and put into effect on present connections.
//!
//! ```text
//! configuration ─▶ layers ─┐
//! store ─▶ settings ───────┴▶ Metadata ─▶ Users, limits of vhosts
//!
//! Broker::change ─▶ Metadata::apply ─▶ Shared::put_settings ─▶ effects
//! ```

mod change;
mod layers;
mod limits;
mod live;
mod owed;
mod seats;
mod users;

pub(crate) use change::salt;
pub(crate) use layers::{add_created, layers};
pub(crate) use live::LiveMetadata;
pub(crate) use seats::Seat;
pub(crate) use users::users;
