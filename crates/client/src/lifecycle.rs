//! The history of a client's sessions, as it happens: losses, attempts, restorations.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::error::{ApplicationError, ConnectError, Disconnected};
use crate::welcome::Welcome;

/// Maximum number of events that wait for one receiver; older ones are dropped and counted.
pub(crate) const EVENTS_MAX: usize = 256;

/// A step in the life of a client; see [`Client::lifecycle`](crate::Client::lifecycle).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum LifecycleEvent {
    /// The session is over; all pending requests have failed with this cause.
    Lost {
        /// The reason of the end.
        cause: Disconnected,
    },
    /// The client waits before an attempt to reconnect.
    Waiting {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The time until then, with jitter.
        delay: Duration,
    },
    /// An attempt to reconnect has failed.
    AttemptFailed {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The reason of the failure.
        error: Arc<ConnectError>,
    },
    /// The client has a new session, and requests its registrations and subscriptions.
    Rejoined {
        /// The number of attempts that it took.
        attempts: u32,
        /// The router's answer.
        welcome: Arc<Welcome>,
    },
    /// The new session has a registration or subscription of the former one.
    Restored(Listener),
    /// The router refused a registration or subscription of the former session.
    RestoreRefused {
        /// The refused part.
        listener: Listener,
        /// The router's reason.
        error: ApplicationError,
        /// The time until the next request, as the [`Backoff`](crate::Backoff) has it; `None` if none follows in this
        /// session.
        retry_in: Option<Duration>,
    },
    /// The router ended a registration or subscription, for instance because another client took it over.
    Revoked(Listener),
    /// The client has ended; no session follows.
    Ended {
        /// The reason of the end.
        cause: Disconnected,
    },
}

/// A registration or subscription that outlives sessions.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listener {
    /// A registration.
    Procedure(String),
    /// A subscription.
    Topic(String),
}

/// The events of a client's life, from the request for them on; see [`Client::lifecycle`](crate::Client::lifecycle).
#[derive(Debug)]
pub struct Lifecycle {
    events: broadcast::Receiver<LifecycleEvent>,
    missed: u64,
    /// The client has ended, and its end has been returned.
    is_over: bool,
}

impl Lifecycle {
    pub(crate) fn new(events: broadcast::Receiver<LifecycleEvent>) -> Self {
        Self {
            events,
            missed: 0,
            is_over: false,
        }
    }

    /// The next event; `None` after [`LifecycleEvent::Ended`].
    ///
    /// At most 256 events wait; older ones are dropped and [counted](Self::missed).
    pub async fn next(&mut self) -> Option<LifecycleEvent> {
        if self.is_over {
            return None;
        }
        loop {
            match self.events.recv().await {
                Ok(event) => {
                    self.is_over = matches!(event, LifecycleEvent::Ended { .. });
                    return Some(event);
                }
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Number of events that were dropped because too many were waiting.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}
