//! The types of queues.

crosstie_collections::named! {
    /// `x-queue-type`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum QueueKind {
        #[default]
        Classic = "classic",
        Quorum = "quorum",
        Stream = "stream",
    }
}

impl QueueKind {
    /// Its name in RabbitMQ's texts.
    pub fn module(self) -> &'static str {
        match self {
            Self::Classic => "rabbit_classic_queue",
            Self::Quorum => "rabbit_quorum_queue",
            Self::Stream => "rabbit_stream_queue",
        }
    }
}
