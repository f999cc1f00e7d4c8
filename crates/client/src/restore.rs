//! Registrations and subscriptions in a new session.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::{Config, chance};
use crate::shared::{Active, Inner, ListenerKind};
use crate::waiter::Waiter;

/// Requests every listener that the session was not asked for.
pub(crate) fn restore(inner: &mut Inner) {
    let Inner {
        active, listeners, ..
    } = inner;
    let Some(Active { session, outgoing }) = active else {
        return;
    };
    for (&key, listener) in listeners.iter_mut().filter(|(_, listener)| !listener.asked) {
        let waiter = Waiter::Restoration(key);
        let asked = match &listener.kind {
            ListenerKind::Registration {
                procedure, options, ..
            } => session.register(key, procedure, options.clone(), waiter, outgoing),
            ListenerKind::Subscription { topic, options, .. } => {
                session.subscribe(key, topic, options.clone(), waiter, outgoing)
            }
        };
        // A request that fit into the first session's messages fits into the next one's, unless that router accepts
        // less: then it is not restored.
        listener.asked = asked.is_ok();
    }
}

/// The time to retry listeners that the router refused to restore: a router that has not detected the end of the last
/// session still has them registered.
#[derive(Default)]
pub(crate) struct RestoreRetries {
    pub(crate) due: Option<Instant>,
    attempt: u32,
}

impl RestoreRetries {
    /// A request was refused; returns the time until the next one, if one follows.
    pub(crate) fn refused(&mut self, config: &Config) -> Option<Duration> {
        if let Some(due) = self.due {
            return Some(due.saturating_duration_since(Instant::now()));
        }
        let delay = config
            .reconnect
            .as_ref()
            .and_then(|backoff| backoff.delay(self.attempt, chance()));
        self.attempt += 1;
        self.due = delay.map(|delay| Instant::now() + delay);
        delay
    }
}
