//! The task that moves a client's bytes, through its successive sessions.
//!
//! ```text
//!            ┌──────────────── run ───────────────┐
//! join ──▶   │ out-queue ─▶ write   read ─▶ handle │ ──▶ lost ──▶ wait, join again ──▶ …
//!            │ wake, ping, leave, restore          │ ──▶ left ──▶ ended
//!            └────────────────────────────────────┘
//! ```

use std::sync::Arc;

use tokio::time::sleep;

use crate::config::{Backoff, Config, chance};
use crate::connection::Connection;
use crate::error::{ConnectError, Disconnected, Failure};
use crate::join::{Joined, join};
use crate::lifecycle::LifecycleEvent;
use crate::restore::restore;
use crate::shared::{Active, Shared, State};

/// The first session; retried only with [`Backoff::from_start`].
pub(crate) async fn join_first(config: &Config) -> Result<Joined, ConnectError> {
    let backoff = config.reconnect.as_ref();
    let Some(backoff) = backoff.filter(|backoff| backoff.from_start) else {
        return join(config).await;
    };
    let mut attempt = 0;
    loop {
        let error = match join(config).await {
            Ok(joined) => return Ok(joined),
            Err(error) => error,
        };
        let Some(delay) = backoff.delay(attempt, chance()) else {
            return Err(error);
        };
        attempt += 1;
        sleep(delay).await;
    }
}

/// Serves a client until it ends.
pub(crate) async fn drive(shared: Arc<Shared>, mut connection: Connection) {
    loop {
        let lost = connection.run(&shared).await;
        end_session(&shared, &lost.cause);
        connection.close(&lost, shared.config.leave_timeout).await;
        let cause = match &shared.config.reconnect {
            Some(backoff) if !shared.is_leaving() => {
                match rejoin(&shared, backoff, lost.cause).await {
                    Ok(rejoined) => {
                        connection = rejoined;
                        continue;
                    }
                    Err(cause) => cause,
                }
            }
            _ => lost.cause,
        };
        end(&shared, cause);
        return;
    }
}

/// Fails all pending requests: the session is over.
fn end_session(shared: &Shared, cause: &Disconnected) {
    let active = {
        let mut inner = shared.inner.lock();
        inner.cause = cause.clone();
        for listener in inner.listeners.values_mut() {
            listener.asked = false;
        }
        inner.active.take()
    };
    shared.room.notify_waiters();
    if let Some(active) = active {
        for waiter in active.session.into_waiters() {
            waiter.settle(Err(Failure::Disconnected(cause.clone())));
        }
    }
    shared.report(LifecycleEvent::Lost {
        cause: cause.clone(),
    });
}

/// Ends the client for all its handles: no session follows.
fn end(shared: &Shared, cause: Disconnected) {
    let listeners = {
        let mut inner = shared.inner.lock();
        inner.cause = cause.clone();
        std::mem::take(&mut inner.listeners)
    };
    // Their queues end with them, outside the lock.
    drop(listeners);
    shared.state.send_replace(State::Ended(cause.clone()));
    shared.report(LifecycleEvent::Ended { cause });
}

/// Joins again and restores all listeners, or returns the reason for the failure.
async fn rejoin(
    shared: &Shared,
    backoff: &Backoff,
    cause: Disconnected,
) -> Result<Connection, Disconnected> {
    let mut attempt = 0;
    let mut last = None;
    loop {
        let Some(delay) = backoff.delay(attempt, chance()) else {
            return Err(match last {
                Some(last) => Disconnected::GivenUp {
                    attempts: attempt,
                    last,
                },
                None => cause,
            });
        };
        attempt += 1;
        shared.state.send_replace(State::Reconnecting {
            attempt,
            cause: cause.clone(),
        });
        shared.report(LifecycleEvent::Waiting { attempt, delay });
        let joined = tokio::select! {
            joined = async {
                sleep(delay).await;
                join(&shared.config).await
            } => joined,
            () = left(shared) => return Err(Disconnected::Left),
        };
        match joined {
            Ok(Joined {
                wire,
                session,
                welcome,
            }) => {
                let mut inner = shared.inner.lock();
                inner.active = Some(Active {
                    session,
                    outgoing: wire.outgoing,
                });
                restore(&mut inner);
                drop(inner);
                let welcome = Arc::new(welcome);
                shared
                    .state
                    .send_replace(State::Joined(Arc::clone(&welcome)));
                shared.report(LifecycleEvent::Rejoined {
                    attempts: attempt,
                    welcome,
                });
                // A `leave` in between has had no listener.
                shared.wake.notify_one();
                return Ok(Connection::new(wire.stream, wire.incoming));
            }
            Err(error) => {
                let error = Arc::new(error);
                shared.report(LifecycleEvent::AttemptFailed {
                    attempt,
                    error: Arc::clone(&error),
                });
                last = Some(error);
            }
        }
    }
}

async fn left(shared: &Shared) {
    while !shared.is_leaving() {
        shared.wake.notified().await;
    }
}
