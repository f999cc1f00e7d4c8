//! HTTP requests as calls, publications and events of one topic. [`crosstie_web::bridge`] defines the requests and
//! answers; this module connects them to a realm, by a session of the router's own with the service's configured role.

mod effect;
mod service;

pub(super) use service::Bridge;
