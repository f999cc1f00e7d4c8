//! Transports that echo, for tests and measurements; they lead to no realm.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crosstie_config::{self as model, TesteeKind, WebSocketTestee};
use crosstie_front::bounds::Bounds;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::sockets;
use crosstie_front::tls_files::tls_of;
use crosstie_realms::upgrade::deflate_config;
use crosstie_testee::{Mode, Serving, Statistics, Testee, WebSocketOptions};
use crosstie_transport::descriptors::Room;
use crosstie_transport::{Listener, PeerAddress, Socket, Workers};
use tokio::task::JoinSet;

/// One such transport.
pub(crate) struct TesteeTransport {
    pub(crate) id: String,
    pub(crate) statistics: Arc<Statistics>,
    /// The worker's id.
    worker: String,
    serving: Arc<Serving>,
    connections: AtomicUsize,
    connections_max: usize,
    nodelay: bool,
    /// Logs each connection.
    debug: bool,
}

impl TesteeTransport {
    pub(crate) fn new(
        worker: &str,
        transport: &model::Transport,
        testee: &model::Testee,
        workers: &Arc<Workers>,
        directory: &Path,
    ) -> io::Result<Self> {
        let (kind, nodelay) = match &testee.kind {
            TesteeKind::Stream => (Testee::Stream(Mode::Echo), true),
            TesteeKind::WebSocket(options) => {
                (Testee::WebSocket(websocket(options)), options.tcp_nodelay)
            }
            other => {
                return Err(io::Error::other(format!(
                    "testee {other:?} is not known here"
                )));
            }
        };
        let statistics = Arc::<Statistics>::default();
        let serving = Serving::new(
            Arc::new(kind),
            Arc::clone(workers),
            tls_of(&transport.endpoint, directory, &[])?,
            Arc::clone(&statistics),
        );
        Ok(Self {
            id: transport.id.clone(),
            statistics,
            worker: worker.to_owned(),
            serving,
            connections: AtomicUsize::new(0),
            connections_max: transport.connections_max.unwrap_or(usize::MAX),
            nodelay,
            debug: testee.debug,
        })
    }

    /// Accepts connections forever; they end with this.
    pub(crate) async fn accept(
        self: Arc<Self>,
        bounds: Arc<Bounds>,
        listener: Arc<Listener>,
        workers: Arc<Workers>,
    ) {
        let mut connections = JoinSet::new();
        loop {
            let socket = sockets::accept(&listener, &workers).await;
            while connections.try_join_next().is_some() {}
            if let Some(admitted) = self.admit(&bounds, &socket) {
                workers.spawn_in(&mut connections, admitted.serve(socket));
            }
        }
    }

    /// Whether Nagle's algorithm is off.
    pub(crate) fn nodelay(&self) -> bool {
        self.nodelay
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Counts a connection, unless the maximum is reached.
    pub(crate) fn admit(self: &Arc<Self>, bounds: &Bounds, socket: &Socket) -> Option<Admitted> {
        // Counted apart from the sessions' connections: an echo keeps no client out of a realm.
        let fits = self.connections() < self.connections_max.min(bounds.connections_max)
            && Room::left_by(socket) == Room::Enough;
        if !fits {
            counters().count(Counter::ConnectionsRefused);
            return None;
        }
        counters().count(Counter::ConnectionsOpened);
        self.connections.fetch_add(1, Ordering::Relaxed);
        Some(Admitted(Arc::clone(self)))
    }
}

/// A counted connection, while this lives.
pub(crate) struct Admitted(Arc<TesteeTransport>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
        counters().count(Counter::ConnectionsClosed);
    }
}

impl Admitted {
    /// Echoes until the connection ends.
    pub(crate) async fn serve(self, socket: Socket) {
        let transport = &self.0;
        let peer = socket.peer();
        if transport.debug {
            log(transport, peer, "opened");
        }
        let served = crosstie_testee::serve(Arc::clone(&transport.serving), socket).await;
        if served.is_fault() {
            counters().count(Counter::PeerFaults);
        }
        if transport.debug {
            let why = served.is_fault().then(|| format!(": {served}"));
            log(
                transport,
                peer,
                &format!("ended{}", why.unwrap_or_default()),
            );
        }
    }
}

fn log(transport: &TesteeTransport, peer: PeerAddress, what: &str) {
    let TesteeTransport { id, worker, .. } = transport;
    tracing::info!(%worker, transport = %id, %peer, "testee connection {what}");
}

fn websocket(options: &WebSocketTestee) -> WebSocketOptions {
    WebSocketOptions {
        message_bytes_max: options.message_bytes_max,
        frame_bytes_max: options.frame_bytes_max.unwrap_or(usize::MAX),
        deflate: options.compression.as_ref().map(deflate_config),
        echo_close: options.echo_close_codereason,
        fail_by_drop: options.fail_by_drop,
        show_server_version: options.show_server_version,
    }
}
