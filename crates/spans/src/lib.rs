//! Spans: what a node reports of messages that belong to a trace.
//!
//! ```text
//!   `traceparent` of a message ─► Context::sampled ─► Span::begin ─► Span::record ─► queue ─► exporter ─► otlp::request
//!                                                          │               ▲
//!                                                          └──► OpenSpans ─┘   a call, until its answer
//! ```
//!
//! A span is a child of the sender's own. The message's context is not changed, so the receiver's span is a child of the
//! sender's too. Without an exporter a message costs a look at one counter.

mod context;
mod open;
pub mod otlp;
mod queue;
mod span;

pub use context::Context;
pub use open::OpenSpans;
pub use queue::{Counts, FULL_BATCH, Taker, counts, is_on, note_exported};
pub use span::{Attribute, Failure, Span};
