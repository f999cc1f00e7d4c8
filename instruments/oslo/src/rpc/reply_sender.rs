//! A server's way back to its callers: connections that replies go out on, each with one reply under
//! way at most. A reply does not wait for the confirm of the one before it: there is another
//! connection for it, up to a bound, as oslo.messaging's pool has it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosstie_amqp::method::BasicPublish;
use crosstie_joints::Reply;

use super::properties;
use super::sender::Sender;
use crate::connection::{ConnectionError, ConnectionOptions};
use crate::identifier::Identifiers;
use crate::url::TransportUrl;

/// Connections at most, as oslo.messaging's pool has it.
const SENDERS_MAX: usize = 30;

/// Sends replies, from any thread.
pub(super) struct ReplySender {
    url: TransportUrl,
    options: ConnectionOptions,
    properties: Vec<u8>,
    state: Mutex<State>,
}

struct State {
    /// Nobody uses them at the moment. The one used last is at the back.
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

    /// Sends a reply to the queue that the request named. A connection that was lost while nobody
    /// used it is no reason to fail: there is a second try, on another.
    pub(super) fn send(&self, queue: &str, reply: &Reply) -> Result<(), ConnectionError> {
        let unique_id = self.state().identifiers.draw();
        let mut body = Vec::new();
        reply.write(&unique_id, &mut body);
        match self.publish(queue, &body) {
            Err(error) if error.is_loss() => self.publish(queue, &body),
            published => published,
        }
    }

    /// Says on every connection that this side is alive, and hears what the broker has said.
    pub(super) fn keep_alive(&self) -> Result<(), ConnectionError> {
        // One round: what is put back comes behind what has not been looked at. The lock is free in
        // between: a slow call's thread replies meanwhile, and putting back locks again.
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

    /// Drops the connections that nobody uses: their broker is gone.
    pub(super) fn forget_idle(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        for mut sender in idle {
            // A confirm may have come before the end.
            let _ = sender.poll();
            self.state().forget(sender);
        }
    }

    /// Replies that are not known to have reached anybody, since this was asked last.
    pub(super) fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.state().lost)
    }

    /// Closes in good order, with what is confirmed and what is not.
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
            routing_key: queue,
            mandatory: true,
            ..BasicPublish::default()
        };
        let published = sender.publish(&method, &self.properties, body);
        self.put_back(sender, published)
    }

    /// A connection on which every reply is confirmed: an idle one, a new one, or, when there are
    /// enough, the one that has waited longest. The lock is free while a socket is asked.
    fn take(&self) -> Result<Sender, ConnectionError> {
        let round = self.state().idle.len();
        for _ in 0..round {
            // The one used last has the warmest caches.
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
        // What it holds is whole between any two lines above.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A connection that is gone, with the replies that nobody has confirmed.
    fn forget(&mut self, mut sender: Sender) {
        let fate = sender.take_fate();
        self.lost += fate.refused + fate.returned + sender.unconfirmed();
        self.opened -= 1;
    }
}
