//! The effect of a key's change on a running node.

/// What a reload does with a changed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The change applies to everything, sessions included.
    AtOnce,
    /// The change applies to connections and sessions that begin after it.
    NewSessions,
    /// The change needs a restart of the node.
    Restart,
}

impl Effect {
    /// The effect in words, as reports and the documentation state it.
    pub fn words(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::NewSessions => "new sessions",
            Self::Restart => "needs a restart",
        }
    }
}
