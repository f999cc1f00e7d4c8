//! Routers that run, seen from their sockets: what is started, stopped and listed meanwhile.

mod admin;
mod churn;
mod realms;
mod returning;
mod rig;
mod testees;
mod transports;
