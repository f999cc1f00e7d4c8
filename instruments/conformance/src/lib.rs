//! Any WAMP router, judged by its URL: each feature of the specification by scenarios that are played against it.
//!
//! The scenarios are data (`scenarios/`, or a directory of the user's own); `crosstie_scenario` interprets them. This
//! crate has the sockets, blocking ones with a time limit for each wait, and the verdicts:
//!
//! ```text
//! suite ─ Feature, Feature, … ─▶ run ─ Play ⇄ Sessions ─▶ connection ⇄ the router
//!                                 └──▶ verdict ─▶ Judgement: a table, or JSON
//! ```
//!
//! A router that hangs, closes or sends malformed messages fails that scenario, and the next one begins on new
//! connections.

mod connection;
mod judgement;
mod run;
mod sessions;
mod stream;
mod suite;
mod transcript;

pub use crosstie_scenario::Feature;
pub use judgement::{Counts, FeatureReport, Judgement, ScenarioReport, Verdict};
pub use run::{METHOD, Options, RunError, run};
pub use suite::{SuiteError, embedded, from_directory};
