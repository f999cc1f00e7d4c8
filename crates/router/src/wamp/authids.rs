//! How many sessions of each authid have come by a listener (`authid_sessions_max`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crosstie_routing::SessionKey;
use parking_lot::Mutex;

/// Those of one listener.
pub(crate) struct Authids {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    counts: HashMap<Arc<str>, usize>,
    /// By the realm's number and the session's key there.
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

    /// Has one session more, which is about to join, if there may be one.
    pub(super) fn enter(&self, authid: &Arc<str>) -> bool {
        let mut taken = self.taken.lock();
        let count = taken.counts.entry(Arc::clone(authid)).or_default();
        let may_enter = *count < self.max;
        *count += usize::from(may_enter);
        may_enter
    }

    /// It has joined.
    pub(super) fn keep(&self, session: (u32, SessionKey), authid: Arc<str>) {
        self.taken.lock().by_session.insert(session, authid);
    }

    /// It has not.
    pub(super) fn give_back(&self, authid: &Arc<str>) {
        self.taken.lock().forget(authid);
    }

    /// One that had joined has left.
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
