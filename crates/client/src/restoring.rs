//! Registrations and subscriptions in a new session.

use tokio::time::Instant;

use crate::config::{Config, chance};
use crate::shared::{Active, Inner, ListenerKind, Waiter};

/// Asks the session for every listener that it was not asked for.
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
        // What fit into the first session's messages fits into the next one's, unless that
        // router accepts less: then it will not be restored.
        listener.asked = asked.is_ok();
    }
}

/// When to ask again for the listeners that the router refused to restore: a router that has not
/// noticed yet that the last session is dead still has them registered.
#[derive(Default)]
pub(crate) struct Restoring {
    pub(crate) due: Option<Instant>,
    attempt: u32,
}

impl Restoring {
    pub(crate) fn refused(&mut self, config: &Config) {
        if self.due.is_some() {
            return;
        }
        let delay = config
            .reconnect
            .as_ref()
            .and_then(|backoff| backoff.delay(self.attempt, chance()));
        self.attempt += 1;
        self.due = delay.map(|delay| Instant::now() + delay);
    }
}
