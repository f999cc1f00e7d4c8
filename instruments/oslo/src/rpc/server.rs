//! A server: consumes a topic's requests, has an endpoint do them, sends replies.
//!
//! A request is acknowledged before it is dispatched, as oslo.messaging does: if the server dies
//! while it is at it, the caller's call times out, and nothing is done twice.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crosstie_amqp::method::QueueDelete;

use super::reply_sender::ReplySender;
use super::serving::Serving;
use super::{CHANNEL, Endpoint, Target, consuming};
use crate::connection::{Connection, ConnectionError, ConnectionOptions};
use crate::identifier::Identifiers;
use crate::url::TransportUrl;

/// Ends a server in good order, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// Why a server cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    Connection(ConnectionError),
    /// The broker ended the consuming, mostly because somebody deleted the queue.
    Cancelled {
        consumer_tag: String,
    },
    /// The system gives no random number.
    Chance(getrandom::Error),
}

/// How a server comes back when its broker is gone: at once, and then after delays that double.
#[derive(Clone, Debug)]
pub struct Reconnect {
    /// After the first try that failed.
    pub delay: Duration,
    pub delay_max: Duration,
}

/// A server whose queues exist and are consumed from.
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
    /// Connects and makes the queues of `target`, whose `server` is the server's name.
    /// `on_complaint` is told what went wrong and is no reason to end.
    pub fn open(
        url: &TransportUrl,
        target: Target,
        options: &ConnectionOptions,
        on_complaint: impl Fn(&str) + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let mut identifiers = Identifiers::new().map_err(ServerError::Chance)?;
        let fanout_queue = format!("{}_fanout_{}", target.topic, identifiers.draw());
        let connection = consuming::open(url, options, &target, &fanout_queue)?;
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

    /// How it comes back to its broker; none has it end instead.
    pub fn with_reconnect(self, reconnect: Option<Reconnect>) -> Self {
        Self { reconnect, ..self }
    }

    /// Serves until it is told to stop; then takes no more requests, finishes those it has taken, and
    /// closes in good order.
    pub fn run(self, endpoint: &impl Endpoint, stop: &Stop) -> Result<(), ServerError> {
        let open = || consuming::open(&self.url, &self.options, &self.target, &self.fanout_queue);
        let (at_work, at_work_seen) = channel();
        let serving = Serving {
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
        // Workers that are still busy when it ends are waited for.
        let left = thread::scope(|scope| serving.serve(scope, self.connection, at_work_seen))?;
        // Nobody is there to be told.
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
    /// As oslo.messaging has it: kombu's first second, rabbit_interval_max.
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            delay_max: Duration::from_secs(30),
        }
    }
}

impl Stop {
    /// To end soon.
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
