//! Worker processes: the sockets by which they share a port, and the work of one of them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_testee::{Statistics, Testee, accept};
use crosstie_transport::{Endpoint, Listener, TcpOptions, WorkerOptions, Workers, bind_group};

use super::periods::Periods;

/// The address of a testee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Listening sockets, one for each worker.
pub(super) struct Sockets {
    /// Their address, with the port that the kernel chose, if it had to.
    pub(super) place: Place,
    pub(super) sockets: Vec<OwnedFd>,
    /// The process that binds a path removes it at the end.
    _path: Option<Listener>,
}

const BACKLOG: i32 = 4096;

impl Sockets {
    /// Binds them all at once, so that clients need not wait for the workers. Needs a tokio context.
    pub(super) fn bind(place: &Place, count: usize) -> io::Result<Self> {
        match place {
            Place::Tcp(address) => {
                let options = TcpOptions {
                    backlog: BACKLOG,
                    // A peer may ignore its answers, or the connection, for as long as it wants; a held connection
                    // costs no timer then.
                    user_timeout: Duration::ZERO,
                    keepalive: Duration::ZERO,
                    ..TcpOptions::default()
                };
                let (address, sockets) = bind_group(*address, &options, count)?;
                Ok(Self {
                    place: Place::Tcp(address),
                    sockets,
                    _path: None,
                })
            }
            Place::Unix(path) => {
                let listener = Listener::bind(Endpoint::Unix {
                    path: path.clone(),
                    backlog: BACKLOG,
                    mode: None,
                })?;
                let sockets = (0..count).map(|_| listener.duplicate());
                Ok(Self {
                    place: place.clone(),
                    sockets: sockets.collect::<io::Result<_>>()?,
                    _path: Some(listener),
                })
            }
        }
    }
}

/// One worker: a thread that serves the connections of a socket.
pub(super) struct WorkerProcess {
    workers: Arc<Workers>,
    statistics: Arc<Statistics>,
}

impl WorkerProcess {
    /// Begins to accept.
    pub(super) fn start(testee: Testee, socket: OwnedFd) -> io::Result<Self> {
        let options = WorkerOptions {
            threads: 1,
            // Accepting a connection and handling its first bytes are two.
            inputs_per_look: 8,
            ..WorkerOptions::default()
        };
        let workers = Arc::new(Workers::start(options)?);
        let statistics = Arc::default();
        let listener = workers.enter_first(|| Listener::adopt(socket))?;
        workers.spawn_first(accept(
            Arc::new(testee),
            listener,
            Arc::clone(&workers),
            None,
            Arc::clone(&statistics),
        ));
        Ok(Self {
            workers,
            statistics,
        })
    }

    /// Passes a block to `print` after each interval, forever.
    pub(super) async fn report(&self, interval: Duration, mut print: impl FnMut(&str)) {
        let mut periods = Periods::default();
        let mut begun = Instant::now();
        let process = std::process::id();
        let mut ticks = tokio::time::interval(interval);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let lasted = now - std::mem::replace(&mut begun, now);
            let statistics = &self.statistics;
            let (connected, totals) = (statistics.connected(), statistics.totals());
            print(&periods.block(process, connected, totals, lasted));
        }
    }

    /// Closes everything.
    pub(super) fn stop(&self) {
        self.workers.stop();
    }
}
