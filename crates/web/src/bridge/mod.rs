//! HTTP requests as calls and publications, compatible with Crossbar.io's bridge.
//!
//! ```text
//!   head ─► Rules::admit ─► (the body is read) ─► Rules::check ─► body::call, body::publication, webhook
//!              │                                    │                    │
//!              └────────────── Refusal ◄────────────┴────────────────────┘      result, error ─► answer
//! ```
//!
//! The order of the checks, their statuses and their texts are Crossbar.io's, because programs depend on them; the
//! documentation lists the differences.

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
pub mod trace;
pub mod webhook;

pub use refusal::Refusal;
pub use rules::{Asked, Purpose, Rules};
