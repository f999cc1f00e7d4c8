//! The form of what nodes say to each other.
//!
//! ```text
//! 0        1      2       3            4            8             16         24
//! | version | kind | flags | serializer | link epoch | incarnation | sequence | fields … 0 | rest
//! ```
//!
//! Numbers have their highest octet first. A field that is not known is skipped, so that one may be added; what an
//! older node must not skip is another kind, in another version. The head stays as it is, and so does what says who is there:
//! with it each node says which versions it takes, and others send it nothing else, see [`crate::Versions`].

use crosstie_wamp::Serializer;

use crate::Refusal;
use crate::fields::Fields;

/// Octets of the head.
pub const HEAD_BYTES: usize = 24;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An event, for the sessions of other nodes.
    Event,
    /// A node is there, and wants to hear who else is.
    Hello,
    /// A node is there.
    Heartbeat,
    /// A node ends in good order.
    Leave,
    /// The nodes that it names are to answer: what its sender asked for before is known where they are.
    Barrier,
    /// The answer.
    Passed,
    /// Two nodes agree on what is between them: the number of the sender's side, and what it knows of the other's.
    Pair,
    /// What a realm says to another node's, see [`crosstie_routing::Crossing`]; counted up from 1 in each pair.
    Call,
    Continue,
    Cancel,
    Result,
    Error,
    Bounce,
    Offer,
    Withdraw,
    Revoke,
    Ask,
    Known,
    /// What the meta API is asked, and what it answers.
    Question,
    Answer,
}

impl Kind {
    pub const ALL: [Self; 20] = [
        Self::Event,
        Self::Hello,
        Self::Heartbeat,
        Self::Leave,
        Self::Barrier,
        Self::Passed,
        Self::Pair,
        Self::Call,
        Self::Continue,
        Self::Cancel,
        Self::Result,
        Self::Error,
        Self::Bounce,
        Self::Offer,
        Self::Withdraw,
        Self::Revoke,
        Self::Ask,
        Self::Known,
        Self::Question,
        Self::Answer,
    ];

    /// Whether every node takes it, whatever versions it speaks.
    pub(crate) fn is_presence(self) -> bool {
        matches!(self, Self::Hello | Self::Heartbeat | Self::Leave)
    }

    fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The label of its metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Hello => "hello",
            Self::Heartbeat => "heartbeat",
            Self::Leave => "leave",
            Self::Barrier => "barrier",
            Self::Passed => "passed",
            Self::Pair => "pair",
            Self::Call => "call",
            Self::Continue => "continue",
            Self::Cancel => "cancel",
            Self::Result => "result",
            Self::Error => "error",
            Self::Bounce => "bounce",
            Self::Offer => "offer",
            Self::Withdraw => "withdraw",
            Self::Revoke => "revoke",
            Self::Ask => "ask",
            Self::Known => "known",
            Self::Question => "question",
            Self::Answer => "answer",
        }
    }
}

/// The first 24 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub version: u8,
    pub kind: Kind,
    /// Of the rest.
    pub serializer: Serializer,
    /// Counts the connections of its sender to the engine.
    pub epoch: u32,
    /// Its sender: a number that it drew when it was started.
    pub incarnation: u64,
    /// Counts its sender's events in the epoch, or what it said in a pair; 0 of anything else.
    pub sequence: u64,
}

/// A frame, borrowing from its octets.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    pub head: Head,
    pub(crate) fields: Fields<'f>,
    pub(crate) rest: &'f [u8],
}

impl Head {
    /// Appends the octets; fields, their end and the rest follow.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let serializer = self.serializer.index() as u8;
        out.extend_from_slice(&[self.version, self.kind.code(), 0, serializer]);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&self.incarnation.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
    }
}

impl<'f> Frame<'f> {
    /// Reads a frame. Its rest is not looked at.
    pub fn decode(bytes: &'f [u8]) -> Result<Self, Refusal> {
        let (head, rest) = bytes
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or(Refusal::Frame)?;
        let [version, kind, _flags, serializer, numbers @ ..] = head;
        // A message of several frames begins so, and none of them does.
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
