//! One connection to one server: requests and answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crosstie_nats::{encode, is_pattern, is_subject};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::failed::Failed;
use crate::greeting::Greeting;
use crate::message::Message;
use crate::shared::{Held, INBOX, Receiver, Shared, State};
use crate::subscription::Subscription;

/// A connection, shared by any number of tasks; it ends when the last one drops it.
#[derive(Clone)]
pub struct Connection {
    held: Arc<Held>,
}

/// Silence of a server after which it is pinged, at most.
pub(crate) const PING_AFTER: Duration = Duration::from_millis(400);

/// The status of a request without subscribers.
const NO_RESPONDERS: u16 = 503;

impl Connection {
    pub(crate) fn new(greeting: Greeting, inbox: String) -> Self {
        let shared = Arc::new(Shared {
            greeting,
            inbox,
            state: Mutex::new(State {
                last_key: INBOX,
                ..State::default()
            }),
            wake: Notify::new(),
            denied: Mutex::default(),
            tidings: AtomicU64::new(0),
            heard: Mutex::new(Instant::now()),
            end: watch::Sender::new(None),
        });
        Self {
            held: Arc::new(Held(shared)),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.held.0
    }

    /// The server's INFO.
    pub fn greeting(&self) -> &Greeting {
        &self.shared().greeting
    }

    /// Sends a request, and waits for the first answer.
    pub async fn request(
        &self,
        subject: &str,
        fields: &[(&str, &str)],
        payload: &[u8],
        time: Duration,
    ) -> Result<Message, Failed> {
        let answers = self.ask_one(subject, fields, payload)?;
        self.answer(answers, time).await
    }

    /// Waits for the first answer to a request.
    pub(crate) async fn answer(
        &self,
        mut answers: Subscription,
        time: Duration,
    ) -> Result<Message, Failed> {
        let answer = tokio::time::timeout(time, answers.next()).await;
        answer.map_or(Err(Failed::Silent), |answer| self.answered(answer))
    }

    /// Repeats a request until it is answered, if repetition is harmless. Servers that are not ready do not answer a
    /// request, and do not keep it.
    pub async fn request_until(
        &self,
        subject: &str,
        payload: &[u8],
        every: Duration,
        time: Duration,
    ) -> Result<Message, Failed> {
        let deadline = Instant::now() + time;
        let mut answers = self.ask_one(subject, &[], payload)?;
        let reply = self.reply(answers.key);
        loop {
            let again = (Instant::now() + every).min(deadline);
            match tokio::time::timeout_at(again, answers.next()).await {
                Ok(answer) => return self.answered(answer),
                Err(_) if again >= deadline => return Err(Failed::Silent),
                Err(_) => self.shared().say(|state| {
                    encode::request((subject, &reply), &[], payload, &mut state.out);
                })?,
            }
        }
    }

    /// Sends a request with several answers, of which at most `bytes_max` bytes wait here.
    pub fn ask_many(
        &self,
        subject: &str,
        fields: &[(&str, &str)],
        payload: &[u8],
        bytes_max: usize,
    ) -> Result<Subscription, Failed> {
        if !is_subject(subject) {
            return Err(Failed::Subject);
        }
        self.receive(bytes_max, "", |key, out| {
            encode::request((subject, &self.reply(key)), fields, payload, out);
        })
    }

    /// Subscribes to a pattern.
    pub fn subscribe(&self, pattern: &str, bytes_max: usize) -> Result<Subscription, Failed> {
        if !is_pattern(pattern) {
            return Err(Failed::Subject);
        }
        self.receive(bytes_max, pattern, |key, out| {
            encode::subscribe(pattern, key, out);
        })
    }

    /// Publishes without waiting.
    pub fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), Failed> {
        if !is_subject(subject) {
            return Err(Failed::Subject);
        }
        self.shared()
            .say(|state| encode::publish(subject, payload, &mut state.out))
    }

    /// Waits until it has ended. Returns the reason.
    pub async fn ended(&self) -> String {
        let mut end = self.shared().end.subscribe();
        let why = end.wait_for(Option::is_some).await;
        why.map_or_else(|_| String::new(), |why| why.clone().unwrap_or_default())
    }

    /// The server's text about the last denied permission: such requests get no answer.
    pub fn denied(&self) -> Option<String> {
        self.shared().denied.lock().clone()
    }

    /// Number of INFO messages about changes of the cluster. Around such changes, two clients at different servers may
    /// briefly have wrong views of each other.
    pub fn tidings(&self) -> u64 {
        self.shared().tidings.load(Ordering::Relaxed)
    }

    /// The time since the server's last bytes. A silent server is pinged; see [`PING_AFTER`].
    pub fn silence(&self) -> Duration {
        self.shared().heard.lock().elapsed()
    }

    pub fn has_ended(&self) -> bool {
        self.shared().end.borrow().is_some()
    }

    /// Sends a request with one answer.
    pub(crate) fn ask_one(
        &self,
        subject: &str,
        fields: &[(&str, &str)],
        payload: &[u8],
    ) -> Result<Subscription, Failed> {
        let bytes_max = self.shared().greeting.payload_bytes_max + subject.len() + 1024;
        self.ask_many(subject, fields, payload, bytes_max)
    }

    fn answered(&self, answer: Option<Message>) -> Result<Message, Failed> {
        match answer {
            None => Err(Failed::Ended(self.shared().why())),
            Some(answer) if answer.status() == Some(NO_RESPONDERS) => Err(Failed::Nobody),
            Some(answer) => Ok(answer),
        }
    }

    /// The subject for answers to a request.
    fn reply(&self, key: u64) -> String {
        format!("{}.{key}", self.shared().inbox)
    }

    fn receive(
        &self,
        bytes_max: usize,
        pattern: &str,
        write: impl FnOnce(u64, &mut Vec<u8>),
    ) -> Result<Subscription, Failed> {
        let (sender, queue) = mpsc::unbounded_channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let is_denied = Arc::new(AtomicBool::new(false));
        let receiver = Receiver {
            queue: sender,
            waiting_bytes: Arc::clone(&waiting_bytes),
            bytes_max,
            pattern: pattern.to_owned(),
            is_denied: Arc::clone(&is_denied),
        };
        let key = self.shared().say(|state| {
            state.last_key += 1;
            let key = state.last_key;
            state.receivers.insert(key, receiver);
            write(key, &mut state.out);
            key
        })?;
        Ok(Subscription {
            held: Arc::clone(&self.held),
            key,
            is_servers: !pattern.is_empty(),
            queue,
            waiting_bytes,
            is_denied,
        })
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.shared().greeting.name;
        f.debug_tuple("Connection").field(name).finish()
    }
}
