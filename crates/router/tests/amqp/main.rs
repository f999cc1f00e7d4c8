//! Routers that speak AMQP, seen from their sockets, frame by frame.

mod bodies;
mod changes;
mod channels;
mod closing;
mod flow;
mod logins;
mod negotiation;
mod operators;
mod owed;
mod pages;
mod rig;
mod survival;
mod tls;
mod turns;
mod vhosts;
