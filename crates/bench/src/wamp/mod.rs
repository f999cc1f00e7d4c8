//! WAMP as the drivers speak it: a blocking session, and the caller, the callee and the idle
//! sessions that stand on it.

pub mod argument;
pub mod callee;
pub mod caller;
pub mod holder;
pub mod pipe;
