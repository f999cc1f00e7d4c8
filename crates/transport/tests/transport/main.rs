//! The transport over real sockets: at any timing, bytes arrive in order, once, and within their bounds.

mod account;
mod connection;
mod cork;
mod hold;
mod listener;
mod mailbox;
mod overflow;
mod pause;
mod places;
mod proxy_header;
mod pump;
mod rig;
mod soon;
mod stages;
mod stream;
mod tls;
mod tls_files;
mod turns;
mod workers;
