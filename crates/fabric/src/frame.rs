//! The wire format of messages between nodes.
//!
//! ```text
//! 0        1      2       3            4            8             16         24
//! | version | kind | flags | serializer | link epoch | incarnation | sequence | fields … 0 | rest
//! ```
//!
//! Numbers are big-endian. Unknown fields are skipped, so that a field may be added; a change that older nodes must not
//! skip needs a new kind in a new version. The head never changes, and neither do the kinds that announce a node: they
//! state the versions that the node accepts, and others send it nothing else, see [`crate::Versions`].

use crosstie_wamp::Serializer;

use crate::Refusal;
use crate::fields::Fields;

/// Length of the head.
pub const HEAD_BYTES: usize = 24;

crosstie_collections::named! {
    /// The kind of a frame; the order is that of the codes on the wire. A name is the label of a metric.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// An event, for the sessions of other nodes.
        Event = "event",
        /// A node has started, and asks others to announce themselves.
        Hello = "hello",
        /// A node is alive.
        Heartbeat = "heartbeat",
        /// A node leaves in order.
        Leave = "leave",
        /// Asks the named nodes to answer: their answers show that the sender's earlier subscriptions are known there.
        Barrier = "barrier",
        /// The answer to a barrier.
        Passed = "passed",
        /// The agreement on a pair: the number of the sender's side, and the number that it knows of the other.
        Pair = "pair",
        /// A message between realms, see [`crosstie_routing::Crossing`]; numbered from 1 in each pair.
        Call = "call",
        Continue = "continue",
        Cancel = "cancel",
        Result = "result",
        Error = "error",
        Bounce = "bounce",
        Offer = "offer",
        Withdraw = "withdraw",
        Revoke = "revoke",
        Ask = "ask",
        Known = "known",
        /// A question about the meta API, and its answer.
        Question = "question",
        Answer = "answer",
    }
}

impl Kind {
    /// Whether every node accepts it, whatever versions it speaks.
    pub(crate) fn is_presence(self) -> bool {
        matches!(self, Self::Hello | Self::Heartbeat | Self::Leave)
    }

    fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// The first 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub version: u8,
    pub kind: Kind,
    /// The serializer of the rest.
    pub serializer: Serializer,
    /// Counts the sender's connections to the engine.
    pub epoch: u32,
    /// The sender: a number drawn at its start.
    pub incarnation: u64,
    /// Counts the sender's events in the epoch, or its frames in a pair; 0 for other kinds.
    pub sequence: u64,
}

/// A frame, borrowing from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    pub head: Head,
    pub(crate) fields: Fields<'f>,
    pub(crate) rest: &'f [u8],
}

impl Head {
    /// Appends the head; fields, their end and the rest follow.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let serializer = self.serializer.index() as u8;
        out.extend_from_slice(&[self.version, self.kind.code(), 0, serializer]);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&self.incarnation.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
    }
}

impl<'f> Frame<'f> {
    /// Decodes a frame. Its rest is not checked.
    pub fn decode(bytes: &'f [u8]) -> Result<Self, Refusal> {
        let (head, rest) = bytes
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or(Refusal::Frame)?;
        let [version, kind, _flags, serializer, numbers @ ..] = head;
        // A packed message begins with 0, and no frame does.
        if *version == 0 {
            return Err(Refusal::Frame);
        }
        let kind = Kind::from_code(*kind).ok_or(Refusal::Kind)?;
        let mut serializers = Serializer::ALL.into_iter();
        let serializer = serializers.find(|known| known.index() == usize::from(*serializer));
        let number = |at: usize, count: usize| {
            let octets = &numbers[at..at + count];
            octets
                .iter()
                .fold(0, |sum, octet| sum << 8 | u64::from(*octet))
        };
        let head = Head {
            version: *version,
            kind,
            serializer: serializer.ok_or(Refusal::Frame)?,
            epoch: number(0, 4) as u32,
            incarnation: number(4, 8),
            sequence: number(12, 8),
        };
        let (fields, rest) = Fields::split(rest)?;
        Ok(Self { head, fields, rest })
    }
}
