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

pub use place::Place;
pub use reply::{Failed, Kept, Reply};
pub use room::{NotLetIn, Room, Rooms};
pub use session::{Asked, Manner, Resident, send};
pub use streams::{Event, Invocation, Registration, Subscription};
