//! The floor: what this machine takes for the same bytes without any messages. A ratio to it
//! compares what is between the clients and nothing else.

pub(crate) mod ends;
pub(crate) mod relay;
pub(crate) mod websocket;

#[cfg(test)]
mod tests;
