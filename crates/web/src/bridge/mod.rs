//! HTTP requests as calls and publications, as Crossbar.io's bridge takes and answers them.
//!
//! ```text
//!   head ─► Rules::admit ─► (the body is read) ─► Rules::check ─► body::call, body::publication, webhook
//!              │                                    │                    │
//!              └────────────── Refusal ◄────────────┴────────────────────┘      result, error ─► answer
//! ```
//!
//! The order of the checks, their statuses and their texts are Crossbar.io's, because programs look at
//! them; what is said here in another way than there is in the documentation.

pub mod answer;
pub mod body;
mod content;
pub mod cors;
mod github;
mod query;
mod refusal;
pub mod replay;
mod rules;
mod signature;
mod stamp;
pub mod target;
pub mod webhook;

pub use refusal::Refusal;
pub use rules::{Asked, Purpose, Rules};
