//! The framings against tables of bytes, against every way to cut them up, and against
//! somebody else's WebSocket and deflate.

mod around;
mod batched;
mod deflate;
mod drive;
mod extension;
mod handshake;
mod oracle;
mod rawsocket;
mod websocket;
