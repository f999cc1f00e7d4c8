//! What is between two nodes: an order without a gap, or nothing.
//!
//! Either node numbers its side, anew whenever something may have been lost; it is open where each knows the other's
//! number. What is said has the number of the receiver's side, so that nothing of an earlier pair is taken for one of
//! this; and it is counted, so that whatever is missing shows with what comes next, or with a heartbeat.

use std::mem;

/// Why what was between two nodes began anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Something that was said between has not come.
    Gap,
    /// A heartbeat showed that what was said last has not come.
    Tail,
    /// The other node has another connection to the engine.
    Epoch,
    /// It has begun anew itself.
    Other,
    /// It has not been heard for too long.
    Silent,
    /// It has ended.
    Left,
    /// This node's connection has gone.
    Detached,
    /// There was no room on the way out.
    Full,
    /// It lives, and does not answer what it is asked.
    Mute,
    /// It speaks no version that this node speaks.
    Version,
}

impl Cause {
    pub const ALL: [Self; 10] = [
        Self::Gap,
        Self::Tail,
        Self::Epoch,
        Self::Other,
        Self::Silent,
        Self::Left,
        Self::Detached,
        Self::Full,
        Self::Mute,
        Self::Version,
    ];

    /// The label of its metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Tail => "tail",
            Self::Epoch => "epoch",
            Self::Other => "other",
            Self::Silent => "silent",
            Self::Left => "left",
            Self::Detached => "detached",
            Self::Full => "full",
            Self::Mute => "mute",
            Self::Version => "version",
        }
    }
}

/// This node's side, and what it knows of the other.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// The number of this side; 0 before the first.
    pub(crate) own: u64,
    /// That of the other one; 0 while it is not known.
    pub(crate) other: u64,
    pub(crate) is_open: bool,
    /// How much was said, and heard.
    said: u64,
    heard: u64,
}

/// What an agreement has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// It was agreed before.
    Known,
    /// It is open now: the other one is to know.
    Opened,
    /// The other one does not know this side's number, or not that both know.
    Unknown,
}

impl Pair {
    /// Begins anew, under that number.
    pub(crate) fn begin(&mut self, own: u64) {
        *self = Self {
            own,
            other: self.other,
            ..Self::default()
        };
    }

    /// The other node says its number, which it knows of this side, and whether it is open there.
    pub(crate) fn agree(&mut self, other: u64, own: u64, is_open: bool) -> Agreed {
        self.other = other;
        if own != self.own {
            return Agreed::Unknown;
        }
        match (mem::replace(&mut self.is_open, true), is_open) {
            (false, _) => Agreed::Opened,
            (true, true) => Agreed::Known,
            (true, false) => Agreed::Unknown,
        }
    }

    /// The number of what is said next.
    pub(crate) fn say(&mut self) -> u64 {
        self.said += 1;
        self.said
    }

    /// Takes what was said for this side; whether nothing is missing. `None`: it is of an earlier pair.
    pub(crate) fn hear(&mut self, own: u64, sequence: u64) -> Option<bool> {
        if !self.is_open || own != self.own {
            return None;
        }
        self.heard += 1;
        Some(sequence == self.heard)
    }

    /// What a heartbeat says of it: the number of the other side, and what was said to it last.
    pub(crate) fn said(&self) -> (u64, u64) {
        (self.other, self.said)
    }

    /// Why it has to begin anew, from what the other node's heartbeat says.
    pub(crate) fn missing(&self, said: Option<(u64, u64)>) -> Option<Cause> {
        match said {
            _ if !self.is_open => None,
            Some((own, said)) if own == self.own => (said > self.heard).then_some(Cause::Tail),
            _ => Some(Cause::Other),
        }
    }
}
