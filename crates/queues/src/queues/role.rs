//! What a queue is for. Queues that clients do not see belong to a queue or an exchange, and keep messages for it. They
//! have the records, the depths and the work of any other queue. No name, listing, count or binding leads to them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::entry::Entry;
use super::wheel::Place;
use crate::topology::ExchangeKey;
use crate::{QueueId, QueueKey, Time};

/// What a queue is for.
#[derive(Debug, Default)]
pub(crate) enum Role {
    /// Clients use it.
    #[default]
    Ordinary,
    /// Clients use it, and its dead letters are kept until their targets have accepted them.
    Keeping(Kept),
    /// Hidden: it has the kept dead letters of another queue.
    Letters(Box<Letters>),
    /// Hidden: it has messages that an exchange holds back until they are due.
    Bucket(Bucket),
    /// Hidden: it has the retained messages of MQTT topics.
    Retained,
    /// Hidden, and not yet given to its owner: only during a restore.
    Restored,
}

/// The names of hidden queues begin with this, which no client may choose.
const PREFIX: &str = "amq.crosstie.";
const LETTERS: &str = "letters-";
const BUCKET: &str = "delayed-";
const RETAINED: &str = "retained";

impl Role {
    pub(crate) fn is_hidden(&self) -> bool {
        !matches!(self, Self::Ordinary | Self::Keeping(_))
    }

    pub(crate) fn kept(&self) -> Option<&Kept> {
        match self {
            Self::Keeping(kept) => Some(kept),
            _ => None,
        }
    }

    /// Makes the queue of clients one that keeps its dead letters; returns those.
    pub(super) fn keep(&mut self) -> Option<&mut Kept> {
        if matches!(self, Self::Ordinary) {
            *self = Self::Keeping(Kept::default());
        }
        self.kept_mut()
    }

    pub(super) fn kept_mut(&mut self) -> Option<&mut Kept> {
        match self {
            Self::Keeping(kept) => Some(kept),
            _ => None,
        }
    }

    pub(crate) fn letters(&self) -> Option<&Letters> {
        match self {
            Self::Letters(letters) => Some(letters),
            _ => None,
        }
    }

    pub(super) fn letters_mut(&mut self) -> Option<&mut Letters> {
        match self {
            Self::Letters(letters) => Some(letters),
            _ => None,
        }
    }

    pub(super) fn bucket(&self) -> Option<&Bucket> {
        match self {
            Self::Bucket(bucket) => Some(bucket),
            _ => None,
        }
    }

    pub(super) fn bucket_mut(&mut self) -> Option<&mut Bucket> {
        match self {
            Self::Bucket(bucket) => Some(bucket),
            _ => None,
        }
    }

    /// The name of a bucket.
    pub(super) fn bucket_name(place: Place) -> Arc<str> {
        format!("{PREFIX}{BUCKET}{}-{}", place.level, place.start_ms).into()
    }

    /// The name of the hidden queue with retained messages.
    pub(super) fn retained_name() -> Arc<str> {
        format!("{PREFIX}{RETAINED}").into()
    }

    /// The name of the hidden queue with the dead letters of that queue.
    pub(super) fn letters_name(source: QueueId) -> Arc<str> {
        format!("{PREFIX}{LETTERS}{}", source.0).into()
    }
}

/// Whether a queue of that name is hidden.
pub(crate) fn is_hidden_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether a hidden queue of that name has retained messages.
pub(super) fn is_retained_name(name: &str) -> bool {
    name.strip_prefix(PREFIX) == Some(RETAINED)
}

/// The place of a bucket of that name.
pub(super) fn place_of(name: &str) -> Option<Place> {
    let place = name.strip_prefix(PREFIX)?.strip_prefix(BUCKET)?;
    let (level, start_ms) = place.split_once('-')?;
    Place::restored(level.parse().ok()?, start_ms.parse().ok()?)
}

/// The queue whose dead letters a hidden queue of that name has.
pub(super) fn source_of(name: &str) -> Option<QueueId> {
    let id = name.strip_prefix(PREFIX)?.strip_prefix(LETTERS)?;
    id.parse().ok().map(QueueId)
}

/// A hidden queue's part in the messages that an exchange holds back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// `None` until the exchange is restored.
    pub(super) exchange: Option<ExchangeKey>,
    pub(super) place: Place,
}

/// The letters that a hidden queue has handed over.
#[derive(Debug)]
pub(crate) struct Letters {
    /// The queue whose dead letters these are.
    pub(super) source: QueueKey,
    pub(super) to_try: VecDeque<Letter>,
    pub(super) refused: VecDeque<Letter>,
    /// The queues that have refused one in this pass.
    pub(crate) refusing: BTreeSet<QueueKey>,
    pub(super) body_bytes: usize,
    /// Whether any was accepted in this pass.
    pub(super) has_progress: bool,
    pub(super) wait_ms: u64,
    pub(super) retry_at: Option<Time>,
    /// The number of changes of the topology at the begin of this pass.
    pub(super) changes: u64,
}

#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) entry: Entry,
    /// The queues that have accepted it.
    pub(crate) accepted: Vec<QueueKey>,
    /// Whether exchanges hold it back until it is due.
    pub(crate) is_delayed: bool,
}

/// The dead letters that a queue keeps: they count for its bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// The hidden queue, once there was a letter.
    pub(super) queue: Option<QueueKey>,
    pub(crate) letters: usize,
    pub(crate) body_bytes: u64,
}

impl Letters {
    pub(super) fn of(source: QueueKey) -> Self {
        Self {
            source,
            to_try: VecDeque::new(),
            refused: VecDeque::new(),
            refusing: BTreeSet::new(),
            body_bytes: 0,
            has_progress: false,
            wait_ms: 0,
            retry_at: None,
            changes: 0,
        }
    }

    /// All refused ones are tried again, the first of them first.
    pub(super) fn begin_pass(&mut self, changes: u64) {
        self.changes = changes;
        self.refusing.clear();
        self.refused.append(&mut self.to_try);
        std::mem::swap(&mut self.refused, &mut self.to_try);
    }

    /// Those that are neither in the hidden queue nor gone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let letters = self.to_try.iter().chain(&self.refused);
        letters.map(|letter| &letter.entry)
    }
}
