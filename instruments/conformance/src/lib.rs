//! Any WAMP router, judged by its URL: each feature of the specification by scenarios that are played against it.
//!
//! The scenarios are data (`scenarios/`, or a directory of the user's own); what they mean is `crosstie_scenario`'s.
//! Here are the sockets, blocking ones with a time for each wait, and the verdicts:
//!
//! ```text
//! suite ─ Feature, Feature, … ─▶ run ─ Play ⇄ Sessions ─▶ connection ⇄ the router
//!                                 └──▶ verdict ─▶ Judgement: a table, or JSON
//! ```
//!
//! A router that hangs, closes or talks nonsense fails the scenario in which it does so, and the next one begins on
//! new connections.

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
