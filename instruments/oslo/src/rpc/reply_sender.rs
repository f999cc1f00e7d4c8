//! A server's replies to its callers: connections with at most one reply in flight each. A reply does not wait for the
//! confirm of the one before it, but uses another connection, up to a bound, like oslo.messaging's pool.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosstie_amqp::method::BasicPublish;
use crosstie_joints::Reply;

use super::properties;
use super::sender::Sender;
use crate::identifier::Identifiers;
use crosstie_amqp_client::TransportUrl;
use crosstie_amqp_client::{ConnectionError, ConnectionOptions};

/// Maximum number of connections, as in oslo.messaging's pool.
const SENDERS_MAX: usize = 30;

/// Sends replies, from any thread.
pub(super) struct ReplySender {
    url: TransportUrl,
    options: ConnectionOptions,
    properties: Vec<u8>,
    state: Mutex<State>,
}

struct State {
    /// Currently unused ones. The last used one is at the back.
    idle: VecDeque<Sender>,
    opened: usize,
    identifiers: Identifiers,
    lost: u64,
}

impl ReplySender {
    pub(super) fn new(
        url: &TransportUrl,
        options: &ConnectionOptions,
        identifiers: Identifiers,
    ) -> Self {
        Self {
            url: url.clone(),
            options: options.clone(),
            properties: properties(None),
            state: Mutex::new(State {
                idle: VecDeque::new(),
                opened: 0,
                identifiers,
                lost: 0,
            }),
        }
    }

    /// Sends a reply to the request's queue. A connection that was lost while idle is not a failure: a second attempt
    /// uses another.
    pub(super) fn send(&self, queue: &str, reply: &Reply) -> Result<(), ConnectionError> {
        let unique_id = self.state().identifiers.draw();
        let mut body = Vec::new();
        reply.write(&unique_id, &mut body);
        match self.publish(queue, &body) {
            Err(error) if error.is_loss() => self.publish(queue, &body),
            published => published,
        }
    }

    /// Keeps every idle connection alive, and handles the broker's messages on it.
    pub(super) fn keep_alive(&self) -> Result<(), ConnectionError> {
        // One round: returned ones are queued behind those still to be checked. The lock is free in between: a slow
        // call's thread replies meanwhile, and returning a connection locks again.
        let round = self.state().idle.len();
        let mut first_error = Ok(());
        for _ in 0..round {
            let Some(mut sender) = self.state().idle.pop_front() else {
                break;
            };
            let alive = match sender.is_confirmed() {
                true => sender.connection().keep_alive(),
                false => sender.poll(),
            };
            // The others are kept alive all the same.
            let put_back = self.put_back(sender, alive);
            first_error = first_error.and(put_back);
        }
        first_error
    }

    /// Drops idle connections: their broker is gone.
    pub(super) fn forget_idle(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        for mut sender in idle {
            // A confirm may have arrived before the end.
            let _ = sender.poll();
            self.state().forget(sender);
        }
    }

    /// Number of replies without a proven receiver, since the last call.
    pub(super) fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.state().lost)
    }

    /// Closes in order; unconfirmed replies are counted.
    pub(super) fn close(self) -> Result<(), ConnectionError> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        for mut sender in state.idle {
            sender.await_confirmed(self.options.reply_timeout)?;
            sender.close()?;
        }
        Ok(())
    }

    fn publish(&self, queue: &str, body: &[u8]) -> Result<(), ConnectionError> {
        let mut sender = self.take()?;
        let method = BasicPublish {
            mandatory: true,
            ..BasicPublish::to("", queue)
        };
        let published = sender.publish(&method, &self.properties, body);
        self.put_back(sender, published)
    }

    /// A connection on which every reply is confirmed: an idle one, a new one, or at the maximum the one that has
    /// waited longest. The lock is free while a socket is read.
    fn take(&self) -> Result<Sender, ConnectionError> {
        let round = self.state().idle.len();
        for _ in 0..round {
            // The last used one has the warmest caches.
            let Some(mut sender) = self.state().idle.pop_back() else {
                break;
            };
            match sender.poll() {
                Ok(()) if sender.is_confirmed() => return Ok(sender),
                Ok(()) => self.state().idle.push_front(sender),
                Err(_) => self.state().forget(sender),
            }
        }
        let mut state = self.state();
        let oldest = match state.opened < SENDERS_MAX {
            true => None,
            false => state.idle.pop_front(),
        };
        let Some(mut sender) = oldest else {
            state.opened += 1;
            drop(state);
            let opened = Sender::open(&self.url, &self.options);
            return opened.inspect_err(|_| self.state().opened -= 1);
        };
        drop(state);
        match sender.await_confirmed(self.options.reply_timeout) {
            Ok(_) => Ok(sender),
            Err(error) => {
                self.state().forget(sender);
                Err(error)
            }
        }
    }

    fn put_back(
        &self,
        mut sender: Sender,
        worked: Result<(), ConnectionError>,
    ) -> Result<(), ConnectionError> {
        let fate = sender.take_fate();
        let mut state = self.state();
        match worked {
            Ok(()) => {
                state.lost += fate.refused + fate.returned;
                state.idle.push_back(sender);
            }
            Err(_) => state.forget(sender),
        }
        worked
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Its state is consistent between any two lines above.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Drops a lost connection, and counts its unconfirmed replies.
    fn forget(&mut self, mut sender: Sender) {
        let fate = sender.take_fate();
        self.lost += fate.refused + fate.returned + sender.unconfirmed();
        self.opened -= 1;
    }
}
