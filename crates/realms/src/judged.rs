//! State of sessions that are subject to an authorizer, kept apart from the sessions because few need it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use crosstie_routing::{Question, SessionKey};
use parking_lot::Mutex;

use crate::elsewhere::Slot;

/// The state of a realm's judged sessions.
#[derive(Default)]
pub struct Judged {
    /// Set with the first judged session.
    is_used: AtomicBool,
    judging: Mutex<HashMap<SessionKey, Judging>>,
    /// `authextra` of sessions that may be judged, as CBOR. After WELCOME no other code needs it.
    extras: Mutex<HashMap<SessionKey, Arc<[u8]>>>,
}

/// A message that waits for its verdict.
pub(super) struct Judging {
    pub(super) message: Kept,
    pub question: Question,
    pub(super) slot: Arc<Slot>,
    /// The authorizer accepts no `options` argument.
    pub(super) is_short: bool,
    /// Dropping it cancels the question.
    pub asked: Box<dyn Send>,
}

/// The bytes of a message.
pub enum Kept {
    Own(Vec<u8>),
    /// Bytes that receivers may keep as well.
    Shared(Bytes),
}

impl Judged {
    /// Number of waiting messages.
    pub fn pending(&self) -> usize {
        self.judging.lock().len()
    }

    /// Keeps a message until its verdict.
    pub(super) fn insert(&self, session: SessionKey, judging: Judging) {
        self.is_used.store(true, Ordering::Relaxed);
        self.judging.lock().insert(session, judging);
    }

    pub(super) fn take(&self, session: SessionKey) -> Option<Judging> {
        self.judging.lock().remove(&session)
    }

    /// Keeps a session's `authextra` until it leaves. Returns the number of bytes.
    pub(crate) fn keep_extra(&self, session: SessionKey, extra: Vec<u8>) -> usize {
        let bytes = extra.len();
        self.is_used.store(true, Ordering::Relaxed);
        self.extras.lock().insert(session, extra.into());
        bytes
    }

    /// The session leaves. Returns the number of bytes that were kept for it.
    pub(crate) fn forget(&self, session: SessionKey) -> usize {
        if !self.is_used.load(Ordering::Relaxed) {
            return 0;
        }
        let judging = self.judging.lock().remove(&session);
        let extra = self.extras.lock().remove(&session);
        // Dropped outside the lock, because cancelling the question sends a message to the realm.
        let held = judging.map_or(0, |judging| judging.message.held());
        held + extra.map_or(0, |extra| extra.len())
    }

    pub(super) fn extra(&self, session: SessionKey) -> Option<Arc<[u8]>> {
        self.extras.lock().get(&session).map(Arc::clone)
    }
}

impl Kept {
    pub fn of(bytes: &[u8], source: Option<&Bytes>) -> Self {
        match source {
            Some(source) => Self::Shared(source.slice_ref(bytes)),
            None => Self::Own(bytes.to_vec()),
        }
    }

    pub fn bytes(&self) -> &[u8] {
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

    /// Bytes that only this message keeps in memory.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Shared(_) => 0,
        }
    }
}
