//! HTTP requests as calls, publications and events of one topic. What is taken and what is said is
//! [`crosstie_web::bridge`]'s; here it meets a realm, as a session of the router's own with the role that the
//! service is configured with.

mod service;
mod speaking;

pub(super) use service::Bridge;
