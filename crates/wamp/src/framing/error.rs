//! Errors below the level of a message: in a peer's bytes, and in sending.

use std::fmt;

use super::websocket::MessageKind;

/// A peer broke the rules of its framing: the connection cannot go on.
///
/// The text is fit for a Close frame's reason; [`FramingError::close_code`] is its code.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// A message or frame is longer than this side accepts.
    TooLong { length: u64, length_max: usize },
    /// A compressed message is longer than this side accepts once it is inflated.
    InflatedTooLong { length_max: usize },

    /// RawSocket: a first prefix byte with reserved bits set.
    PrefixReserved { byte: u8 },
    /// RawSocket: a type of transport message that is none of message, ping, pong.
    PrefixType { kind: u8 },
    /// RawSocket: the bit that means 2^24 bytes together with another length.
    PrefixLength { length: u32 },

    /// WebSocket: reserved bits (of the first byte) that no extension gave a meaning.
    ReservedBits { bits: u8 },
    /// WebSocket: an opcode without meaning.
    Opcode { opcode: u8 },
    /// WebSocket: a client must mask its frames.
    Unmasked,
    /// WebSocket: a server must not mask its frames.
    Masked,
    /// WebSocket: a length not in its shortest form, or above 2^63 - 1.
    LengthForm { length: u64 },
    /// WebSocket: a control frame in fragments.
    ControlFragmented { opcode: u8 },
    /// WebSocket: a control frame above 125 bytes.
    ControlTooLong { opcode: u8 },
    /// WebSocket: a continuation of nothing.
    ContinuationUnexpected,
    /// WebSocket: a new message inside another one's fragments.
    ContinuationExpected { opcode: u8 },
    /// WebSocket: text although the subprotocol is binary, or the other way round.
    Kind { expected: MessageKind },
    /// WebSocket: text, or a Close frame's reason, that is not UTF-8.
    Utf8,
    /// WebSocket: a Close frame of a single byte.
    CloseLength,
    /// WebSocket: a close code that must not be sent.
    CloseCode { code: u16 },
    /// WebSocket: a compressed message that does not inflate.
    Deflate,

    /// A batch without a message.
    BatchEmpty,
    /// A batch that ends inside a message.
    BatchCut,
}

impl FramingError {
    /// The code to close a WebSocket with (RFC 6455 section 7.4.1).
    pub fn close_code(&self) -> u16 {
        match self {
            Self::TooLong { .. } | Self::InflatedTooLong { .. } => 1009,
            Self::Kind { .. } => 1003,
            Self::Utf8 | Self::Deflate => 1007,
            _ => 1002,
        }
    }
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLong { length, length_max } => {
                write!(f, "expected at most {length_max} bytes, got {length}")
            }
            Self::InflatedTooLong { length_max } => {
                write!(f, "expected at most {length_max} bytes, inflated to more")
            }
            Self::PrefixReserved { byte } => {
                write!(f, "reserved bits in prefix byte {byte:#04x}")
            }
            Self::PrefixType { kind } => {
                write!(f, "expected message, ping or pong, got type {kind}")
            }
            Self::PrefixLength { length } => {
                write!(f, "length bit 24 together with length {length}")
            }
            Self::ReservedBits { bits } => write!(f, "reserved bits {bits:#04x} without meaning"),
            Self::Opcode { opcode } => write!(f, "unknown opcode {opcode}"),
            Self::Unmasked => f.write_str("expected masked frames, got an unmasked one"),
            Self::Masked => f.write_str("expected unmasked frames, got a masked one"),
            Self::LengthForm { length } => write!(f, "length {length} in the wrong form"),
            Self::ControlFragmented { opcode } => {
                write!(f, "control frame (opcode {opcode}) in fragments")
            }
            Self::ControlTooLong { opcode } => {
                write!(f, "control frame (opcode {opcode}) above 125 bytes")
            }
            Self::ContinuationUnexpected => f.write_str("continuation without a message begun"),
            Self::ContinuationExpected { opcode } => {
                write!(f, "expected a continuation, got opcode {opcode}")
            }
            Self::Kind { expected } => write!(f, "expected {expected} messages"),
            Self::Utf8 => f.write_str("invalid UTF-8"),
            Self::CloseLength => f.write_str("expected 0 or at least 2 bytes in Close, got 1"),
            Self::CloseCode { code } => write!(f, "close code {code} must not be sent"),
            Self::Deflate => f.write_str("compressed message does not inflate"),
            Self::BatchEmpty => f.write_str("batch without a message"),
            Self::BatchCut => f.write_str("batch ends inside a message"),
        }
    }
}

impl std::error::Error for FramingError {}

/// Why no frame was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError<E> {
    /// The body's writer failed.
    Write(E),
    /// The body is longer than the framing can say.
    TooLong { length: usize, length_max: usize },
}

impl<E: fmt::Display> fmt::Display for FrameError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::TooLong { length, length_max } => write!(
                f,
                "message of {length} bytes in a framing for at most {length_max}"
            ),
        }
    }
}

impl<E: std::error::Error> std::error::Error for FrameError<E> {}
