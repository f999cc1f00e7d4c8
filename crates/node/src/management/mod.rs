//! The node's management realm: `crossbar`, on a router of its own. Only this user reaches its socket; its other way in is
//! the console, with roles that may do less. The controller is an ordinary client in it.

mod controller;
pub(crate) mod errors;
mod events;
mod meta_api;
mod procedures;
mod publication;
mod realm;
mod request;
mod roles;
mod start;

pub(crate) use self::controller::Management;
pub(crate) use self::request::{Answer, Reply, Request};
pub(crate) use self::start::start;
