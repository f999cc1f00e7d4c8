//! A server's way back to its callers: connections that replies go out on, each with one reply under
//! way at most. A reply does not wait for the confirm of the one before it: there is another
//! connection for it, up to a bound, as oslo.messaging's pool has it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crosstie_amqp::method::BasicPublish;

use super::properties;
use super::sender::Sender;
use crate::connection::{ConnectionError, ConnectionOptions};
use crate::envelope::Reply;
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

    /// Sends a reply to the queue that the request named.
    pub(super) fn send(&self, queue: &str, reply: &Reply) -> Result<(), ConnectionError> {
        let unique_id = self.state().identifiers.draw();
        let mut body = Vec::new();
        reply.write(&unique_id, &mut body);
        let mut sender = self.take()?;
        let method = BasicPublish {
            routing_key: queue,
            mandatory: true,
            ..BasicPublish::default()
        };
        let published = sender.publish(&method, &self.properties, &body);
        self.put_back(sender, published)
    }

    /// Says on every connection that this side is alive, and hears what the broker has said.
    pub(super) fn keep_alive(&self) -> Result<(), ConnectionError> {
        // One round: what is put back comes behind what has not been looked at. The lock is free in
        // between: a slow call's thread replies meanwhile, and putting back locks again.
        let round = self.state().idle.len();
        for _ in 0..round {
            let Some(mut sender) = self.state().idle.pop_front() else {
                break;
            };
            let alive = match sender.is_confirmed() {
                true => sender.connection().keep_alive(),
                false => sender.poll(),
            };
            self.put_back(sender, alive)?;
        }
        Ok(())
    }

    /// Replies that reached nobody, since this was asked last.
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

    /// A connection on which every reply is confirmed: an idle one, a new one, or, when there are
    /// enough, the one that has waited longest.
    fn take(&self) -> Result<Sender, ConnectionError> {
        let mut first_error = None;
        let mut state = self.state();
        for _ in 0..state.idle.len() {
            // The one used last has the warmest caches.
            let Some(mut sender) = state.idle.pop_back() else {
                break;
            };
            match sender.poll() {
                Ok(()) if sender.is_confirmed() => return Ok(sender),
                Ok(()) => state.idle.push_front(sender),
                Err(error) => {
                    state.opened -= 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        if state.opened < SENDERS_MAX || state.idle.is_empty() {
            state.opened += 1;
            drop(state);
            return Sender::open(&self.url, &self.options)
                .inspect_err(|_| self.state().opened -= 1);
        }
        let oldest = state.idle.pop_front();
        drop(state);
        match (oldest, first_error) {
            (Some(mut sender), _) => {
                sender.await_confirmed(self.options.reply_timeout)?;
                Ok(sender)
            }
            (None, Some(error)) => Err(error),
            (None, None) => Err(ConnectionError::EndOfStream),
        }
    }

    fn put_back(
        &self,
        mut sender: Sender,
        worked: Result<(), ConnectionError>,
    ) -> Result<(), ConnectionError> {
        let fate = sender.take_fate();
        let mut state = self.state();
        state.lost += fate.refused + fate.returned;
        match worked {
            Ok(()) => state.idle.push_back(sender),
            Err(_) => state.opened -= 1,
        }
        worked
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What it holds is whole between any two lines above.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
