//! Where a router is put together: its core, and what stands on it.
//!
//! Web services reach realms and open sessions, so that they need the core; the core makes them by what it is
//! given here. Nobody imports this file.

use std::sync::Arc;

use crosstie_config as model;

use crate::error::{StartError, StartFault};
use crate::fabric;
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

    /// Starts a realm with the roles that it names.
    pub fn start_realm(&self, realm: &model::Realm) -> Result<(), StartError> {
        let what = || self.of_worker("realm", &realm.name);
        self.check_runs(what)?;
        let speaking = realm.fabric.as_ref().map(|fabric| {
            let directory = &self.options.directory;
            fabric::speaking(fabric, directory, &self.state.limits)
        });
        let speaking = speaking.transpose().map_err(|e| StartError {
            what: what(),
            fault: StartFault::Io(e),
        })?;
        let Some(started) = self.state.add_realm(realm) else {
            return Err(StartError {
                what: what(),
                fault: StartFault::AlreadyRunning,
            });
        };
        if let (Some(link), Some(speaking)) = (&started.link, speaking) {
            let (link, realm) = (Arc::clone(link), Arc::clone(&started));
            let serving = self.workers.serving_handle();
            let kept = fabric::keep(link, realm, speaking, serving);
            self.workers.spawn_keeper(kept);
        }
        self.workers.spawn_keeper(started.keep_time());
        Ok(())
    }
}
