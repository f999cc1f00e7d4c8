//! A pair of nodes: ordered messages without gaps, or none.
//!
//! Each node numbers its side, anew whenever a message may be lost; the pair is open once each knows the other's
//! number. Messages have the number of the receiver's side, so that those of an earlier pair are recognized. They are
//! also counted, so that the next message or heartbeat reveals a missing one.

use std::mem;

crosstie_collections::named! {
    /// Why a pair ended, by the label of its metric.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Cause {
        /// A message in between is missing.
        Gap = "gap",
        /// A heartbeat showed that the last messages are missing.
        Tail = "tail",
        /// The other node has another connection to the engine.
        Epoch = "epoch",
        /// The other node has ended the pair.
        Other = "other",
        /// The other node was silent for too long.
        Silent = "silent",
        /// The other node has left.
        Left = "left",
        /// This node's connection has ended.
        Detached = "detached",
        /// The output was full.
        Full = "full",
        /// The other node is alive, and does not answer.
        Mute = "mute",
        /// The other node has no common version.
        Version = "version",
    }
}

/// This node's side, and its knowledge of the other.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// The number of this side; 0 before the first.
    pub(crate) own: u64,
    /// The number of the other side; 0 while unknown.
    pub(crate) other: u64,
    pub(crate) is_open: bool,
    /// Number of sent and of received messages.
    said: u64,
    heard: u64,
}

/// The result of an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// The pair was open before.
    Known,
    /// The pair is open now: the other node must learn that.
    Opened,
    /// The other node does not know this side's number, or not that both know.
    Unknown,
}

impl Pair {
    /// Starts over with that number.
    pub(crate) fn begin(&mut self, own: u64) {
        *self = Self {
            own,
            other: self.other,
            ..Self::default()
        };
    }

    /// Handles the other node's number, the number it knows of this side, and whether it considers the pair open.
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

    /// The number of the next message.
    pub(crate) fn say(&mut self) -> u64 {
        self.said += 1;
        self.said
    }

    /// Counts a message for this side. Returns whether none is missing; `None` if it belongs to an earlier pair.
    pub(crate) fn hear(&mut self, own: u64, sequence: u64) -> Option<bool> {
        if !self.is_open || own != self.own {
            return None;
        }
        self.heard += 1;
        Some(sequence == self.heard)
    }

    /// The contents of a heartbeat: the number of the other side, and the count of messages to it.
    pub(crate) fn said(&self) -> (u64, u64) {
        (self.other, self.said)
    }

    /// Why the pair must end, according to the other node's heartbeat.
    pub(crate) fn missing(&self, said: Option<(u64, u64)>) -> Option<Cause> {
        match said {
            _ if !self.is_open => None,
            Some((own, said)) if own == self.own => (said > self.heard).then_some(Cause::Tail),
            _ => Some(Cause::Other),
        }
    }
}
