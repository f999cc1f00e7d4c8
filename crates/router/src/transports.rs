//! The transports of a router: started, listed and stopped while it runs.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use crosstie_broker::splice::Cluster;
use crosstie_config::{self as model, TesteeKind, TransportKind};
use crosstie_front::certificate::Certificate;
use crosstie_front::serve::Destination;
use crosstie_front::sockets;
use crosstie_realms::farewell::{Farewell, close_for_return, say_goodbye};
use crosstie_transport::Listener;

use crate::accepting::{Accepting, Ready};
use crate::conversing::{Conversing, Opened};
use crate::departure;
use crate::error::{StartError, StartFault, StopError};
use crate::router::Router;
use crate::testee::TesteeTransport;
use crate::urls;

/// A running transport.
#[derive(Clone, Debug)]
pub struct TransportStatus {
    pub id: String,
    /// The configuration's word for its protocol.
    pub kind: &'static str,
    /// The addresses for clients.
    pub urls: Vec<String>,
    /// The addresses of its pages for browsers, if any.
    pub pages: Vec<String>,
    pub connections: usize,
    pub started: SystemTime,
}

/// A listener, with its endpoint.
pub(crate) struct RunningTransport {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) urls: Vec<String>,
    pub(crate) pages: Vec<String>,
    pub(crate) started: SystemTime,
    /// For the node's own processes only, or for other nodes.
    pub(crate) is_private: bool,
    pub(crate) endpoint: model::Endpoint,
    /// Of a listener of AMQP.
    pub(crate) channels_max: Option<u16>,
    pub(crate) served: Served,
    /// Its files are checked for as long as this lives.
    pub(crate) certificate: Option<Arc<Certificate>>,
    /// The former states of a changed transport, whose connections stay.
    pub(crate) earlier: Vec<Conversing>,
    /// Where the connections of the listener go; `None` for a testee.
    pub(crate) destination: Option<Arc<Destination>>,
    /// The socket, as long as it is open.
    pub(crate) listener: Weak<Listener>,
    /// Whether Nagle's algorithm is off.
    pub(crate) nodelay: bool,
    /// The port of a listener that a drain has closed.
    pub(crate) reopens_at: Option<u16>,
    /// `None` once the listener is closed.
    pub(crate) accepting: Option<Accepting>,
}

pub(crate) enum Served {
    Conversations(Conversing),
    Testee(Arc<TesteeTransport>),
}

impl RunningTransport {
    /// Whether it leads to the broker.
    pub(crate) fn is_of_broker(&self) -> bool {
        matches!(self.kind, "amqp" | "amqp.management" | "amqp.prometheus")
    }

    /// Its present connections' states, and those of its earlier ones.
    pub(crate) fn conversing(&self) -> impl Iterator<Item = &Conversing> {
        let present = match &self.served {
            Served::Conversations(conversing) => Some(conversing),
            Served::Testee(_) => None,
        };
        present.into_iter().chain(&self.earlier)
    }
}

/// Maximum time after a realm's start that transports wait for its other nodes.
const ATTACHED_TIMEOUT: Duration = Duration::from_secs(10);

impl Router {
    /// Listens. Returns the URLs for clients.
    pub fn start_transport(&self, transport: &model::Transport) -> Result<Vec<String>, StartError> {
        self.start_transport_as(transport, None)
    }

    /// Listens only for the user of this process, if the endpoint is a Unix socket: the socket's file has mode 0600
    /// before any client can connect.
    pub fn start_private_transport(
        &self,
        transport: &model::Transport,
    ) -> Result<Vec<String>, StartError> {
        self.start_transport_as(transport, Some(0o600))
    }

    /// Stops a transport. Its listener is closed when this returns, so that another may take its address. The open
    /// calls of its sessions may be answered within the shutdown timeout. Then its connections are closed so that the
    /// clients return; or the clients are sent GOODBYE `wamp.close.system_shutdown`, and closed when they have answered
    /// or the shutdown timeout ends.
    pub fn stop_transport(&self, id: &str) -> Result<(), StopError> {
        let mut transports = self.transports.lock();
        let Some(place) = transports.iter().position(|t| t.id == id) else {
            return Err(StopError {
                what: self.of_worker("transport", id),
            });
        };
        let stopped = transports.remove(place);
        // Under the lock, so that a caller that starts it again finds the address free.
        if let Some(accepting) = stopped.accepting {
            accepting.stop();
        }
        self.note_transports(&transports);
        drop(transports);
        self.end_served(stopped.served, stopped.earlier);
        Ok(())
    }

    /// Ends the connections of a transport whose listener is closed.
    pub(crate) fn end_served(&self, served: Served, earlier: Vec<Conversing>) {
        match served {
            Served::Conversations(conversing) => {
                for conversing in earlier.into_iter().chain([conversing]) {
                    conversing.listening.stop();
                    self.end_conversations(conversing);
                }
            }
            // Its connections ended with the task that accepted them.
            Served::Testee(testee) => self.state.remove_testee(&testee),
        }
    }

    /// The transports, in the order of their starts.
    pub fn transports(&self) -> Vec<TransportStatus> {
        let transports = self.transports.lock();
        let status = transports.iter().map(|transport| TransportStatus {
            id: transport.id.clone(),
            kind: transport.kind,
            urls: transport.urls.clone(),
            pages: transport.pages.clone(),
            connections: match &transport.served {
                Served::Conversations(_) => {
                    let of = transport.conversing();
                    of.map(|of| of.listening.connections()).sum()
                }
                Served::Testee(testee) => testee.connections(),
            },
            started: transport.started,
        });
        status.collect()
    }

    /// The transports whose connections have conversations.
    pub(crate) fn conversing(&self) -> Vec<Conversing> {
        let transports = self.transports.lock();
        let conversing = transports.iter().flat_map(RunningTransport::conversing);
        conversing.cloned().collect()
    }

    /// Listens for other nodes, which bring clients of these vhosts. Returns the addresses.
    pub(crate) fn start_cluster_listener(
        &self,
        transport: &model::Transport,
        cluster: Cluster,
    ) -> Result<Vec<String>, StartError> {
        self.start_transport_for(transport, None, Some(cluster))
    }

    fn start_transport_as(
        &self,
        transport: &model::Transport,
        mode: Option<u32>,
    ) -> Result<Vec<String>, StartError> {
        self.start_transport_for(transport, mode, None)
    }

    fn start_transport_for(
        &self,
        transport: &model::Transport,
        mode: Option<u32>,
        cluster: Option<Cluster>,
    ) -> Result<Vec<String>, StartError> {
        let what = || self.of_worker("transport", &transport.id);
        // The error of a socket names its address, that of a file its path.
        let failed = |fault| StartError {
            what: what(),
            fault,
        };
        self.check_runs(what)?;
        // The transports of components and of other nodes serve no clients.
        if mode.is_none() && cluster.is_none() && self.state.bounds.is_draining() {
            return Err(failed(StartFault::Draining));
        }
        self.await_attached(&transport.kind);
        let mut transports = self.transports.lock();
        // A stop meanwhile has closed all present transports.
        self.check_runs(what)?;
        if transports.iter().any(|t| t.id == transport.id) {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let running = self.listen(transport, mode, cluster);
        let running = running.map_err(|e| failed(StartFault::Io(e)))?;
        let urls = running.urls.clone();
        transports.push(running);
        self.note_transports(&transports);
        Ok(urls)
    }

    /// Waits until realms of several nodes are attached, so that the first sessions find the other nodes; limited, as a
    /// node also serves alone.
    fn await_attached(&self, kind: &TransportKind) {
        if matches!(kind, TransportKind::Testee(_)) {
            return;
        }
        for realm in self.state.realms.realms() {
            if let Some(port) = &realm.port {
                port.await_attached(realm.started_at() + ATTACHED_TIMEOUT);
            }
        }
    }

    /// Updates the clients' addresses on the pages, and the broker's knowledge of its listeners.
    pub(crate) fn note_transports(&self, transports: &[RunningTransport]) {
        let public = transports.iter().filter(|transport| !transport.is_private);
        if let Some(broker) = self.state.amqp() {
            let listeners = public.clone();
            broker.note_listeners(listeners.filter_map(|of| Some((&*of.id, of.channels_max?))));
        }
        let addresses =
            public.map(|transport| (transport.id.clone(), transport.kind, transport.urls.clone()));
        *self.state.addresses.lock() = addresses.collect();
    }

    pub(crate) fn listen(
        &self,
        transport: &model::Transport,
        mode: Option<u32>,
        cluster: Option<Cluster>,
    ) -> io::Result<RunningTransport> {
        let TransportKind::Testee(testee) = &transport.kind else {
            let (mut running, ready) = self.bind(transport, mode, cluster, &[])?;
            running.accepting = Some(ready.accept(&self.workers));
            return Ok(running);
        };
        let (workers, directory) = (Arc::clone(&self.workers), &self.options.directory);
        let testee = TesteeTransport::new(self.state.id(), transport, testee, &workers, directory)?;
        let testee = Arc::new(testee);
        let listener = Arc::new(self.bind_socket(transport, mode, testee.nodelay())?);
        let open = Arc::downgrade(&listener);
        let urls = urls::of_transport(transport, &listener, directory);
        self.state.add_testee(Arc::clone(&testee));
        let accepting = Accepting::start(&self.workers, {
            let (testee, bounds) = (Arc::clone(&testee), Arc::clone(&self.state.bounds));
            testee.accept(bounds, listener, workers)
        });
        Ok(RunningTransport {
            id: transport.id.clone(),
            kind: kind(&transport.kind),
            urls,
            pages: Vec::new(),
            started: SystemTime::now(),
            is_private: mode.is_some(),
            endpoint: transport.endpoint.clone(),
            channels_max: None,
            served: Served::Testee(testee),
            certificate: None,
            earlier: Vec::new(),
            destination: None,
            listener: open,
            nodelay: true,
            reopens_at: None,
            accepting: Some(accepting),
        })
    }

    /// Binds a transport whose connections have conversations, without accepting yet. `earlier` are states of the
    /// transport that it replaces.
    pub(crate) fn bind(
        &self,
        transport: &model::Transport,
        mode: Option<u32>,
        cluster: Option<Cluster>,
        earlier: &[Conversing],
    ) -> io::Result<(RunningTransport, Ready)> {
        let is_private = mode.is_some() || cluster.is_some();
        let Opened {
            conversing,
            endpoint,
            nodelay,
            certificate,
        } = self.endpoint(transport, cluster, earlier)?;
        let listener = Arc::new(self.bind_socket(transport, mode, nodelay)?);
        let (urls, pages) = self.urls(transport, &listener);
        let destination = Destination::new(Arc::clone(&conversing.listening), endpoint);
        let running = RunningTransport {
            id: transport.id.clone(),
            kind: kind(&transport.kind),
            urls,
            pages,
            started: SystemTime::now(),
            is_private,
            endpoint: transport.endpoint.clone(),
            channels_max: channels_max(&transport.kind),
            served: Served::Conversations(conversing),
            certificate,
            earlier: Vec::new(),
            destination: Some(Arc::clone(&destination)),
            listener: Arc::downgrade(&listener),
            nodelay,
            reopens_at: None,
            accepting: None,
        };
        let ready = Ready {
            destination,
            listener,
        };
        Ok((running, ready))
    }

    fn bind_socket(
        &self,
        transport: &model::Transport,
        mode: Option<u32>,
        nodelay: bool,
    ) -> io::Result<Listener> {
        let (directory, stall_max) = (&self.options.directory, self.state.bounds.limits.stall_max);
        let (name, endpoint) = (self.socket_name(&transport.id), &transport.endpoint);
        let bind = || sockets::bind(&name, endpoint, nodelay, mode, directory, stall_max);
        self.workers.enter_first(bind)
    }

    /// The addresses of a bound transport: for clients, and of its pages.
    pub(crate) fn urls(
        &self,
        transport: &model::Transport,
        listener: &Listener,
    ) -> (Vec<String>, Vec<String>) {
        let directory = &self.options.directory;
        let pages = match transport.pages.is_empty() {
            true => Vec::new(),
            false => urls::of_pages(&transport.endpoint, listener, directory),
        };
        (urls::of_transport(transport, listener, directory), pages)
    }

    /// Ends the sessions of a stopped listener, and closes the remaining connections after a timeout.
    pub(crate) fn end_conversations(&self, conversing: Conversing) {
        let state = Arc::clone(&self.state);
        let listening = Arc::clone(&conversing.listening);
        self.workers.spawn_keeper(async move {
            state.watch.finish_unopened(listening.number);
            let connections = state.watch.of(listening.number);
            let realms = state.realms.realms();
            departure::drain(&state, &realms, Some(&connections)).await;
            if state.realms.says_goodbye {
                conversing.note_goodbye();
            }
            for realm in realms {
                let its_own = realm.peers_of(&connections);
                its_own
                    .iter()
                    .for_each(|peer| match state.realms.says_goodbye {
                        true => {
                            let farewell = &Farewell::STOP_TRANSPORT;
                            say_goodbye(&state.realms.session_messages, peer, farewell);
                        }
                        false => close_for_return(peer),
                    });
            }
            state
                .watch
                .close_kept_alive(|transport, _| transport == listening.number);
            if let Some(broker) = state.amqp() {
                broker.close_connections(Some(listening.number), "shutdown");
            }
            crosstie_transport::uncork();
            drop(connections);
            let emptied = listening.until_empty();
            let _ = tokio::time::timeout(departure::timeout(&state), emptied).await;
            state.watch.close_all(listening.number);
        });
    }
}

/// The maximum number of channels that a listener of AMQP offers.
pub(crate) fn channels_max(kind: &TransportKind) -> Option<u16> {
    match kind {
        TransportKind::Amqp(options) => Some(options.channels_max),
        _ => None,
    }
}

pub(crate) fn kind(kind: &TransportKind) -> &'static str {
    match kind {
        TransportKind::RawSocket(_) => "rawsocket",
        TransportKind::Mqtt(_) => "mqtt",
        TransportKind::WebSocket(_) => "websocket",
        TransportKind::Universal { .. } => "universal",
        TransportKind::Web(_) => "web",
        TransportKind::Amqp(_) => "amqp",
        TransportKind::AmqpManagement(_) => "amqp.management",
        TransportKind::AmqpPrometheus => "amqp.prometheus",
        TransportKind::Testee(testee) => match testee.kind {
            TesteeKind::WebSocket(_) => "websocket.testee",
            _ => "stream.testee",
        },
        _ => "unknown",
    }
}
