//! The controller's session in the management realm.

use std::io;

use crosstie_client::Client;
use crosstie_config::{CONSOLE, Endpoint, Transport};
use crosstie_router::passed::Passed;
use crosstie_router::{MetaSession, Router, StartError, StartFault, Threads};
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
    pub(crate) router: Router,
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

    /// Starts the console's listener. Returns its pages' URLs. If its port is in use and `moves`, it takes any free one.
    pub(crate) fn start_console(
        &self,
        transport: &Transport,
        moves: bool,
    ) -> Result<Vec<String>, StartError> {
        let started = self.router.start_transport(transport);
        let is_in_use = matches!(&started, Err(StartError { fault: StartFault::Io(error), .. })
            if error.kind() == io::ErrorKind::AddrInUse);
        let mut elsewhere = transport.clone();
        let urls = match &mut elsewhere.endpoint {
            Endpoint::Tcp(tcp) if is_in_use && moves => {
                (tcp.port, tcp.port_last) = (0, None);
                self.router.start_transport(&elsewhere)?
            }
            _ => started?,
        };
        Ok(urls
            .into_iter()
            .filter(|url| url.starts_with("http"))
            .collect())
    }

    /// Closes the console's listener, and ends its sessions.
    pub(crate) fn stop_console(&self) {
        // It may not have been started.
        let _ = self.router.stop_transport(CONSOLE);
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
