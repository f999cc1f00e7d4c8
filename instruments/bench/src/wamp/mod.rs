//! WAMP as the drivers speak it: a blocking session, and the caller, the callee and the idle
//! sessions that stand on it.

pub(crate) mod argument;
pub(crate) mod callee;
pub(crate) mod caller;
pub(crate) mod holder;
pub(crate) mod login;
pub(crate) mod pipe;

#[cfg(test)]
mod tests;
