//! A node: every router worker of a configuration, started and stopped together.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_config::{self as model, Config, TesteeKind, TransportKind, Worker};
use crosstie_transport::{Listener, WorkerOptions, Workers};

use crate::listen::{self, Listening};
use crate::router::Router;
use crate::session;
use crate::testee::TesteeTransport;

/// What a node needs to know beside its configuration.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Relative paths of the configuration are relative to this directory.
    pub directory: PathBuf,
    /// How long the first thread of a router polls before it sleeps, where the configuration
    /// asks for it.
    pub busy_poll: Duration,
}

/// A running node.
pub struct Node {
    routers: Vec<Running>,
}

struct Running {
    router: Arc<Router>,
    workers: Arc<Workers>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its own tasks hold the threads, which so would live on after a start that failed.
        self.workers.stop();
    }
}

/// What was started, to be told to whoever started it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Started {
    Realm {
        worker: String,
        realm: String,
    },
    /// A transport, with the URLs that clients reach it by.
    Transport {
        worker: String,
        transport: String,
        urls: Vec<String>,
    },
    /// The operators' listener.
    Admin {
        urls: Vec<String>,
    },
}

/// Why a node did not start; nothing of it runs.
#[derive(Debug)]
pub struct StartError {
    /// What was being started.
    pub what: String,
    pub error: io::Error,
}

impl Node {
    /// Starts everything the configuration names; `started` is told of each part.
    pub fn start(
        config: &Config,
        options: &NodeOptions,
        mut started: impl FnMut(Started),
    ) -> Result<Self, StartError> {
        let mut routers = Vec::new();
        for worker in &config.workers {
            let Worker::Router(worker) = worker else {
                return Err(StartError {
                    what: "a worker".to_owned(),
                    error: io::Error::other("only router workers are known here"),
                });
            };
            routers.push(start_router(worker, &config.limits, options, &mut started)?);
        }
        if let (Some(admin), Some(first)) = (&config.admin, routers.first()) {
            let all = routers
                .iter()
                .map(|running| Arc::clone(&running.router))
                .collect();
            started(start_admin(admin, all, &first.workers, options)?);
        }
        Ok(Self { routers })
    }

    /// Says GOODBYE to every session, waits a bounded time for them to go, and stops.
    pub fn stop(self) {
        for running in &self.routers {
            running.router.stop();
            let router = Arc::clone(&running.router);
            running.workers.spawn_first(async move {
                for realm in router.realms() {
                    realm.peers().iter().for_each(session::say_goodbye);
                }
                router.watch.finish_openings();
                crosstie_transport::uncork();
            });
        }
        for running in self.routers {
            let deadline = Instant::now() + running.router.shutdown_timeout;
            while running.router.conversations() > 0 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
            running.router.watch.close_all();
        }
    }
}

fn start_router(
    worker: &model::RouterWorker,
    limits: &model::Limits,
    options: &NodeOptions,
    started: &mut impl FnMut(Started),
) -> Result<Running, StartError> {
    let mut worker_options = WorkerOptions::default();
    worker_options.threads = worker.threads.unwrap_or(worker_options.threads);
    if worker.busy_poll {
        worker_options.busy_poll = options.busy_poll;
    }
    let workers = Workers::start(worker_options).map_err(|error| StartError {
        what: format!("worker {}", worker.id),
        error,
    })?;
    let workers = Arc::new(workers);
    let router = Arc::new(Router::new(worker, limits));
    let running = Running {
        router: Arc::clone(&router),
        workers: Arc::clone(&workers),
    };
    for realm in router.realms() {
        workers.spawn_keeper(Arc::clone(realm).keep_time());
        started(Started::Realm {
            worker: worker.id.clone(),
            realm: realm.name().to_owned(),
        });
    }
    let watched = Arc::clone(&router);
    workers.spawn_keeper(async move { watched.watch.run().await });
    for transport in &worker.transports {
        let failed = |error| StartError {
            what: format!(
                "transport {} of worker {} at {}",
                transport.id,
                worker.id,
                listen::described(&transport.endpoint, &options.directory)
            ),
            error,
        };
        let urls = start_transport(transport, &router, &workers, options).map_err(failed)?;
        started(Started::Transport {
            worker: worker.id.clone(),
            transport: transport.id.clone(),
            urls,
        });
    }
    Ok(running)
}

/// Listens; returns the URLs that clients reach it by.
fn start_transport(
    transport: &model::Transport,
    router: &Arc<Router>,
    workers: &Arc<Workers>,
    options: &NodeOptions,
) -> io::Result<Vec<String>> {
    let directory = &options.directory;
    let bind =
        |nodelay| workers.enter_first(|| listen::bind(&transport.endpoint, nodelay, directory));
    let threads = Arc::clone(workers);
    if let TransportKind::Testee(testee) = &transport.kind {
        let testee = TesteeTransport::new(&router.id, transport, testee, workers, directory)?;
        let testee = Arc::new(testee);
        let listener = bind(testee.nodelay())?;
        let urls = urls(transport, &listener, options);
        router.add_testee(Arc::clone(&testee));
        let router = Arc::clone(router);
        let admit = move |socket| Some(testee.admit(&router)?.serve(socket));
        workers.spawn_first(listen::accept(listener, threads, admit));
        return Ok(urls);
    }
    let listening = Listening::new(Arc::clone(router), transport, directory)?;
    let listener = bind(listening.nodelay())?;
    let urls = urls(transport, &listener, options);
    workers.spawn_first(listen::serve_all(Arc::new(listening), listener, threads));
    Ok(urls)
}

fn start_admin(
    admin: &model::Admin,
    routers: Vec<Arc<Router>>,
    workers: &Arc<Workers>,
    options: &NodeOptions,
) -> Result<Started, StartError> {
    let failed = |error| StartError {
        what: format!(
            "the admin listener at {}",
            listen::described(&admin.endpoint, &options.directory)
        ),
        error,
    };
    let listening = Listening::of_pages(routers, admin, &options.directory).map_err(failed)?;
    let listener = workers
        .enter_first(|| listen::bind(&admin.endpoint, true, &options.directory))
        .map_err(failed)?;
    let secure = if is_secure(&admin.endpoint) { "s" } else { "" };
    let urls = place(&admin.endpoint, &listener, options)
        .map(|place| vec![place.url(&format!("http{secure}"), "/")])
        .unwrap_or_default();
    workers.spawn_first(listen::serve_all(
        Arc::new(listening),
        listener,
        Arc::clone(workers),
    ));
    Ok(Started::Admin { urls })
}

fn is_secure(endpoint: &model::Endpoint) -> bool {
    matches!(endpoint, model::Endpoint::Tcp(tcp) if tcp.tls.is_some())
}

/// Where a listener was bound.
fn place(endpoint: &model::Endpoint, listener: &Listener, options: &NodeOptions) -> Option<Place> {
    match (
        listen::unix_path(endpoint, &options.directory),
        listener.local_address(),
    ) {
        (Some(path), _) => Some(Place::Unix(path)),
        (None, Ok(Some(address))) => Some(Place::Tcp(address.ip(), address.port())),
        _ => None,
    }
}

/// The URLs that clients reach a transport by, in the form that the client library takes.
fn urls(transport: &model::Transport, listener: &Listener, options: &NodeOptions) -> Vec<String> {
    let secure = if is_secure(&transport.endpoint) {
        "s"
    } else {
        ""
    };
    let Some(place) = place(&transport.endpoint, listener, options) else {
        return Vec::new();
    };
    let rawsocket = || place.url(&format!("rs{secure}"), "");
    let websocket = |path: &str| place.url(&format!("ws{secure}"), path);
    match &transport.kind {
        TransportKind::RawSocket(_) => vec![rawsocket()],
        TransportKind::WebSocket(options) => {
            vec![options.url.clone().unwrap_or_else(|| websocket("/"))]
        }
        TransportKind::Universal {
            rawsocket: raw,
            websocket: by_path,
        } => {
            let mut urls: Vec<_> = by_path.iter().map(|(path, _)| websocket(path)).collect();
            urls.extend(raw.as_ref().map(|_| rawsocket()));
            urls
        }
        TransportKind::Testee(testee) => vec![match &testee.kind {
            TesteeKind::WebSocket(options) => options.url.clone().unwrap_or_else(|| websocket("/")),
            _ => place.stream_url(is_secure(&transport.endpoint)),
        }],
        _ => Vec::new(),
    }
}

enum Place {
    Tcp(IpAddr, u16),
    Unix(PathBuf),
}

impl Place {
    /// Of plain octets.
    fn stream_url(&self, secure: bool) -> String {
        match self {
            Self::Tcp(..) if secure => self.url("tls", ""),
            Self::Tcp(..) => self.url("tcp", ""),
            Self::Unix(socket) => format!("unix://{}", socket.display()),
        }
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        match self {
            Self::Tcp(IpAddr::V6(ip), port) => format!("{scheme}://[{ip}]:{port}{path}"),
            Self::Tcp(ip, port) => format!("{scheme}://{ip}:{port}{path}"),
            Self::Unix(socket) if matches!(path, "" | "/") => {
                format!("{scheme}+unix://{}", socket.display())
            }
            Self::Unix(socket) => format!("{scheme}+unix://{}:{path}", socket.display()),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start {}", self.what)
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
