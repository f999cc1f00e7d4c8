//! What is kept of sessions that an authorizer is asked about, beside the sessions: few of them are at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use crosstie_routing::{Question, SessionKey};
use parking_lot::Mutex;

use crate::wamp::elsewhere::Slot;

/// What is kept of a realm's sessions that are judged.
#[derive(Default)]
pub(crate) struct Judged {
    /// There has been one.
    is_used: AtomicBool,
    judging: Mutex<HashMap<SessionKey, Judging>>,
    /// The `authextra` of those that may be, as CBOR: beyond WELCOME nobody else needs it.
    extras: Mutex<HashMap<SessionKey, Arc<[u8]>>>,
}

/// A message that waits for its verdict.
pub(super) struct Judging {
    pub(super) message: Kept,
    pub(super) question: Question,
    pub(super) slot: Arc<Slot>,
    /// Its procedure takes no options.
    pub(super) is_short: bool,
    /// Nobody is asked any more when it is dropped.
    pub(super) asked: Box<dyn Send>,
}

/// The bytes of a message.
pub(super) enum Kept {
    Own(Vec<u8>),
    /// Those that its receivers may keep, too.
    Shared(Bytes),
}

impl Judged {
    /// How many there are.
    pub(crate) fn pending(&self) -> usize {
        self.judging.lock().len()
    }

    /// Keeps a message until it is judged.
    pub(super) fn insert(&self, session: SessionKey, judging: Judging) {
        self.is_used.store(true, Ordering::Relaxed);
        self.judging.lock().insert(session, judging);
    }

    pub(super) fn take(&self, session: SessionKey) -> Option<Judging> {
        self.judging.lock().remove(&session)
    }

    /// Keeps what a session was told of itself, until it leaves; how many bytes that are.
    pub(crate) fn keep_extra(&self, session: SessionKey, extra: Vec<u8>) -> usize {
        let bytes = extra.len();
        self.is_used.store(true, Ordering::Relaxed);
        self.extras.lock().insert(session, extra.into());
        bytes
    }

    /// The session leaves; how many bytes were kept of it.
    pub(crate) fn forget(&self, session: SessionKey) -> usize {
        if !self.is_used.load(Ordering::Relaxed) {
            return 0;
        }
        let judging = self.judging.lock().remove(&session);
        let extra = self.extras.lock().remove(&session);
        // It is dropped outside the lock: to be asked no more is a message to the realm.
        let held = judging.map_or(0, |judging| judging.message.held());
        held + extra.map_or(0, |extra| extra.len())
    }

    pub(super) fn extra(&self, session: SessionKey) -> Option<Arc<[u8]>> {
        self.extras.lock().get(&session).map(Arc::clone)
    }
}

impl Kept {
    pub(super) fn of(bytes: &[u8], source: Option<&Bytes>) -> Self {
        match source {
            Some(source) => Self::Shared(source.slice_ref(bytes)),
            None => Self::Own(bytes.to_vec()),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    pub(super) fn source(&self) -> Option<&Bytes> {
        match self {
            Self::Own(_) => None,
            Self::Shared(bytes) => Some(bytes),
        }
    }

    /// Bytes that are held for its sake alone.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(_) => 0,
        }
    }
}
