//! What is counted of a link.

/// What happened once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// An event of the local realm was published in the remote one.
    EventsToRemote,
    /// The reverse.
    EventsToLocal,
    /// A call in the local realm was made in the remote one.
    CallsToRemote,
    /// The reverse.
    CallsToLocal,
    /// An event was not carried, because too many were not acknowledged, or it cannot be said there.
    EventsDropped,
    /// An event was not taken by the other realm.
    EventsRefused,
    /// A call was answered with an error of the link's own.
    CallsRefused,
    /// An event has come through this link before, or through too many.
    EventsReturned,
    /// A call likewise.
    CallsReturned,
    /// A topic or procedure was not mirrored, because the other realm refused.
    MirrorsRefused,
    /// A subscription or registration was not looked at, because there are too many.
    MirrorsBeyond,
}

impl Count {
    pub const ALL: [Self; 11] = [
        Self::EventsToRemote,
        Self::EventsToLocal,
        Self::CallsToRemote,
        Self::CallsToLocal,
        Self::EventsDropped,
        Self::EventsRefused,
        Self::CallsRefused,
        Self::EventsReturned,
        Self::CallsReturned,
        Self::MirrorsRefused,
        Self::MirrorsBeyond,
    ];

    /// What it is about, and what became of it.
    pub fn labels(self) -> (&'static str, &'static str) {
        match self {
            Self::EventsToRemote => ("event", "to_remote"),
            Self::EventsToLocal => ("event", "to_local"),
            Self::CallsToRemote => ("call", "to_remote"),
            Self::CallsToLocal => ("call", "to_local"),
            Self::EventsDropped => ("event", "dropped"),
            Self::EventsRefused => ("event", "refused"),
            Self::CallsRefused => ("call", "refused"),
            Self::EventsReturned => ("event", "returned"),
            Self::CallsReturned => ("call", "returned"),
            Self::MirrorsRefused => ("mirror", "refused"),
            Self::MirrorsBeyond => ("mirror", "beyond"),
        }
    }
}
