//! The types of queues.

/// `x-queue-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    #[default]
    Classic,
    Quorum,
    Stream,
}

impl QueueKind {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Quorum, Self::Stream];

    /// Its name in arguments.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
            Self::Stream => "stream",
        }
    }

    /// Its name in RabbitMQ's texts.
    pub fn module(self) -> &'static str {
        match self {
            Self::Classic => "rabbit_classic_queue",
            Self::Quorum => "rabbit_quorum_queue",
            Self::Stream => "rabbit_stream_queue",
        }
    }
}
