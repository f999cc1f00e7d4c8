//! A node inside another program: for tests, and for programs that bring their router with them.
//!
//! ```
//! use crosstie_client::Client;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = crosstie_node::test_node()?;
//! let client = Client::connect(node.url()).await?;
//! let sessions = client.call("wamp.session.count", ()).await?;
//! assert_eq!(sessions.argument::<u32>(0)?, 1);
//! client.leave().await;
//! node.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! The node runs in threads of its own and shares nothing with other nodes of the process. It installs no signal
//! handler, starts no process, and sends its log lines to the `tracing` subscriber of the process, if there is one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crosstie_config::{self as config, Config, Endpoint, Format, Source, Worker as Definition};
use crosstie_router::TransportStatus;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};

use crate::node::Node;
use crate::outcome::Outcome;
use crate::service_manager::ServiceManager;
use crate::start::{Options, StartError};

/// The parameters of an [`EmbeddedNode`].
///
/// ```
/// use crosstie_node::{EmbeddedNode, EmbeddedOptions};
///
/// let options = EmbeddedOptions::from_json(
///     r#"{
///         "version": 2,
///         "workers": [{
///             "type": "router",
///             "realms": [{"name": "plant", "roles": [{"name": "anonymous", "permissions": [
///                 {"uri": "*", "allow": {"call": true, "register": true}}
///             ]}]}],
///             "transports": [{"type": "rawsocket", "endpoint": {"type": "tcp", "port": 0}}]
///         }]
///     }"#,
/// )?;
/// let node = EmbeddedNode::start(options)?;
/// assert!(node.url().starts_with("rs://"));
/// # Ok::<(), crosstie_node::EmbeddedError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The configuration. A TCP port of 0 is any free port. Default: that of [`test_node`].
    pub config: Config,
    /// The base of the configuration's relative paths, for instance of a store. Default: a temporary directory, which is
    /// removed when the node has ended.
    pub directory: Option<PathBuf>,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self::of(on_free_ports(Config::embedded_default()))
    }
}

impl EmbeddedOptions {
    /// A node of this configuration, for instance one that [`config::load`](crosstie_config::load) has read.
    pub fn of(config: Config) -> Self {
        Self {
            config,
            directory: None,
        }
    }

    /// A node of a configuration in JSON; an error has each problem with its place.
    pub fn from_json(text: &str) -> Result<Self, EmbeddedError> {
        Self::parse(text, Format::Json)
    }

    /// A node of a configuration in YAML; an error has each problem with its place.
    pub fn from_yaml(text: &str) -> Result<Self, EmbeddedError> {
        Self::parse(text, Format::Yaml)
    }

    fn parse(text: &str, format: Format) -> Result<Self, EmbeddedError> {
        let source = Source::new("configuration".to_owned(), text.to_owned());
        match config::parse(&source, format, &|name| std::env::var(name).ok()) {
            Ok((config, _)) => Ok(Self::of(config)),
            Err(problems) => Err(EmbeddedError::Configuration(config::render(
                &problems, &source,
            ))),
        }
    }
}

/// Why an [`EmbeddedNode`] did not start; nothing of it runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// The configuration is wrong; the text has a line for each problem.
    #[error("{0}")]
    Configuration(String),
    /// A worker that runs in a process of its own, or a router with components that do.
    #[error(
        "worker '{worker}' needs a process or a management realm: a node inside another program has only routers, \
         without components"
    )]
    NeedsProcess {
        /// The worker's id.
        worker: String,
    },
    /// The temporary directory could not be made, or the node's thread not be started.
    #[error("cannot start a node inside this program: {0}")]
    Io(#[from] io::Error),
    /// A part of the node did not start, for instance because its port is in use.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A node inside this program. Its end is orderly: listeners close, open calls are answered, clients are sent away,
/// stores are closed.
///
/// [`stop`](Self::stop) awaits that end. Dropping the node does the same and blocks the thread meanwhile. If a client is
/// still connected that runs on the blocked thread, that takes two seconds, or `limits.shutdown_timeout_ms` if that is less.
#[derive(Debug)]
pub struct EmbeddedNode {
    transports: Vec<Listening>,
    directory: PathBuf,
    /// Dropping it has the node end.
    stopping: Option<oneshot::Sender<()>>,
    outcome: watch::Receiver<Option<Outcome>>,
    thread: Option<JoinHandle<()>>,
}

/// The addresses of a transport.
#[derive(Debug)]
struct Listening {
    id: String,
    urls: Vec<String>,
    pages: Vec<String>,
}

/// Starts a node for tests: `realm1`, in which anonymous clients may do everything, and AMQP for `guest`, each on a free
/// port of the loopback interface. Its files are in a temporary directory.
///
/// A start takes some milliseconds, so that each test can have a node of its own. At the end, open calls and connected
/// clients have 0.2 s.
pub fn test_node() -> Result<EmbeddedNode, EmbeddedError> {
    EmbeddedNode::start(EmbeddedOptions::default())
}

impl EmbeddedNode {
    /// Starts a node. When this returns, every transport listens.
    ///
    /// It blocks for as long as the start takes, and may be called inside and outside of a tokio runtime.
    pub fn start(options: EmbeddedOptions) -> Result<Self, EmbeddedError> {
        let EmbeddedOptions { config, directory } = options;
        let temporary = match directory {
            Some(_) => None,
            None => Some(TempDir::with_prefix("crosstie-")?),
        };
        let temporary_path = temporary.as_ref().map(|made| made.path().to_owned());
        let directory = directory.or(temporary_path).unwrap_or_default();
        let options = options_in(&directory);
        check(&config)?;
        let (stopping, stopped) = oneshot::channel();
        let (tells_outcome, outcome) = watch::channel(None);
        let (tells_start, start) = mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = thread::Builder::new().name("crosstie-node".to_owned());
        let thread = thread.spawn(move || {
            let ended = runtime.block_on(run(config, options, &tells_start, stopped));
            drop(runtime);
            // Whoever awaits the end finds nothing left of it.
            drop(temporary);
            tells_outcome.send_replace(ended);
        })?;
        // The thread answers in any case, unless it panics.
        let started = start
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("its thread has panicked").into()));
        match started {
            Ok(transports) => Ok(Self {
                transports,
                directory,
                stopping: Some(stopping),
                outcome,
                thread: Some(thread),
            }),
            Err(error) => {
                let _ = thread.join();
                Err(error)
            }
        }
    }

    /// The first URL for WAMP clients; empty if no transport has one.
    pub fn url(&self) -> &str {
        let schemes = ["ws://", "wss://", "rs://", "rss://", "ws+unix:", "rs+unix:"];
        self.url_of(&schemes)
    }

    /// The first URL for AMQP clients; empty if no transport has one.
    pub fn amqp_url(&self) -> &str {
        self.url_of(&["amqp://", "amqps://"])
    }

    /// The URLs for clients, in the order of the configuration.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        let urls = self.transports.iter().flat_map(|own| &own.urls);
        urls.map(String::as_str)
    }

    /// The URLs of the transport with this id. Transports without a configured id are `transport1`, `transport2`, ….
    pub fn urls_of(&self, transport: &str) -> impl Iterator<Item = &str> {
        let found = self.transports.iter().find(move |own| own.id == transport);
        let urls = found.into_iter().flat_map(|own| &own.urls);
        urls.map(String::as_str)
    }

    /// The URLs of the pages for browsers, of health and of metrics.
    pub fn pages(&self) -> impl Iterator<Item = &str> {
        let pages = self.transports.iter().flat_map(|own| &own.pages);
        pages.map(String::as_str)
    }

    /// The base of the configuration's relative paths.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Stops the node in order, and waits for its end.
    pub async fn stop(mut self) -> Outcome {
        self.stopping = None;
        let outcome = self.ended().await;
        self.join();
        outcome
    }

    /// Waits until the node has ended by itself, as its shutdown triggers have it.
    pub async fn ended(&self) -> Outcome {
        let mut outcome = self.outcome.clone();
        let ended = outcome.wait_for(Option::is_some).await;
        // Without an outcome, the node's thread has panicked.
        ended
            .ok()
            .and_then(|outcome| *outcome)
            .unwrap_or(Outcome::WithFailure)
    }

    fn url_of(&self, schemes: &[&str]) -> &str {
        let is_such = |url: &&str| schemes.iter().any(|scheme| url.starts_with(scheme));
        self.urls().find(is_such).unwrap_or_default()
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for EmbeddedNode {
    fn drop(&mut self) {
        self.stopping = None;
        self.join();
    }
}

/// The name of the request in the log line that begins a shutdown.
const STOP: &str = "its program's request to stop";

/// Runs a node until it ends; `None` if it has not started.
async fn run(
    config: Config,
    options: Options,
    tells_start: &mpsc::SyncSender<Result<Vec<Listening>, EmbeddedError>>,
    stopped: oneshot::Receiver<()>,
) -> Option<Outcome> {
    let node = match Node::start(config, options).await {
        Ok(node) => node,
        Err(error) => {
            // The caller of `start` waits for it.
            let _ = tells_start.send(Err(error.into()));
            return None;
        }
    };
    let transports = node
        .routers()
        .into_iter()
        .flat_map(|router| router.transports());
    let listening = transports.map(|transport: TransportStatus| Listening {
        id: transport.id,
        urls: transport.urls,
        pages: transport.pages,
    });
    let _ = tells_start.send(Ok(listening.collect()));
    let mut stopped = Some(stopped);
    let outcome = node.run(async || {
        if let Some(stop) = &mut stopped {
            // The sender is only ever dropped.
            let _ = stop.await;
        } else {
            std::future::pending::<()>().await;
        }
        stopped = None;
        STOP
    });
    Some(outcome.await)
}

fn options_in(directory: &Path) -> Options {
    Options {
        directory: directory.to_owned(),
        private: None,
        management: None,
        moving_transports: Vec::new(),
        executable: None,
        version: env!("CARGO_PKG_VERSION"),
        key: None,
        loglevel: "info",
        set_loglevel: None,
        read_log: None,
        busy_poll: Duration::ZERO,
        accepts_loss: false,
        shutdown_after: None,
        manager: ServiceManager::default(),
        occupied: None,
        takeover: None,
        reload: None,
    }
}

/// Rejects workers that need the hidden commands of Crosstie's own program, or the management realm.
fn check(config: &Config) -> Result<(), EmbeddedError> {
    let is_thread = |definition: &&Definition| match definition {
        Definition::Router(router) => router.components.is_empty(),
        Definition::WebSocketTestee(_) => true,
        _ => false,
    };
    let mut workers = config.workers.iter();
    match workers.find(|definition| !is_thread(definition)) {
        None => Ok(()),
        Some(definition) => Err(EmbeddedError::NeedsProcess {
            worker: definition.id().to_owned(),
        }),
    }
}

/// The time of open calls and connected clients at the stop of [`test_node`]. Clients that run on a blocked thread cannot
/// leave, and each test would wait for them.
const TEST_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

/// The embedded default without its Unix socket, on ports that the system chooses, and with one thread for each router:
/// tests run beside each other.
fn on_free_ports(mut config: Config) -> Config {
    config.limits.shutdown_timeout = TEST_SHUTDOWN_TIMEOUT;
    // It leads to the management realm, which such a node has not.
    config.console = None;
    for worker in &mut config.workers {
        let Definition::Router(router) = worker else {
            continue;
        };
        router.threads = Some(1);
        router.transports.retain_mut(|transport| {
            let Endpoint::Tcp(tcp) = &mut transport.endpoint else {
                return false;
            };
            (tcp.port, tcp.port_last) = (0, None);
            true
        });
    }
    config
}
