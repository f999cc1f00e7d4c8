//! What a full queue does.

/// `x-overflow`: the message that a full queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Overflow {
    #[default]
    DropHead,
    /// As [`Self::DropHead`] until the queue is within its bounds, and then as [`Self::RejectPublish`]: a policy has set
    /// a bound and this at once.
    DropHeadOnce,
    DropHeadOnceDeadLetter,
    RejectPublish,
    RejectPublishDeadLetter,
}

impl Overflow {
    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "drop-head" => Self::DropHead,
            "reject-publish" => Self::RejectPublish,
            "reject-publish-dlx" => Self::RejectPublishDeadLetter,
            _ => return None,
        })
    }

    /// Whether older messages are dropped for newer ones.
    #[inline]
    pub(crate) fn drops_head(self) -> bool {
        matches!(
            self,
            Self::DropHead | Self::DropHeadOnce | Self::DropHeadOnceDeadLetter
        )
    }

    /// The one that follows from `before` at a change of policies: a classic queue first drops what a new bound leaves no
    /// room for, and rejects later messages, as in RabbitMQ.
    pub(crate) fn after(self, before: Self) -> Self {
        match self {
            Self::RejectPublish if before.drops_head() => Self::DropHeadOnce,
            Self::RejectPublishDeadLetter if before.drops_head() => Self::DropHeadOnceDeadLetter,
            after => after,
        }
    }

    /// The one that holds once the queue is within its bounds.
    #[inline]
    pub(crate) fn settled(self) -> Self {
        match self {
            Self::DropHeadOnce => Self::RejectPublish,
            Self::DropHeadOnceDeadLetter => Self::RejectPublishDeadLetter,
            other => other,
        }
    }
}
