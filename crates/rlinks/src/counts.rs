//! The counters of a link.

/// A counted event.
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
    /// An event was dropped, because too many were not acknowledged, or the other side cannot represent it.
    EventsDropped,
    /// The other realm rejected an event.
    EventsRefused,
    /// The link itself answered a call with an error.
    CallsRefused,
    /// An event has passed this link before, or too many links.
    EventsReturned,
    /// The same for a call.
    CallsReturned,
    /// The other realm refused a mirror of a topic or procedure.
    MirrorsRefused,
    /// A subscription or registration was ignored, because there are too many.
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

    /// The subject, and the outcome.
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
