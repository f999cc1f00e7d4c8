//! Listeners: accepting connections and giving each its thread.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_config::{self as model, Allowed, Auth, Page, RawSocket, TransportKind, WebSocket};
use crosstie_transport::descriptors::is_shortage;
use crosstie_transport::tls::{self, TlsFiles, TlsStage};
use crosstie_transport::{
    Connection, ConnectionLimits, ConnectionStream, Ended, Endpoint, Listener, Socket, Stage,
    TcpOptions, Workers, pump,
};
use crosstie_wamp::codec;
use crosstie_wamp::framing::websocket::reject_response;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::admission::Admitted;
use crate::amqp::{self, AmqpEndpoint};
use crate::counters::{Counter, counters};
use crate::hub::Hub;
use crate::rendered::Rendered;
use crate::wamp::conversation::{Conversation, Manners};
use crate::{pages, report};

/// What all connections of one listener share.
pub(crate) struct Listening {
    pub(crate) router: Arc<Hub>,
    /// The transport's number in the router.
    pub(crate) number: u32,
    pub(crate) decoding: codec::Limits,
    pub(crate) rawsocket: Option<RawSocketEndpoint>,
    pub(crate) websockets: Vec<WebSocketEndpoint>,
    /// Then the listener speaks nothing else.
    amqp: Option<Arc<AmqpEndpoint>>,
    pub(crate) pages: Vec<Page>,
    pub(crate) allowed_hosts: Allowed,
    /// What the pages tell of; an operators' listener tells of every router.
    pub(crate) routers: Mutex<Vec<Arc<Hub>>>,
    /// How long a connection may take to become a session.
    pub(crate) handshake_timeout: Duration,
    tls: Option<Arc<tls::ServerConfig>>,
    limits: Arc<ConnectionLimits>,
    connections: AtomicUsize,
    page_connections: AtomicUsize,
    page_connections_max: usize,
    /// Pages that took time to render.
    pub(crate) rendered: Mutex<Rendered>,
    pub(crate) connections_max: usize,
    stopping: AtomicBool,
    /// It stops; its last connection has ended.
    stopped: Notify,
    emptied: Notify,
}

/// RawSocket on a listener.
pub(crate) struct RawSocketEndpoint {
    pub(crate) options: RawSocket,
    pub(crate) auth: Arc<Auth>,
    pub(crate) manners: Arc<Manners>,
}

/// WebSocket on a listener, at one path or, without one, at every path.
pub(crate) struct WebSocketEndpoint {
    pub(crate) path: Option<String>,
    pub(crate) options: WebSocket,
    pub(crate) auth: Arc<Auth>,
    pub(crate) manners: Arc<Manners>,
}

impl Listening {
    pub(crate) fn new(
        router: Arc<Hub>,
        transport: &model::Transport,
        directory: &Path,
    ) -> io::Result<Self> {
        let raw = |options: &RawSocket| RawSocketEndpoint {
            auth: Arc::new(options.auth.clone()),
            manners: Arc::new(options.into()),
            options: options.clone(),
        };
        let web = |path: Option<&String>, options: &WebSocket| WebSocketEndpoint {
            path: path.cloned(),
            auth: Arc::new(options.auth.clone()),
            manners: Arc::new((&options.options).into()),
            options: options.clone(),
        };
        let mut amqp = None;
        let (rawsocket, websockets) = match &transport.kind {
            TransportKind::RawSocket(options) => (Some(raw(options)), Vec::new()),
            TransportKind::WebSocket(options) => (None, vec![web(None, options)]),
            TransportKind::Universal {
                rawsocket,
                websocket,
            } => {
                let websockets = websocket
                    .iter()
                    .map(|(path, options)| web(Some(path), options));
                (rawsocket.as_ref().map(raw), websockets.collect())
            }
            TransportKind::Amqp(options) => {
                let no_broker = || io::Error::other("the worker's AMQP has not been started");
                let broker = router.amqp().ok_or_else(no_broker)?;
                amqp = Some(Arc::new(AmqpEndpoint {
                    options: options.clone(),
                    broker: Arc::clone(broker),
                }));
                (None, Vec::new())
            }
            other => {
                return Err(io::Error::other(format!(
                    "transport {other:?} is not known here"
                )));
            }
        };
        // Which path a connection asks for shows only in its handshake.
        let timeouts = websockets
            .iter()
            .filter_map(|w| w.options.options.open_handshake_timeout);
        let timeout = timeouts.max().unwrap_or(router.handshake_timeout);
        let page_connections_max = router.page_connections_max;
        let amqp_timeout = amqp.as_ref().map(|amqp| amqp.options.handshake_timeout);
        let limits = match &amqp {
            Some(amqp) => Arc::new(amqp.limits(&router.limits)),
            None => Arc::clone(&router.limits),
        };
        Ok(Self {
            handshake_timeout: amqp_timeout.unwrap_or(timeout),
            routers: Mutex::new(vec![Arc::clone(&router)]),
            number: router.next_number(),
            decoding: router.decoding,
            router,
            rawsocket,
            websockets,
            amqp,
            pages: transport.pages.clone(),
            allowed_hosts: transport.allowed_hosts.clone(),
            tls: tls_of(&transport.endpoint, directory)?,
            limits,
            connections: AtomicUsize::new(0),
            page_connections: AtomicUsize::new(0),
            page_connections_max,
            rendered: Mutex::default(),
            connections_max: transport.connections_max.unwrap_or(usize::MAX),
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
            emptied: Notify::new(),
        })
    }

    /// A listener for operators: pages, and nothing else.
    pub(crate) fn of_pages(
        router: Arc<Hub>,
        admin: &model::Admin,
        directory: &Path,
    ) -> io::Result<Self> {
        let limits = Arc::clone(&router.limits);
        let page_connections_max = router.page_connections_max;
        Ok(Self {
            handshake_timeout: router.handshake_timeout,
            number: router.next_number(),
            decoding: router.decoding,
            router,
            rawsocket: None,
            websockets: Vec::new(),
            amqp: None,
            pages: admin.pages.clone(),
            allowed_hosts: admin.allowed_hosts.clone(),
            routers: Mutex::default(),
            tls: tls_of(&admin.endpoint, directory)?,
            limits,
            connections: AtomicUsize::new(0),
            page_connections: AtomicUsize::new(0),
            page_connections_max,
            rendered: Mutex::default(),
            connections_max: usize::MAX,
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
            emptied: Notify::new(),
        })
    }

    /// Whether Nagle's algorithm is off; it is, unless a WebSocket here asks for it.
    pub(crate) fn nodelay(&self) -> bool {
        self.websockets
            .iter()
            .all(|endpoint| endpoint.options.options.tcp_nodelay)
    }

    /// Connections at the moment.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// From now on no session is let in, and a GOODBYE ends its connection.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stopped.notify_waiters();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Ends when the listener is stopped.
    pub(crate) async fn until_stopped(&self) {
        let stopped = self.stopped.notified();
        if !self.is_stopping() {
            stopped.await;
        }
    }

    /// Ends when there is no connection. One task may wait, once no more are accepted.
    pub(crate) async fn until_empty(&self) {
        while self.connections() > 0 {
            self.emptied.notified().await;
        }
    }

    /// Counts a connection in; how many there were before, here and at the whole router.
    pub(crate) fn count_in(&self) -> (usize, usize) {
        let here = self.connections.fetch_add(1, Ordering::Relaxed);
        (here, self.router.count_in())
    }

    /// Counts a connection out.
    pub(crate) fn count_out(&self) {
        if self.connections.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.emptied.notify_one();
        }
        self.router.count_out();
    }

    /// Whether a WebSocket is found at `path`.
    pub(crate) fn is_websocket(&self, path: &str) -> bool {
        let is_here = |at: &Option<String>| at.as_deref().is_none_or(|at| at == path);
        self.websockets
            .iter()
            .any(|endpoint| is_here(&endpoint.path))
    }
}

pub(crate) fn tls_of(
    endpoint: &model::Endpoint,
    directory: &Path,
) -> io::Result<Option<Arc<tls::ServerConfig>>> {
    let model::Endpoint::Tcp(model::TcpEndpoint {
        tls: Some(files), ..
    }) = endpoint
    else {
        return Ok(None);
    };
    tls_from(files, directory).map(Some)
}

/// Whether a listener could be opened with these files; the error names the one that is at fault.
pub fn check_tls(files: &model::Tls, directory: &Path) -> io::Result<()> {
    tls_from(files, directory).map(drop)
}

fn tls_from(files: &model::Tls, directory: &Path) -> io::Result<Arc<tls::ServerConfig>> {
    let at = |path: &String| directory.join(path);
    let files = TlsFiles {
        certificate: at(&files.certificate),
        key: at(&files.key),
        chain: files.chain_certificates.iter().map(at).collect(),
        client_authorities: files.client_authorities.iter().map(at).collect(),
    };
    tls::server_config(&files)
}

/// Binds the endpoint, whose peers may take nothing for `stall_max` unless it says otherwise. Needs a tokio context, which then accepts.
pub(crate) fn bind(
    endpoint: &model::Endpoint,
    nodelay: bool,
    mode: Option<u32>,
    directory: &Path,
    stall_max: Duration,
) -> io::Result<Listener> {
    Listener::bind(match endpoint {
        model::Endpoint::Tcp(tcp) => Endpoint::Tcp {
            address: SocketAddr::new(tcp.interface, tcp.port),
            options: TcpOptions {
                backlog: tcp.backlog as i32,
                shared: tcp.shared,
                user_timeout: tcp.user_timeout.unwrap_or(stall_max),
                nodelay,
                ..TcpOptions::default()
            },
        },
        model::Endpoint::Unix { path, backlog } => Endpoint::Unix {
            path: directory.join(path),
            backlog: *backlog as i32,
            mode,
        },
        other => {
            return Err(io::Error::other(format!(
                "endpoint {other:?} is not known here"
            )));
        }
    })
}

/// The path of a Unix endpoint.
pub(crate) fn unix_path(endpoint: &model::Endpoint, directory: &Path) -> Option<PathBuf> {
    match endpoint {
        model::Endpoint::Unix { path, .. } => Some(directory.join(path)),
        _ => None,
    }
}

/// The next connection; waits as long as none can be accepted.
pub(crate) async fn accept(listener: &Listener, workers: &Workers) -> Socket {
    loop {
        match listener.accept().await {
            Ok(socket) => return socket,
            Err(e) => {
                // Mostly a lack of descriptors, which passes when a connection ends.
                report::cannot_accept(&e);
                if is_shortage(&e) && listener.turn_away() {
                    // The next one waits already, and so do other tasks.
                    tokio::task::yield_now().await;
                    continue;
                }
                let pause = async { tokio::time::sleep(Duration::from_millis(100)).await };
                // Only a router that stops cancels it.
                let _ = workers.spawn_keeper(pause).await;
            }
        }
    }
}

/// Accepts conversations for ever, and deals them out to the threads in turn.
pub(crate) async fn serve_all(
    listening: Arc<Listening>,
    listener: Listener,
    workers: Arc<Workers>,
) {
    loop {
        let socket = accept(&listener, &workers).await;
        match Admitted::admit(&listening, &socket) {
            Some(admitted) => workers.spawn(serve(admitted, socket, Arc::clone(&workers))),
            None => counters().count(Counter::ConnectionsRefused),
        }
    }
}

/// One connection, from its first byte to its end.
async fn serve(admitted: Admitted, socket: Socket, workers: Arc<Workers>) {
    counters().count(Counter::ConnectionsOpened);
    let listening = &admitted.listening;
    let Some(connection) = connection(listening, socket) else {
        return;
    };
    let ended = match &listening.amqp {
        None => converse(&admitted, &connection).await,
        Some(amqp) => converse_amqp(&admitted, amqp, &connection).await,
    };
    crosstie_transport::uncork();
    match ended {
        Ended::HandedOver { input } => {
            let kept = Arc::clone(&connection);
            let started = match PagePlace::take(&admitted) {
                Some(place) => workers.spawn_pages(async move {
                    serve_pages(&admitted, &place, &connection, input).await;
                    connection.close();
                }),
                None => return refuse_pages(&connection),
            };
            if let Err(e) = started {
                tracing::error!("cannot start the thread of pages: {e}");
                kept.close();
            }
        }
        // The peer may still read: what it is owed is sent, and the end of our side said.
        Ended::ByPeer { .. } => {
            connection.finish();
            connection.close();
        }
        _ => connection.close(),
    }
}

async fn converse(admitted: &Admitted, connection: &Arc<Connection>) -> Ended {
    let listening = Arc::clone(&admitted.listening);
    let mut conversation = Conversation::new(listening, Arc::clone(connection), admitted.excess);
    let ended = pump(connection, &mut conversation).await;
    conversation.handle_ended(&ended);
    ended
}

/// Boxed, so that the task of a WAMP connection holds no byte for it.
fn converse_amqp<'a>(
    admitted: &'a Admitted,
    endpoint: &Arc<AmqpEndpoint>,
    connection: &'a Arc<Connection>,
) -> Pin<Box<dyn Future<Output = Ended> + Send + 'a>> {
    let listening = Arc::clone(&admitted.listening);
    let endpoint = Arc::clone(endpoint);
    Box::pin(async move {
        let kept = Arc::clone(connection);
        let mut conversation = amqp::Conversation::new(listening, endpoint, kept, admitted.excess);
        let ended = pump(connection, &mut conversation).await;
        conversation.handle_ended(&ended);
        ended
    })
}

fn connection(listening: &Listening, socket: Socket) -> Option<Arc<Connection>> {
    let stage: Option<Box<Mutex<dyn Stage>>> = match &listening.tls {
        None => None,
        Some(config) => match TlsStage::server(Arc::clone(config)) {
            Ok(stage) => Some(Box::new(Mutex::new(stage))),
            Err(e) => {
                tracing::error!("cannot begin TLS: {e}");
                return None;
            }
        },
    };
    Some(Arc::new(Connection::new(
        socket,
        stage,
        Arc::clone(&listening.limits),
    )))
}

/// Plain HTTP, for as long as the peer keeps asking.
async fn serve_pages(
    admitted: &Admitted,
    place: &PagePlace,
    connection: &Arc<Connection>,
    input: Vec<u8>,
) {
    match ConnectionStream::new(Arc::clone(connection), input) {
        Ok(stream) => {
            let listening = Arc::clone(&admitted.listening);
            pages::serve(listening, stream, place.may_stay).await;
        }
        Err(e) => report::peer_fault(connection, "http", &e.to_string()),
    }
}

/// One of the connections that pages are served to, for as long as this lives.
struct PagePlace {
    listening: Arc<Listening>,
    /// The connection may wait for another request.
    may_stay: bool,
}

impl PagePlace {
    /// Takes a place, if there is one. Only half of them are for who stays, so that nobody waits for
    /// those who have said nothing more.
    fn take(admitted: &Admitted) -> Option<Self> {
        let listening = &admitted.listening;
        let before = listening.page_connections.fetch_add(1, Ordering::Relaxed);
        let place = Self {
            listening: Arc::clone(listening),
            may_stay: before < listening.page_connections_max.div_ceil(2)
                && admitted.excess.is_none(),
        };
        (before < listening.page_connections_max).then_some(place)
    }
}

impl Drop for PagePlace {
    fn drop(&mut self) {
        self.listening
            .page_connections
            .fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells a peer that asks for a page to come again.
fn refuse_pages(connection: &Arc<Connection>) {
    counters().count(Counter::PageConnectionsRefused);
    let text = "there are as many connections for pages as are allowed: ask again in a moment";
    let response = reject_response(503, text, &[("Retry-After", "1")]);
    // A new connection has room; one that is gone needs no answer.
    let _ = connection.append(|out| {
        out.extend_from_slice(&response);
        Ok::<(), ()>(())
    });
    connection.finish();
    crosstie_transport::uncork();
    connection.close();
}
