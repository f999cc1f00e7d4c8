//! WAMP for the drivers: a blocking session, and the caller, the callee and the idle sessions based on it.

pub(crate) mod argument;
pub(crate) mod callee;
pub(crate) mod caller;
pub(crate) mod holder;
pub(crate) mod login;
pub(crate) mod pipe;

#[cfg(test)]
mod tests;
