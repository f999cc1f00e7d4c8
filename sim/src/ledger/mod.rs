//! A vhost whose journal is in a log of several nodes, simulated from a seed.
//!
//! Three nodes, each a vhost and a ledger. The log takes appends late, twice or never, loses acknowledgements, repeats
//! refusals; nodes crash, claim the vhost from one that lives, hand it over, and have the log recovered. The next owner
//! has every confirmed message, in order; a deposed owner confirms nothing; and a cleaned log restores the same state
//! as one that never was.

mod checks;
mod log;
mod node;
mod recovery;
mod run;

pub use run::LedgerRun;
