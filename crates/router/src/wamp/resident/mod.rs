//! Sessions of the router's own: who calls authenticators, and whom web services speak for.
//!
//! ```text
//!   whoever asks ─► Place ─► Resident ─► Room (a realm and its lock) ─► others
//!        ▲           joins it             │
//!        └── future ◄── answers.rs ◄─ mailbox ◄┘
//! ```
//!
//! A [`Place`] is where such a session belongs: a realm, a role, a name. Whoever asks there finds one that
//! has joined ([`Resident`]), and another after its realm was stopped and has come again. What its role
//! allows is judged as anybody's. Events and invocations come as [`streams`].

mod answers;
mod judging;
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
