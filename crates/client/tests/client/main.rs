//! The client against a scripted router: both sides' messages are spelled out.

mod callee;
mod caller;
mod connect;
mod leave;
mod publisher;
mod reconnect;
mod router;
mod subscriber;
