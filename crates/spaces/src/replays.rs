//! Replays of retained events that a client has had no room for.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::names::Pattern;

/// The replays of a client, if there are some.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Option<Arc<Replays>>>);

/// The rest of a client's replays.
#[derive(Default)]
pub(crate) struct Replays {
    waiting: Mutex<VecDeque<Replay>>,
    /// The client may have room.
    room: Notify,
}

/// The replay for one filter.
pub(crate) struct Replay {
    pub(crate) filter: Box<str>,
    pub(crate) pattern: Pattern,
    /// A later event has reached its subscribers.
    pub(crate) number_max: u64,
    /// The topic of the last one that is done.
    pub(crate) after: Option<Arc<str>>,
}

impl Waiting {
    /// Adds replays. Returns all if these are the first: a task has to send them.
    pub(crate) fn add(&self, more: VecDeque<Replay>) -> Option<Arc<Replays>> {
        let mut replays = self.0.lock();
        let is_new = replays.is_none();
        let all = replays.get_or_insert_default();
        all.waiting.lock().extend(more);
        is_new.then(|| Arc::clone(all))
    }

    /// The next replay. After the last one, another is the first of a new task.
    pub(crate) fn next(&self, all: &Replays) -> Option<Replay> {
        let mut replays = self.0.lock();
        let next = all.waiting.lock().pop_front();
        if next.is_none() {
            *replays = None;
        }
        next
    }

    /// Number of filters with replays that are not done.
    pub(crate) fn len(&self) -> usize {
        let replays = self.0.lock();
        let replays = replays.as_ref();
        replays.map_or(0, |replays| replays.waiting.lock().len())
    }

    /// The client may have room for more.
    pub(crate) fn note_room(&self) {
        if let Some(replays) = &*self.0.lock() {
            replays.room.notify_one();
        }
    }
}

impl Replays {
    pub(crate) fn put_back(&self, replay: Replay) {
        self.waiting.lock().push_front(replay);
    }

    /// Waits until the client may have room.
    pub(crate) async fn room(&self) {
        self.room.notified().await;
    }
}

impl Replay {
    /// Approximate memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.filter.len() + self.pattern.uri.len()
    }
}
