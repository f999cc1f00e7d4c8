//! The controller's session in the management realm.

use std::io;

use crosstie_client::Client;
use crosstie_router::passed::Passed;
use crosstie_router::{MetaSession, Router, Threads};
use tokio::sync::mpsc;

use super::meta_api::{self, Bridged};
use super::publication::Publication;
use crate::task::Task;

/// The realm, its router and the controller's session.
pub(crate) struct Management {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(super) publications: mpsc::Sender<Publication>,
    pub(super) bridged: Bridged,
    pub(super) _tasks: Vec<Task>,
    /// Dropped after all clients.
    pub(super) router: Router,
}

impl Management {
    /// The threads of the realm's router.
    pub(crate) fn threads(&self) -> Threads {
        self.router.watched_threads()
    }

    /// Second descriptors of the realm's sockets.
    pub(crate) fn sockets(&self) -> io::Result<Vec<Passed>> {
        self.router.sockets()
    }

    /// Number of sessions in the realm.
    pub(crate) fn sessions(&self) -> usize {
        let realms = self.router.realms();
        realms.iter().map(|realm| realm.sessions).sum()
    }

    /// Accepts no client any more, until [`Management::accept_again`]; sessions stay.
    pub(crate) fn accept_none(&self) {
        self.router.accept_none();
    }

    /// Accepts clients at the sockets that are kept.
    pub(crate) fn accept_again(&self) -> io::Result<()> {
        self.router.accept_again()
    }

    /// Bridges the meta API of a realm.
    pub(crate) fn bridge_meta_api(
        &self,
        worker: &str,
        realm: &str,
        join: impl FnOnce() -> Result<MetaSession, String>,
    ) -> Result<(), String> {
        let begin = format!("crossbar.worker.{worker}.realm.{realm}.root.");
        meta_api::bridge(&self.bridged, &self.client, begin, join)
    }
}
