//! Sessions of the router's own: callers of authenticators, and the sessions of web services.
//!
//! ```text
//!   user code ──► Place ─► Resident ─► Room (a realm and its lock) ─► others
//!        ▲           joins it             │
//!        └── future ◄── answers.rs ◄─ mailbox ◄┘
//! ```
//!
//! A [`Place`] describes such a session: a realm, a role, a name. It provides a joined session ([`Resident`]), and
//! another one after its realm was stopped and started again. Its role's permissions apply as for any session. Events
//! and invocations arrive as [`streams`].

mod answers;
mod authorization;
mod place;
mod reply;
mod requests;
mod room;
mod session;
mod streams;
#[cfg(test)]
mod tests;

pub(crate) use place::Place;
pub(crate) use reply::{Failed, Kept, Reply};
pub(crate) use room::{NotLetIn, Room, Rooms};
pub(crate) use session::{Asked, Manner, Resident, send};
pub(crate) use streams::{Event, Invocation, Registration, Subscription};
