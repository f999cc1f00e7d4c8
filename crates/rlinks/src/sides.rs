//! The two sides of a link, and what it needs to know and to have of them.

use std::fmt;

use crosstie_wamp::{Message, Serializer, SessionId};

use crate::counts::Count;

/// One of two realms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The realm of the router that has the link.
    Local,
    /// The realm that it connects to.
    Remote,
}

/// What is mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Subscription,
    Registration,
}

/// How a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether what a side's sessions have is mirrored on the other side, by [`Side`] and [`Kind`].
    pub mirrored: [[bool; 2]; 2],
    /// Who is told of no event on the remote side.
    pub exclude_authid: Vec<String>,
    /// Subscriptions of a side, and registrations likewise, that the link keeps account of.
    pub mirrors_max: usize,
    /// Calls, and publications that are not acknowledged, in either direction.
    pub calls_max: usize,
    /// Those who stand in `forward_for` of what is carried.
    pub forward_for_max: usize,
}

/// A session of the link, as its realm knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub session: SessionId,
    pub authid: String,
    pub authrole: String,
    /// The realm, by a name that all links use for it and for no other.
    pub realm: String,
    /// In which the session is told and says everything.
    pub serializer: Serializer,
}

/// Where the link says what it has to say.
pub trait Outbox {
    /// Says something on a side. What cannot be said is an error in words, and leaves everything as it was.
    fn say(&mut self, side: Side, message: &Message<'_>) -> Result<(), String>;

    fn count(&mut self, what: Count);

    /// Tells the operator of something that is no end of the link.
    fn warn(&mut self, text: &str);
}

/// The link is over: why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended(pub String);

impl Side {
    pub const BOTH: [Self; 2] = [Self::Local, Self::Remote];

    /// The other one.
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

    /// Whether the link has to know of what is held, on both sides.
    pub(crate) fn watches(&self, kind: Kind) -> bool {
        Side::BOTH.into_iter().any(|side| self.mirrors(side, kind))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What no realm has of another: a realm's own.
pub(crate) fn is_reserved(uri: &str) -> bool {
    ["wamp.", "crossbar.", "crosstie."]
        .iter()
        .any(|own| uri.starts_with(own))
}
