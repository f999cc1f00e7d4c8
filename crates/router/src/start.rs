//! Where a router is put together: its core, and what stands on it.
//!
//! Web services reach realms and open sessions, so that they need the core; the core makes them by what it is
//! given here. Nobody imports this file.

use crosstie_config as model;

use crate::error::StartError;
use crate::router::{Router, RouterOptions};
use crate::web::services;

impl Router {
    /// Starts the threads of `worker`; none of its realms or transports yet.
    pub fn start(
        worker: &model::RouterWorker,
        limits: &model::Limits,
        options: &RouterOptions,
    ) -> Result<Self, StartError> {
        Self::start_with(worker, limits, options, services::site)
    }
}
