//! Starting the realms of a router.

use std::io;
use std::sync::Arc;

use crosstie_config as model;
use crosstie_realms::event_store::RealmStore;
use crosstie_realms::fabric;
use crosstie_spaces::SpaceStore;

use crate::error::{StartError, StartFault};
use crate::router::Router;

impl Router {
    /// Starts a realm with its configured roles.
    pub fn start_realm(&self, realm: &model::Realm) -> Result<(), StartError> {
        let what = || self.of_worker("realm", &realm.name);
        self.check_runs(what)?;
        let speaking = realm.fabric.as_ref().map(|fabric| {
            let directory = &self.options.directory;
            fabric::speaking(fabric, directory, &self.state.bounds.limits)
        });
        let speaking = speaking.transpose().map_err(|e| StartError {
            what: what(),
            fault: StartFault::Io(e),
        })?;
        let runs_already = || StartError {
            what: what(),
            fault: StartFault::AlreadyRunning,
        };
        // Its store would be in use.
        if self.state.realms.realm(&realm.name).is_some() {
            return Err(runs_already());
        }
        let store = self.open_store(realm)?;
        let mqtt_store = self.open_mqtt_store(realm)?;
        // Clients that come with the realm find its space.
        let restored = self.state.spaces.restore(&realm.name, mqtt_store);
        restored.map_err(|e| StartError {
            what: what(),
            fault: StartFault::Io(e),
        })?;
        let Some(started) = self.state.realms.add(realm, store) else {
            self.state.spaces.close(&realm.name);
            return Err(runs_already());
        };
        self.state.spaces.join(&realm.name);
        if let (Some(port), Some(speaking)) = (&started.port, speaking) {
            let (port, realm) = (Arc::clone(port), Arc::clone(&started));
            let serving = self.workers.serving_handle();
            let kept = fabric::keep(port, realm, speaking, serving);
            self.workers.spawn_keeper(kept);
        }
        self.workers.spawn_keeper(started.keep_time());
        Ok(())
    }

    /// The store of a realm's MQTT sessions, if configured.
    fn open_mqtt_store(&self, realm: &model::Realm) -> Result<Option<SpaceStore>, StartError> {
        let Some(path) = &realm.mqtt_store else {
            return Ok(None);
        };
        let path = self.options.directory.join(path);
        let opened = SpaceStore::open(path, &realm.name, self.options.accepts_loss);
        opened.map(Some).map_err(|e| StartError {
            what: self.of_worker("realm", &realm.name),
            fault: StartFault::Io(io::Error::other(e)),
        })
    }

    /// The store of a realm's events, if configured.
    fn open_store(&self, realm: &model::Realm) -> Result<Option<RealmStore>, StartError> {
        let Some(store) = &realm.event_store else {
            return Ok(None);
        };
        let (directory, account) = (&self.options.directory, &self.state.bounds.limits.account);
        let context = self.workers.keeper_handle();
        let opened = RealmStore::open(realm, store, directory, account, context);
        opened.map(Some).map_err(|e| StartError {
            what: self.of_worker("realm", &realm.name),
            fault: StartFault::Io(io::Error::other(e)),
        })
    }
}
