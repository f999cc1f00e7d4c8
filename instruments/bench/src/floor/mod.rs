//! The floor: this machine's cost for the same bytes without any messages. A ratio to it compares only the software
//! between the clients.

pub(crate) mod ends;
pub(crate) mod relay;
pub(crate) mod websocket;

#[cfg(test)]
mod tests;
