//! Counts the sessions of each authid on a listener (`authid_sessions_max`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crosstie_routing::SessionKey;
use parking_lot::Mutex;

/// The counts of one listener.
pub(crate) struct Authids {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    counts: HashMap<Arc<str>, usize>,
    /// The authid of each session, by the realm's number and the session's key.
    by_session: HashMap<(u32, SessionKey), Arc<str>>,
}

impl Authids {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            taken: Mutex::default(),
        }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Counts a session that is about to join, unless the maximum is reached.
    pub(super) fn enter(&self, authid: &Arc<str>) -> bool {
        let mut taken = self.taken.lock();
        let count = taken.counts.entry(Arc::clone(authid)).or_default();
        let may_enter = *count < self.max;
        *count += usize::from(may_enter);
        may_enter
    }

    /// The session has joined.
    pub(super) fn keep(&self, session: (u32, SessionKey), authid: Arc<str>) {
        self.taken.lock().by_session.insert(session, authid);
    }

    /// The session has not joined after all.
    pub(super) fn give_back(&self, authid: &Arc<str>) {
        self.taken.lock().forget(authid);
    }

    /// A session that had joined has left.
    pub(super) fn leave(&self, session: (u32, SessionKey)) {
        let mut taken = self.taken.lock();
        if let Some(authid) = taken.by_session.remove(&session) {
            taken.forget(&authid);
        }
    }
}

impl Taken {
    fn forget(&mut self, authid: &Arc<str>) {
        if let Entry::Occupied(mut count) = self.counts.entry(Arc::clone(authid)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}
