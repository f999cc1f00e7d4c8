//! The client against a router that is a script: both sides' messages are spelled out.

mod callee;
mod caller;
mod connecting;
mod leaving;
mod publishing;
mod reconnecting;
mod router;
mod subscriber;
