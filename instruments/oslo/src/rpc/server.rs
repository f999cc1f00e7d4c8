//! A server: consumes a topic's requests, calls an endpoint, sends replies.
//!
//! A request is acknowledged before it is dispatched, as in oslo.messaging: if the server dies while it works, the
//! caller's call times out, and nothing is done twice.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crosstie_amqp::method::QueueDelete;

use super::reply_sender::ReplySender;
use super::service::Service;
use super::{CHANNEL, Endpoint, Target, consumer};
use crate::identifier::Identifiers;
use crosstie_amqp_client::TransportUrl;
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions};

/// Ends a server in order, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// The reason why a server cannot continue.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    Connection(ConnectionError),
    /// The broker cancelled the consumer, mostly because the queue was deleted.
    Cancelled {
        consumer_tag: String,
    },
    /// The system has no random bytes.
    Chance(getrandom::Error),
}

/// A server's reconnection after losing its broker: at once, and then with doubling delays.
#[derive(Clone, Debug)]
pub struct Reconnect {
    /// After the first failed attempt.
    pub delay: Duration,
    pub delay_max: Duration,
}

/// A server with its queues and consumers.
pub struct RpcServer {
    url: TransportUrl,
    options: ConnectionOptions,
    reconnect: Option<Reconnect>,
    connection: Connection,
    replies: ReplySender,
    target: Target,
    fanout_queue: String,
    on_complaint: Box<dyn Fn(&str) + Sync>,
}

impl RpcServer {
    /// Connects and creates the queues of `target`, whose `server` is the server's name. `on_complaint` gets errors
    /// that do not end the server.
    pub fn open(
        url: &TransportUrl,
        target: Target,
        options: &ConnectionOptions,
        on_complaint: impl Fn(&str) + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let mut identifiers = Identifiers::new().map_err(ServerError::Chance)?;
        let fanout_queue = format!("{}_fanout_{}", target.topic, identifiers.draw());
        let connection = consumer::open(url, options, &target, &fanout_queue)?;
        Ok(Self {
            url: url.clone(),
            options: options.clone(),
            reconnect: Some(Reconnect::default()),
            connection,
            replies: ReplySender::new(url, options, identifiers),
            target,
            fanout_queue,
            on_complaint: Box::new(on_complaint),
        })
    }

    /// Sets the reconnection; without it a lost broker ends the server.
    pub fn with_reconnect(self, reconnect: Option<Reconnect>) -> Self {
        Self { reconnect, ..self }
    }

    /// Serves until a stop request; then stops deliveries, finishes the accepted requests, and closes in order.
    pub fn run(self, endpoint: &impl Endpoint, stop: &Stop) -> Result<(), ServerError> {
        let open = || consumer::open(&self.url, &self.options, &self.target, &self.fanout_queue);
        let (at_work, at_work_seen) = channel();
        let serving = Service {
            replies: &self.replies,
            endpoint,
            target: &self.target,
            complain: self.on_complaint.as_ref(),
            stop,
            reconnect: self.reconnect.as_ref(),
            open: &open,
            slow: AtomicUsize::new(0),
            at_work,
        };
        // Workers that are still busy at the end are awaited.
        let left = thread::scope(|scope| serving.serve(scope, self.connection, at_work_seen))?;
        // Without a broker there is no connection to close.
        let Some(mut connection) = left else {
            return Ok(());
        };
        let delete = QueueDelete {
            queue: &self.fanout_queue,
            ..QueueDelete::default()
        };
        connection.call(CHANNEL, &delete)?;
        self.replies.close()?;
        Ok(connection.close()?)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }
}

impl Default for Reconnect {
    /// oslo.messaging's values: kombu's first second, rabbit_interval_max.
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            delay_max: Duration::from_secs(30),
        }
    }
}

impl Stop {
    /// Requests the end.
    pub fn wish(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_wished(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(f),
            Self::Cancelled { consumer_tag } => {
                write!(
                    f,
                    "the broker ended consumer {consumer_tag}; its queue is gone"
                )
            }
            Self::Chance(error) => write!(f, "the system gives no random number: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

impl From<ConnectionError> for ServerError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}
