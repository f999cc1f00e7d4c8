//! The state that an application's handles share with the connection's task.
//!
//! Handles append to the out-queue under the lock and wake the task, which alone reads and writes the stream. No code
//! of the application runs under the lock. Only wakers, channels' ends and plain data are dropped there, because other
//! drops would take the lock again.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crosstie_wamp::{RegisterOptions, SubscribeOptions};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast, mpsc, watch};

use crate::config::Config;
use crate::error::{Disconnected, Failure, Unsendable};
use crate::event::Event;
use crate::handler::Running;
use crate::invocation::Delivery;
use crate::lifecycle::{self, EVENTS_MAX, LifecycleEvent};
use crate::outgoing::Outgoing;
use crate::session::{ListenerKey, Session};
use crate::waiter::Waiter;
use crate::welcome::Welcome;

pub(crate) type ClientSession = Session<Waiter, Running>;

/// A client's state; see [`Client::state`](crate::Client::state).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum State {
    /// In a session.
    Joined(Arc<Welcome>),
    /// Between two sessions; attempts count from 1.
    Reconnecting {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The reason of the last session's end.
        cause: Disconnected,
    },
    /// No further session follows.
    Ended(Disconnected),
}

/// The registrations and subscriptions that outlive sessions.
pub(crate) type Listeners = BTreeMap<ListenerKey, Listener>;

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) kind: ListenerKind,
    /// Whether the current session has requested it.
    pub(crate) asked: bool,
}

#[derive(Debug)]
pub(crate) enum ListenerKind {
    Registration {
        procedure: Arc<str>,
        options: RegisterOptions,
        chunks_max: usize,
        queue: mpsc::Sender<Delivery>,
    },
    Subscription {
        topic: String,
        options: SubscribeOptions,
        queue: mpsc::Sender<Event>,
        missed: Arc<AtomicU64>,
    },
}

impl Listener {
    /// The listener in events of the client's life.
    pub(crate) fn named(&self) -> lifecycle::Listener {
        match &self.kind {
            ListenerKind::Registration { procedure, .. } => {
                lifecycle::Listener::Procedure((**procedure).to_owned())
            }
            ListenerKind::Subscription { topic, .. } => lifecycle::Listener::Topic(topic.clone()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) inner: Mutex<Inner>,
    /// The task has something to do.
    pub(crate) wake: Notify,
    /// The out-queue was emptied, or the session ended.
    pub(crate) room: Notify,
    /// The application wants to leave.
    pub(crate) leaving: AtomicBool,
    pub(crate) state: watch::Sender<State>,
    pub(crate) lifecycle: broadcast::Sender<LifecycleEvent>,
    last_key: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) active: Option<Active>,
    /// The reason why there is no session, if there is none.
    pub(crate) cause: Disconnected,
    pub(crate) listeners: Listeners,
}

/// A session and its queued bytes.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) session: ClientSession,
    pub(crate) outgoing: Outgoing,
}

impl Shared {
    /// Joined, without a task yet.
    pub(crate) fn new(config: Config, active: Active, welcome: Welcome) -> Self {
        Self {
            config,
            inner: Mutex::new(Inner {
                active: Some(active),
                cause: Disconnected::Left,
                listeners: Listeners::new(),
            }),
            wake: Notify::new(),
            room: Notify::new(),
            leaving: AtomicBool::new(false),
            state: watch::Sender::new(State::Joined(Arc::new(welcome))),
            lifecycle: broadcast::Sender::new(EVENTS_MAX),
            last_key: AtomicU64::new(0),
        }
    }

    /// Calls `act`, which appends to the out-queue, as soon as there is room.
    pub(crate) async fn send<R>(
        &self,
        act: impl FnOnce(&mut Active, &mut Listeners) -> Result<R, Unsendable>,
    ) -> Result<R, Failure> {
        let mut act = Some(act);
        loop {
            // Registered before the check, so that no notification is missed.
            let mut room = pin!(self.room.notified());
            room.as_mut().enable();
            {
                let mut inner = self.inner.lock();
                if self.is_leaving() {
                    return Err(Disconnected::Left.into());
                }
                let inner_now = &mut *inner;
                let Some(active) = &mut inner_now.active else {
                    return Err(inner_now.cause.clone().into());
                };
                if active.outgoing.len() < self.config.outgoing_bytes_max
                    && let Some(act) = act.take()
                {
                    let acted = act(active, &mut inner_now.listeners)?;
                    active.outgoing.mark_waited();
                    drop(inner);
                    self.wake.notify_one();
                    return Ok(acted);
                }
            }
            room.await;
        }
    }

    /// Calls `act` at once, for messages that must not wait. Does nothing without a session.
    pub(crate) fn send_now(&self, act: impl FnOnce(&mut Active) -> Result<(), Unsendable>) {
        let mut inner = self.inner.lock();
        if let Some(active) = &mut inner.active {
            // These messages have no arguments that could be refused.
            let _ = act(active);
            drop(inner);
            self.wake.notify_one();
        }
    }

    /// Reports an event to everyone who listens for such; nobody has to.
    pub(crate) fn report(&self, event: LifecycleEvent) {
        let _ = self.lifecycle.send(event);
    }

    /// A key that no listener has had.
    pub(crate) fn new_key(&self) -> ListenerKey {
        ListenerKey(self.last_key.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Removes a listener; its queue ends.
    pub(crate) fn remove_listener(&self, key: ListenerKey) {
        let removed = self.inner.lock().listeners.remove(&key);
        // Dropped outside the lock.
        drop(removed);
    }

    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }
}
