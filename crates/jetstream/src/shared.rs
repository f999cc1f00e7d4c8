//! What a connection, its task and its subscriptions have in common.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crosstie_nats::encode;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};

use crate::failed::Failed;
use crate::greeting::Greeting;
use crate::message::Message;

pub(crate) struct Shared {
    pub(crate) greeting: Greeting,
    /// What answers are sent to, before a number.
    pub(crate) inbox: String,
    pub(crate) state: Mutex<State>,
    /// There is something to be written, or it is to end.
    pub(crate) wake: Notify,
    /// What the server let the user not do last, in its words.
    pub(crate) denied: Mutex<Option<String>>,
    /// How often the server has told of itself and its cluster anew.
    pub(crate) tidings: AtomicU64,
    /// Why it has ended.
    pub(crate) end: watch::Sender<Option<String>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) out: Vec<u8>,
    pub(crate) receivers: HashMap<u64, Receiver>,
    pub(crate) last_key: u64,
    pub(crate) is_closing: bool,
}

/// Where what comes under a subscription, or as answers, goes.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) queue: mpsc::UnboundedSender<Message>,
    pub(crate) waiting_bytes: Arc<AtomicUsize>,
    /// More than that are not kept: the subscription ends.
    pub(crate) bytes_max: usize,
    /// What is subscribed to; empty where answers come.
    pub(crate) pattern: String,
    pub(crate) is_denied: Arc<AtomicBool>,
}

/// Ends the connection's task when nobody has it any more.
pub(crate) struct Held(pub(crate) Arc<Shared>);

/// The subscription that all answers come under.
pub(crate) const INBOX: u64 = 1;

/// Bytes that may wait to be written.
const OUT_BYTES_MAX: usize = 64 << 20;

impl Shared {
    /// Has something written.
    pub(crate) fn say<T>(&self, write: impl FnOnce(&mut State) -> T) -> Result<T, Failed> {
        let mut state = self.state.lock();
        if state.is_closing {
            drop(state);
            return Err(Failed::Ended(self.why()));
        }
        if state.out.len() > OUT_BYTES_MAX {
            return Err(Failed::Full);
        }
        let written = write(&mut state);
        drop(state);
        self.wake.notify_one();
        Ok(written)
    }

    /// Nobody takes what comes there any more.
    pub(crate) fn forget(&self, key: u64, is_servers: bool) {
        let was_there = self.state.lock().receivers.remove(&key);
        if is_servers && was_there.is_some() {
            // Where it has ended there is nothing to end.
            let _ = self.say(|state| encode::unsubscribe(key, &mut state.out));
        }
    }

    /// Nothing comes any more: whoever waits is told.
    pub(crate) fn end(&self, why: String) {
        let mut state = self.state.lock();
        state.is_closing = true;
        self.end.send_replace(Some(why));
        state.receivers.clear();
        state.out = Vec::new();
    }

    pub(crate) fn why(&self) -> String {
        let why = self.end.borrow().clone();
        why.unwrap_or_else(|| "too much came at once".to_owned())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state.lock().is_closing = true;
        self.0.wake.notify_one();
    }
}

impl Receiver {
    /// Hands a message over; whether there was room, and somebody to take it.
    pub(crate) fn take(&self, message: Message) -> bool {
        let bytes = message.bytes();
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        waiting + bytes <= self.bytes_max && self.queue.send(message).is_ok()
    }
}
