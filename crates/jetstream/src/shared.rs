//! The state shared by a connection, its task and its subscriptions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crosstie_nats::encode;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::failed::Failed;
use crate::greeting::Greeting;
use crate::message::Message;

pub(crate) struct Shared {
    pub(crate) greeting: Greeting,
    /// The prefix of subjects for answers, in front of a number.
    pub(crate) inbox: String,
    pub(crate) state: Mutex<State>,
    /// Output is waiting, or the connection shall end.
    pub(crate) wake: Notify,
    /// The server's text about the last denied permission.
    pub(crate) denied: Mutex<Option<String>>,
    /// Number of INFO messages about changes of the cluster.
    pub(crate) tidings: AtomicU64,
    /// The time of the server's last bytes.
    pub(crate) heard: Mutex<Instant>,
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

/// The receiver of a subscription's messages, or of answers.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) queue: mpsc::UnboundedSender<Message>,
    pub(crate) waiting_bytes: Arc<AtomicUsize>,
    /// Maximum waiting bytes: beyond, the subscription ends.
    pub(crate) bytes_max: usize,
    /// The subscribed pattern; empty for answers.
    pub(crate) pattern: String,
    pub(crate) is_denied: Arc<AtomicBool>,
}

/// Ends the connection's task when the last owner drops this.
pub(crate) struct Held(pub(crate) Arc<Shared>);

/// The subscription for all answers.
pub(crate) const INBOX: u64 = 1;

/// Maximum bytes that wait to be written.
const OUT_BYTES_MAX: usize = 64 << 20;

impl Shared {
    /// Adds output.
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

    /// Removes a receiver.
    pub(crate) fn forget(&self, key: u64, is_servers: bool) {
        let was_there = self.state.lock().receivers.remove(&key);
        if is_servers && was_there.is_some() {
            // An ended connection needs no UNSUB.
            let _ = self.say(|state| encode::unsubscribe(key, &mut state.out));
        }
    }

    /// The connection has ended: informs all waiting tasks.
    pub(crate) fn end(&self, why: String) {
        let mut state = self.state.lock();
        state.is_closing = true;
        self.end.send_replace(Some(why));
        state.receivers.clear();
        state.out = Vec::new();
    }

    pub(crate) fn why(&self) -> String {
        let why = self.end.borrow().clone();
        why.unwrap_or_else(|| "too many messages arrived at once".to_owned())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.state.lock().is_closing = true;
        self.0.wake.notify_one();
    }
}

impl Receiver {
    /// Passes a message on. Returns whether there was room and a receiver.
    pub(crate) fn take(&self, message: Message) -> bool {
        let bytes = message.bytes();
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        waiting + bytes <= self.bytes_max && self.queue.send(message).is_ok()
    }
}
