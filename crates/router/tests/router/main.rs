//! Running routers, seen from their sockets: starts, stops and listings.

mod admin;
mod churn;
mod mqtt;
mod realms;
mod returning;
mod rig;
mod testees;
mod transports;
