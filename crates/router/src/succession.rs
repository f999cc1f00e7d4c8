//! A router whose successor is another process of the node: its sockets are passed on, and its stop is short.

use std::io;
use std::time::Duration;

use crosstie_config as model;
use crosstie_transport::passed::Passed;

use crate::accepting::Accepting;
use crate::router::Router;
use crate::transports::RunningTransport;

/// Maximum times of a stop.
#[derive(Clone, Copy, Debug)]
pub struct Haste {
    /// For open calls to be answered.
    pub calls: Duration,
    /// For clients to close their connections, all together.
    pub clients: Duration,
}

impl Router {
    /// Second descriptors of the listening sockets, apart from those for components of the node and those of the
    /// service manager.
    pub fn sockets(&self) -> io::Result<Vec<Passed>> {
        let transports = self.transports.lock();
        let own = transports.iter().filter(|running| {
            let is_of_manager = matches!(running.endpoint, model::Endpoint::Systemd(_));
            let is_unix = matches!(running.endpoint, model::Endpoint::Unix { .. });
            let is_of_components = running.is_private && is_unix && !self.options.is_private;
            !is_of_manager && !is_of_components
        });
        let open = own.filter_map(|running| Some((&running.id, running.listener.upgrade()?)));
        open.map(|(id, listener)| {
            Ok(Passed {
                name: self.socket_name(id),
                fd: listener.duplicate()?,
            })
        })
        .collect()
    }

    /// Accepts no client any more, until [`Router::accept_again`]. Sessions stay.
    pub fn accept_none(&self) {
        let mut transports = self.transports.lock();
        let closed = transports.iter_mut().filter_map(RunningTransport::close);
        closed.for_each(Accepting::stop);
    }

    /// Accepts clients at the sockets that are kept for the listeners.
    pub fn accept_again(&self) -> io::Result<()> {
        let mut transports = self.transports.lock();
        let mut closed = transports
            .iter_mut()
            .filter(|running| running.accepting.is_none());
        closed.try_for_each(|running| self.reopen_one(running))
    }

    /// Does what [`Router::stop`] does, in less time: clients that have not closed their connections find their way to
    /// the successor by themselves.
    pub fn hurry(&self, haste: Haste) {
        // The first one counts.
        let _ = self.state.haste.set(haste);
    }

    /// The name of a transport's socket, in the node.
    pub(crate) fn socket_name(&self, transport: &str) -> String {
        socket_name(self.id(), transport)
    }
}

/// The name of the socket of a worker's transport, in the node.
pub fn socket_name(worker: &str, transport: &str) -> String {
    format!("{worker}/{transport}")
}
