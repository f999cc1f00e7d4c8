//! Connections of a testee, from their acceptance to their end.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crosstie_transport::tls::{ServerConfig, TlsStage};
use crosstie_transport::{
    Account, Connection, ConnectionLimits, Ended, Listener, Socket, Stage, StageError, Workers,
    pump,
};
use parking_lot::Mutex;
use tracing::warn;

use crate::streams::{Chargen, Discard, Echo};
use crate::websocket::WebSocketEcho;
use crate::{Mode, Statistics, Testee, streams};

/// The shared state of a listener's connections.
pub struct Serving {
    pub(crate) testee: Arc<Testee>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) statistics: Arc<Statistics>,
    tls: Option<Arc<ServerConfig>>,
    limits: Arc<ConnectionLimits>,
}

/// A peer that takes none of the last bytes for so long is dropped.
const STALL_MAX: Duration = Duration::from_secs(30);

/// The interval of checks on a peer that still has bytes to take.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The time for a peer to close its side after our Close.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The pause of accepting after a lack of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Serving {
    pub fn new(
        testee: Arc<Testee>,
        workers: Arc<Workers>,
        tls: Option<Arc<ServerConfig>>,
        statistics: Arc<Statistics>,
    ) -> Arc<Self> {
        // Nothing is ever refused: the queue is bounded by the answers to one input, because the next is not read
        // before they have been sent.
        let limits = ConnectionLimits {
            queue_bytes_max: usize::MAX,
            stall_max: STALL_MAX,
            message_max: Duration::MAX,
            bytes_per_second_min: 0,
            account: Arc::new(Account::new(usize::MAX)),
        };
        Arc::new(Self {
            testee,
            workers,
            statistics,
            tls,
            limits: Arc::new(limits),
        })
    }

    fn connection(&self, socket: Socket) -> Result<Arc<Connection>, StageError> {
        let stage: Option<Box<Mutex<dyn Stage>>> = match &self.tls {
            None => None,
            Some(config) => Some(Box::new(Mutex::new(TlsStage::server(Arc::clone(config))?))),
        };
        let connection = Connection::new(socket, stage, Arc::clone(&self.limits));
        let meter = Arc::clone(&self.statistics.wire);
        Ok(Arc::new(connection.with_meter(meter)))
    }

    /// Ends a connection after so long, if it still exists.
    pub(crate) fn close_later(&self, connection: &Arc<Connection>) {
        let connection = Arc::downgrade(connection);
        self.workers.spawn_keeper(async move {
            tokio::time::sleep(CLOSING_MAX).await;
            if let Some(connection) = connection.upgrade() {
                connection.close();
            }
        });
    }
}

pub(crate) async fn accept(serving: Arc<Serving>, listener: Listener) {
    loop {
        match listener.accept().await {
            Ok(socket) => {
                let served = serve(Arc::clone(&serving), socket);
                serving.workers.spawn(async {
                    served.await;
                });
            }
            Err(e) => {
                // Mostly a lack of descriptors, which passes when a connection ends.
                warn!("cannot accept a connection, trying again: {e}");
                let pause = async { tokio::time::sleep(ACCEPT_PAUSE).await };
                // Only workers that stop cancel it.
                let _ = serving.workers.spawn_keeper(pause).await;
            }
        }
    }
}

/// One connection, from its first byte to its end.
pub async fn serve(serving: Arc<Serving>, socket: Socket) -> Served {
    let connection = match serving.connection(socket) {
        Ok(connection) => connection,
        Err(e) => return Served::Fault(e.to_string()),
    };
    let mut fault = None;
    let ended = match &*serving.testee {
        Testee::WebSocket(_) => {
            let mut echo = WebSocketEcho::new(&connection, &serving);
            let ended = pump(&connection, &mut echo).await;
            fault = echo.into_fault();
            ended
        }
        Testee::Stream(mode) => {
            let _connected = streams::Connected::new(&serving.statistics);
            match mode {
                Mode::Echo => pump(&connection, &mut Echo::new(&connection, &serving)).await,
                Mode::Discard => pump(&connection, &mut Discard).await,
                Mode::Chargen => {
                    let generator = Chargen::new(&connection);
                    tokio::spawn(generator.run());
                    pump(&connection, &mut Discard).await
                }
            }
        }
    };
    end(&serving, connection, &ended);
    match (fault, ended) {
        (Some(fault), _) => Served::Fault(fault.into_string()),
        (None, Ended::StageFailed(e)) => Served::Fault(e.to_string()),
        (None, _) => Served::Ended,
    }
}

/// The result of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Either side ended it, in order or not.
    Ended,
    /// The peer violated its protocol.
    Fault(String),
}

impl Served {
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("ended"),
            Self::Fault(fault) => f.write_str(fault),
        }
    }
}

/// The peer has ended its stream: queued bytes are still sent.
fn end(serving: &Serving, connection: Arc<Connection>, ended: &Ended) {
    if !matches!(ended, Ended::ByPeer { .. } | Ended::ByProtocol) {
        return connection.close();
    }
    // As the last reference, dropping the connection closes it with one system call less.
    if Arc::strong_count(&connection) == 1 && serving.tls.is_none() {
        return;
    }
    connection.finish();
    if connection.queued_bytes() > 0 {
        let connection = Arc::downgrade(&connection);
        serving.workers.spawn_keeper(close_when_stalled(connection));
    }
}

async fn close_when_stalled(connection: Weak<Connection>) {
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        match connection.upgrade() {
            None => return,
            Some(connection) if connection.is_stalled() => return connection.close(),
            Some(_) => {}
        }
    }
}
