//! The two sides of a link, and its interface to them.

use std::fmt;

use crosstie_wamp::{Message, Serializer, SessionId};

use crate::counts::Count;

/// One of two realms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The realm of the link's own router.
    Local,
    /// The realm of the other router.
    Remote,
}

/// The kind of a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Subscription,
    Registration,
}

/// The settings of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether a side's subscriptions and registrations are mirrored on the other side, by [`Side`] and [`Kind`].
    pub mirrored: [[bool; 2]; 2],
    /// The authids that get no events on the remote side.
    pub exclude_authid: Vec<String>,
    /// Maximum number of subscriptions of a side that the link tracks, and of registrations likewise.
    pub mirrors_max: usize,
    /// Maximum number of open calls and unacknowledged publications, in either direction.
    pub calls_max: usize,
    /// Maximum length of `forward_for` in carried messages.
    pub forward_for_max: usize,
}

/// A session of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub session: SessionId,
    pub authid: String,
    pub authrole: String,
    /// The realm's name, which all links use for it and for no other.
    pub realm: String,
    /// The serializer of the session.
    pub serializer: Serializer,
}

/// Sends the link's messages.
pub trait Outbox {
    /// Sends a message on a side. An error is a text, and changes nothing.
    fn say(&mut self, side: Side, message: &Message<'_>) -> Result<(), String>;

    fn count(&mut self, what: Count);

    /// Warns the operator of a fault that does not end the link.
    fn warn(&mut self, text: &str);
}

/// The link is over, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended(pub String);

impl Side {
    pub const BOTH: [Self; 2] = [Self::Local, Self::Remote];

    /// The other side.
    pub fn other(self) -> Self {
        match self {
            Self::Local => Self::Remote,
            Self::Remote => Self::Local,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
        }
    }
}

impl Kind {
    pub const BOTH: [Self; 2] = [Self::Subscription, Self::Registration];

    pub fn name(self) -> &'static str {
        match self {
            Self::Subscription => "subscription",
            Self::Registration => "registration",
        }
    }
}

impl Settings {
    pub(crate) fn mirrors(&self, source: Side, kind: Kind) -> bool {
        self.mirrored[source as usize][kind as usize]
    }

    /// Whether the link must know a realm's entries of that kind, on both sides.
    pub(crate) fn watches(&self, kind: Kind) -> bool {
        Side::BOTH.into_iter().any(|side| self.mirrors(side, kind))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the URI belongs to a realm itself, and is never mirrored.
pub(crate) fn is_reserved(uri: &str) -> bool {
    ["wamp.", "crossbar.", "crosstie."]
        .iter()
        .any(|own| uri.starts_with(own))
}
