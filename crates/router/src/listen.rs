//! Listeners: the state that all connections of one share.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crosstie_auth::wamp::Methods;
use crosstie_config::{self as model, Admits, Allowed, Page, RawSocket, TransportKind, WebSocket};
use crosstie_routing::RoleLimits;
use crosstie_transport::tls;
use crosstie_transport::{Connection, ConnectionLimits};
use crosstie_wamp::codec;
use crosstie_wamp::framing::websocket::{self, Request};
use crosstie_web::http2;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::admission::Excess;
use crate::amqp::AmqpEndpoint;
use crate::origins::host_may_enter;
use crate::rendered::Rendered;
use crate::router_state::RouterState;
use crate::tls_files::tls_of;
use crate::wamp::authids::Authids;
use crate::wamp::endpoints::{RawSocketEndpoint, WebSocketEndpoint};
use crate::wamp::live_methods::LiveMethods;
use crate::wamp::probes::{FAVICON, WEBSOCKET_STATUS};
use crate::wamp::rate::Allowance;

/// What all connections of one listener share.
pub(crate) struct Listening {
    pub(crate) router: Arc<RouterState>,
    /// The transport's number in the router.
    pub(crate) number: u32,
    pub(crate) decoding: codec::Limits,
    pub(crate) rawsocket: Option<RawSocketEndpoint>,
    pub(crate) websockets: Vec<WebSocketEndpoint>,
    /// Then the listener speaks nothing else.
    pub(crate) amqp: Option<Arc<AmqpEndpoint>>,
    pub(crate) pages: Vec<Page>,
    /// What answers other requests.
    pub(crate) http: Option<Arc<dyn Http>>,
    pub(crate) allowed_hosts: Allowed,
    /// What the pages tell of; an operators' listener tells of every router.
    pub(crate) routers: Mutex<Vec<Arc<RouterState>>>,
    /// How long a connection may take to become a session.
    pub(crate) handshake_timeout: Duration,
    pub(crate) tls: Option<Arc<tls::ServerConfig>>,
    pub(crate) limits: Arc<ConnectionLimits>,
    connections: AtomicUsize,
    pub(crate) page_connections: AtomicUsize,
    pub(crate) page_connections_max: usize,
    /// Pages that took time to render.
    pub(crate) rendered: Mutex<Rendered>,
    pub(crate) connections_max: usize,
    /// How fast they may come.
    connection_rate: Option<Mutex<Allowance>>,
    /// What their sessions may have.
    pub(crate) session_limits: RoleLimits,
    /// Where sessions of an authid are bounded.
    pub(crate) authids: Option<Authids>,
    /// The roles that may join through it, unless all may.
    pub(crate) admits: Option<Admits>,
    stopping: AtomicBool,
    /// Every session was sent GOODBYE.
    goodbye_said: AtomicBool,
    /// It stops; its last connection has ended.
    stopped: Notify,
    emptied: Notify,
}

/// Makes what answers, for a transport of that router in that node directory.
pub(crate) type MakeHttp = fn(&model::Web, &Arc<RouterState>, &Path) -> io::Result<Arc<dyn Http>>;

/// What a transport serves.
#[derive(Default)]
struct Endpoints {
    rawsocket: Option<RawSocketEndpoint>,
    websockets: Vec<WebSocketEndpoint>,
    amqp: Option<Arc<AmqpEndpoint>>,
}

impl Endpoints {
    fn of(
        transport: &model::Transport,
        router: &Arc<RouterState>,
        directory: &Path,
    ) -> io::Result<Self> {
        let live = |auth: &Arc<Methods>| {
            LiveMethods::start(auth, directory, &router.door, router.revoking())
        };
        let rawsocket = |options: &RawSocket| {
            let auth = live(&options.auth)?;
            io::Result::Ok(RawSocketEndpoint::new(options, auth))
        };
        let websocket = |path: Option<&String>, options: &WebSocket| {
            let auth = live(&options.auth)?;
            let endpoint = WebSocketEndpoint::new(path, options, auth, directory)?;
            router.jars.add(endpoint.cookies.as_ref());
            io::Result::Ok(endpoint)
        };
        let services = |web: &model::Web| {
            let service = |(path, options): (Option<String>, &WebSocket)| {
                let mut endpoint = websocket(path.as_ref(), options)?;
                endpoint.is_service = true;
                io::Result::Ok(endpoint)
            };
            let endpoints = web.websockets().into_iter().map(service);
            endpoints.collect::<io::Result<Vec<_>>>()
        };
        let mut endpoints = Self::default();
        match &transport.kind {
            TransportKind::RawSocket(options) => endpoints.rawsocket = Some(rawsocket(options)?),
            TransportKind::WebSocket(options) => {
                endpoints.websockets = vec![websocket(None, options)?];
            }
            TransportKind::Universal {
                rawsocket: raw,
                websocket: paths,
                web,
            } => {
                endpoints.rawsocket = raw.as_ref().map(rawsocket).transpose()?;
                let websockets = paths.iter().map(|(path, o)| websocket(Some(path), o));
                endpoints.websockets = websockets.collect::<io::Result<_>>()?;
                let of_web = web.iter().map(services).collect::<io::Result<Vec<_>>>()?;
                endpoints.websockets.extend(of_web.into_iter().flatten());
            }
            TransportKind::Web(web) => endpoints.websockets = services(web)?,
            TransportKind::Amqp(options) => {
                let no_broker = || io::Error::other("the worker's AMQP has not been started");
                let broker = router.amqp().ok_or_else(no_broker)?;
                endpoints.amqp = Some(Arc::new(AmqpEndpoint {
                    options: options.clone(),
                    broker: Arc::clone(broker),
                    cluster: None,
                }));
            }
            // What a configuration holds may be secret.
            _ => {
                return Err(io::Error::other(
                    "a transport of this type is not known here",
                ));
            }
        }
        Ok(endpoints)
    }
}

impl Listening {
    pub(crate) fn new(
        router: Arc<RouterState>,
        transport: &model::Transport,
        directory: &Path,
    ) -> io::Result<Self> {
        let Endpoints {
            rawsocket,
            websockets,
            amqp,
        } = Endpoints::of(transport, &router, directory)?;
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
        let rate = transport.limits.connections_per_second_max;
        let http = web_of(&transport.kind).map(|web| (router.make_http)(web, &router, directory));
        let http = http.transpose()?;
        let protocols = http.as_ref().map_or(&[][..], |_| HTTP);
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
            http,
            allowed_hosts: transport.allowed_hosts.clone(),
            tls: tls_of(&transport.endpoint, directory, protocols)?,
            limits,
            connections: AtomicUsize::new(0),
            page_connections: AtomicUsize::new(0),
            page_connections_max,
            rendered: Mutex::default(),
            connections_max: transport.connections_max.unwrap_or(usize::MAX),
            connection_rate: rate.map(|rate| Mutex::new(Allowance::new(rate, Instant::now()))),
            session_limits: transport.limits.each,
            authids: transport.limits.authid_sessions_max.map(Authids::new),
            admits: transport.admits.clone(),
            stopping: AtomicBool::new(false),
            goodbye_said: AtomicBool::new(false),
            stopped: Notify::new(),
            emptied: Notify::new(),
        })
    }

    /// A listener for operators: pages, and nothing else.
    pub(crate) fn of_pages(
        router: Arc<RouterState>,
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
            http: None,
            allowed_hosts: admin.allowed_hosts.clone(),
            routers: Mutex::default(),
            tls: tls_of(&admin.endpoint, directory, &[])?,
            limits,
            connections: AtomicUsize::new(0),
            page_connections: AtomicUsize::new(0),
            page_connections_max,
            rendered: Mutex::default(),
            connections_max: usize::MAX,
            connection_rate: None,
            session_limits: RoleLimits::default(),
            authids: None,
            admits: None,
            stopping: AtomicBool::new(false),
            goodbye_said: AtomicBool::new(false),
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

    /// Notes that every session of this listener is sent GOODBYE.
    pub(crate) fn note_goodbye(&self) {
        self.goodbye_said.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_said_goodbye(&self) -> bool {
        self.goodbye_said.load(Ordering::Relaxed)
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

    /// Whether connections come faster than they may.
    pub(crate) fn is_too_fast(&self) -> bool {
        let rate = self.connection_rate.as_ref();
        rate.is_some_and(|rate| !rate.lock().try_take(Instant::now()))
    }

    /// Counts a connection out.
    pub(crate) fn count_out(&self) {
        if self.connections.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.emptied.notify_one();
        }
        self.router.count_out();
    }

    /// Whether a connection that has begun so speaks HTTP/2, as far as can be told, and if so, whether its beginning is
    /// there as a whole.
    pub(crate) fn begins_http2(&self, input: &[u8]) -> Option<bool> {
        let may = self.http.is_some() && http2::may_begin(input);
        may.then_some(input.len() >= http2::PREFACE.len())
    }

    /// Whether a WebSocket at that path is not the listener's own to open. What stands beside the web services comes
    /// before them.
    pub(crate) fn passes_websocket(&self, path: &str) -> bool {
        let is_own = |endpoint: &WebSocketEndpoint| !endpoint.is_service && endpoint.is_at(path);
        let http = self.http.as_ref();
        http.is_some_and(|http| http.takes_websocket(path)) && !self.websockets.iter().any(is_own)
    }

    /// Whether a request that opens no WebSocket is answered by pages or web services. Web services are for
    /// connections within the bounds; pages are for operators, who want to know why there are so many.
    pub(crate) fn takes_http(&self, excess: Option<Excess>) -> bool {
        match (&self.http, excess) {
            (Some(_), excess) => excess.is_none(),
            (None, _) => !self.pages.is_empty(),
        }
    }

    /// The answer to any other request: its status, and the reason.
    pub(crate) fn answer(&self, request: &Request<'_>, excess: Option<Excess>) -> (u16, String) {
        if let Some(excess) = excess {
            return (503, excess.text().to_owned());
        }
        if let Err(reason) = host_may_enter(request.header("Host"), &self.allowed_hosts) {
            return (403, reason);
        }
        let found = self.websocket_at(request.path());
        match found.map(|endpoint| endpoint.shows_status(request.method)) {
            Some(true) if self.router.is_stopping() => (503, "shutting down".to_owned()),
            Some(true) => (200, WEBSOCKET_STATUS.to_owned()),
            None if request.path() == FAVICON => (204, String::new()),
            None if !self.websockets.is_empty() => {
                (404, format!("no WebSocket at {}", request.path()))
            }
            _ => {
                let e = websocket::HandshakeError::NotUpgrade;
                (e.status(), e.to_string())
            }
        }
    }

    /// The WebSocket at `path`.
    pub(crate) fn websocket_at(&self, path: &str) -> Option<&WebSocketEndpoint> {
        self.websockets.iter().find(|endpoint| endpoint.is_at(path))
    }
}

/// What a listener of web services speaks over TLS, in the names of ALPN.
const HTTP: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The web services of a transport.
fn web_of(kind: &TransportKind) -> Option<&model::Web> {
    match kind {
        TransportKind::Web(web) => Some(web),
        TransportKind::Universal { web, .. } => web.as_ref(),
        _ => None,
    }
}

/// What answers the HTTP requests of a listener of web services. The listener knows no more of them: they reach
/// realms as its own conversations do.
pub(crate) trait Http: Send + Sync {
    /// Whether who asks for a WebSocket at that path is left to the web services.
    fn takes_websocket(&self, path: &str) -> bool;

    /// Answers the requests of one connection, of which these bytes have come, until it ends.
    fn serve(
        self: Arc<Self>,
        listening: Arc<Listening>,
        connection: Arc<Connection>,
        input: Vec<u8>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
