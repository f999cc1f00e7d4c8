//! What a vhost and the keeper of its streams' files tell each other.

use std::sync::Arc;

use crate::{MessageContent, QueueId, Time};

/// A change of a stream, for the keeper of its files.
#[derive(Clone, Debug)]
pub enum StreamChange {
    Appended {
        id: QueueId,
        append: StreamAppend,
    },
    /// Its bounds have changed.
    Bounded {
        id: QueueId,
        limits: StreamLimits,
    },
    /// With its messages.
    Deleted {
        id: QueueId,
    },
}

/// A message at the end of a stream.
#[derive(Clone, Debug)]
pub struct StreamAppend {
    /// Higher than all earlier ones of its stream. There may be gaps.
    pub offset: u64,
    /// Not earlier than that of any earlier one.
    pub at: Time,
    pub limits: StreamLimits,
    /// The stream's name.
    pub name: Arc<str>,
    pub content: Arc<MessageContent>,
}

/// The bounds of a stream. Whole segments go, the oldest first, and never the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLimits {
    /// `x-max-length-bytes`.
    pub bytes_max: Option<u64>,
    /// `x-max-age`.
    pub age_max_ms: Option<u64>,
    /// `x-stream-max-segment-size-bytes`.
    pub segment_bytes_max: Option<u64>,
}

/// A stream that a vhost has restored, and whose files are to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDeclared {
    pub id: QueueId,
    pub name: Arc<str>,
    pub limits: StreamLimits,
}

/// The part of a stream that its files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamExtent {
    /// The first offset that is kept.
    pub first: u64,
    /// The offset behind the last one.
    pub end: u64,
    /// The time of the last message.
    pub last_at: Time,
    pub bytes: u64,
}
