//! A vhost whose journal is in a log of several nodes, simulated from a seed.
//!
//! Three nodes, each a vhost and a ledger. The log takes appends late, twice or never, loses acknowledgements, repeats
//! refusals; nodes crash, claim the vhost from one that lives, hand it over, and have the log recovered. What was confirmed is there for whoever
//! owns the vhost next, in its order; who was deposed confirms nothing; and a log that was cleaned says what
//! one says that never was.

mod checks;
mod log;
mod node;
mod recovering;
mod run;

pub use run::LedgerRun;
