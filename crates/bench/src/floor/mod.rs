//! The floor: what this machine takes for the same bytes without any messages. A ratio to it
//! compares what is between the clients and nothing else.

pub mod ends;
pub mod relay;
pub mod websocket;
