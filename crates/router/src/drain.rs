//! A drain: listeners close, and the clients leave in slices, so that they come back elsewhere one after another.
//!
//! Each client leaves in the way after which it comes back, once its open calls are answered. A drain can be undone at
//! any time: listeners open again at the addresses that they had.

use std::sync::Arc;

use crosstie_config as model;
use crosstie_front::connections::Connections;
use crosstie_front::sockets;
use crosstie_realms::farewell::close_for_return;
use crosstie_transport::{Connection, Listener};

use crate::accepting::{Accepting, Ready};
use crate::departure::{self, CLOSED_WITHIN};
use crate::error::{StartError, StartFault};
use crate::leaving::Leaving;
use crate::registry::Registry;
use crate::router::Router;
use crate::transports::RunningTransport;

impl Router {
    /// The page `/ready` says that the router drains, or no more.
    pub fn set_draining(&self, is_draining: bool) {
        self.state.bounds.set_draining(is_draining);
        if !is_draining {
            *self.leaving.lock() = Leaving::default();
        }
    }

    /// Closes the listeners for clients. Returns the number of clients that are there. Listeners for components of the
    /// node and for other nodes stay, and so does the operators' one.
    pub fn close_for_drain(&self) -> usize {
        let closed: Vec<_> = {
            let mut transports = self.transports.lock();
            let public = transports.iter_mut().filter(|running| running.is_drained());
            public.filter_map(RunningTransport::close).collect()
        };
        closed.into_iter().for_each(|accepting| accepting.stop());
        let clients = self.clients();
        *self.leaving.lock() = Leaving::new(&clients);
        clients.len()
    }

    /// Has clients leave until this share of them has been told. Returns the number of clients that are still there.
    pub fn dismiss(&self, share: f64) -> usize {
        let mut leaving = self.leaving.lock();
        let mut slice = leaving.slice(share);
        if share >= 1.0 {
            // Connections that were accepted while the listeners closed.
            slice.extend(leaving.late(self.clients()));
        }
        if !slice.is_empty() {
            let leave = leave(Arc::clone(&self.state), slice);
            self.workers.spawn_keeper(leave);
        }
        leaving.remaining()
    }

    /// Opens the listeners again that a drain has closed, and returns the outcome of each.
    pub fn reopen(&self) -> Vec<Result<(), StartError>> {
        let mut transports = self.transports.lock();
        let closed = transports.iter_mut().filter(|running| running.is_drained());
        let closed = closed.filter(|running| running.accepting.is_none());
        let outcomes = closed.map(|running| {
            self.reopen_one(running).map_err(|e| StartError {
                what: self.of_worker("transport", &running.id),
                fault: StartFault::Io(e),
            })
        });
        outcomes.collect()
    }

    pub(crate) fn reopen_one(&self, running: &mut RunningTransport) -> std::io::Result<()> {
        let Some(destination) = running.destination.clone() else {
            return Ok(());
        };
        let mut endpoint = running.endpoint.clone();
        if let (model::Endpoint::Tcp(tcp), Some(port)) = (&mut endpoint, running.reopens_at) {
            (tcp.port, tcp.port_last) = (port, None);
        }
        let (directory, stall_max) = (&self.options.directory, self.state.bounds.limits.stall_max);
        let (name, nodelay) = (self.socket_name(&running.id), running.nodelay);
        let bind = || sockets::bind(&name, &endpoint, nodelay, None, directory, stall_max);
        let listener = Arc::new(self.workers.enter_first(bind)?);
        running.listener = Arc::downgrade(&listener);
        let ready = Ready {
            destination,
            listener,
        };
        running.accepting = Some(ready.accept(&self.workers));
        Ok(())
    }

    /// The connections of all clients.
    fn clients(&self) -> Vec<Arc<Connection>> {
        let numbers: Vec<u32> = {
            let transports = self.transports.lock();
            let public = transports.iter().filter(|running| running.is_drained());
            let conversing = public.flat_map(RunningTransport::conversing);
            conversing.map(|of| of.listening.number).collect()
        };
        self.state
            .watch
            .connections(|number| numbers.contains(&number))
    }
}

impl RunningTransport {
    /// Whether a drain closes it. The connections of a testee have no conversation that could end in order.
    fn is_drained(&self) -> bool {
        !self.is_private && self.destination.is_some()
    }

    /// Takes the task that accepts, and notes the port.
    pub(crate) fn close(&mut self) -> Option<Accepting> {
        let listener = self.listener.upgrade();
        self.reopens_at = listener.as_deref().and_then(port);
        self.accepting.take()
    }
}

/// The bound port; `None` for a Unix socket.
fn port(listener: &Listener) -> Option<u16> {
    let address = listener.local_address().ok()??;
    Some(address.port())
}

/// Closes these clients in the way after which they come back; those with open calls once these are answered.
async fn leave(state: Arc<Registry>, clients: Vec<Arc<Connection>>) {
    let realms = state.realms.realms();
    let all: Connections = clients.iter().collect();
    let busy: Vec<_> = realms.iter().flat_map(|realm| realm.busy(&all)).collect();
    let busy: Connections = busy.iter().collect();
    let (busy, idle): (Vec<_>, Vec<_>) = clients.into_iter().partition(|client| busy.has(client));
    for client in busy {
        let state = Arc::clone(&state);
        // A long call holds up nobody else.
        tokio::spawn(async move {
            let alone: Connections = [&client].into_iter().collect();
            departure::drain(&state, &state.realms.realms(), Some(&alone)).await;
            close(&state, vec![client]).await;
        });
    }
    close(&state, idle).await;
}

async fn close(state: &Registry, clients: Vec<Arc<Connection>>) {
    let all: Connections = clients.iter().collect();
    for realm in state.realms.realms() {
        realm.peers_of(&all).iter().for_each(close_for_return);
    }
    state
        .watch
        .close_kept_alive(|_, connection| all.has(connection));
    if let Some(broker) = state.amqp() {
        broker.close_these(&all, "drain");
    }
    state.watch.finish_unopened_of(&all);
    crosstie_transport::uncork();
    tokio::time::sleep(CLOSED_WITHIN).await;
    clients.iter().for_each(|client| client.close());
}
