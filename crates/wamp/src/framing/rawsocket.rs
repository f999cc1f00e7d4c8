//! WAMP over RawSocket: a handshake of four bytes each way, then length-prefixed messages.

use std::fmt;
use std::ops::Range;

use super::{FrameError, FramingError, Item, Step};
use crate::Serializer;

/// The first byte of a handshake; no HTTP request begins with it.
pub const MAGIC: u8 = 0x7F;
/// The shortest maximum a peer can announce.
pub const LENGTH_MAX_LEAST: usize = 1 << 9;
/// The shortest maximum a router can work with: its WELCOME must fit.
const PEER_LENGTH_MAX_LEAST: usize = 1 << 10;
/// The longest message a prefix can describe.
pub const LENGTH_MAX: usize = 1 << 24;
/// Bytes before each message.
pub const PREFIX_LENGTH: usize = 4;

/// The router's side of the handshake. WAMP, "RawSocket Transport".
#[derive(Debug)]
pub struct ServerHandshake;

impl ServerHandshake {
    /// Answers a client's request with one of `offered`.
    ///
    /// Only powers of two can be announced: the client learns the largest that is not above
    /// `receive_length_max`, and [`Accepted::receive_length_max`] is what to hold it to.
    pub fn accept(
        bytes: [u8; 4],
        offered: &[Serializer],
        receive_length_max: usize,
    ) -> Result<Accepted, HandshakeError> {
        let [magic, second, reserved @ ..] = bytes;
        if magic != MAGIC {
            return Err(HandshakeError::Magic { byte: magic });
        }
        if reserved != [0, 0] {
            return Err(HandshakeError::ReservedBits);
        }
        let number = second & 0x0F;
        let serializer = serializer_of(number)
            .filter(|serializer| offered.contains(serializer))
            .ok_or(HandshakeError::Serializer { number })?;
        if length_of(second >> 4) < PEER_LENGTH_MAX_LEAST {
            return Err(HandshakeError::LengthMax);
        }
        let exponent = length_exponent(receive_length_max);
        Ok(Accepted {
            serializer,
            peer_length_max: length_of(second >> 4),
            receive_length_max: length_of(exponent),
            reply: [MAGIC, exponent << 4 | number, 0, 0],
        })
    }
}

/// The client's side of the handshake.
#[derive(Clone, Copy, Debug)]
pub struct ClientHandshake {
    pub serializer: Serializer,
    pub receive_length_max: usize,
}

impl ClientHandshake {
    /// The bytes to send first.
    pub fn request(&self) -> [u8; 4] {
        let exponent = length_exponent(self.receive_length_max);
        [MAGIC, exponent << 4 | number_of(self.serializer), 0, 0]
    }

    /// Reads the router's answer.
    pub fn accept(&self, bytes: [u8; 4]) -> Result<Accepted, HandshakeError> {
        let [magic, second, reserved @ ..] = bytes;
        if magic != MAGIC {
            return Err(HandshakeError::Magic { byte: magic });
        }
        if reserved != [0, 0] {
            return Err(HandshakeError::ReservedBits);
        }
        let number = second & 0x0F;
        if number == 0 {
            return Err(HandshakeError::Refused(second >> 4));
        }
        if number != number_of(self.serializer) {
            return Err(HandshakeError::Serializer { number });
        }
        Ok(Accepted {
            serializer: self.serializer,
            peer_length_max: length_of(second >> 4),
            receive_length_max: announced_length(self.receive_length_max),
            reply: bytes,
        })
    }
}

/// The parameters that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub serializer: Serializer,
    /// The longest message that may be sent to the peer; see [`fits`].
    pub peer_length_max: usize,
    /// The longest message the peer was told it may send.
    pub receive_length_max: usize,
    /// The router's answer: a router sends it, a client has read it.
    pub reply: [u8; 4],
}

/// Why there is no agreement.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The peer does not speak RawSocket.
    Magic { byte: u8 },
    /// The request names a serializer not on offer, or the answer another than was asked for.
    Serializer { number: u8 },
    /// The other side's maximum length is too small to work with.
    LengthMax,
    /// Bytes that must be zero are not.
    ReservedBits,
    /// There are as many connections as are allowed.
    ConnectionsMax,
    /// The router refused with this code.
    Refused(u8),
}

impl HandshakeError {
    /// The answer of a router before it closes. None: the peer would not understand it.
    pub fn reply(&self) -> Option<[u8; 4]> {
        let code = match self {
            Self::Serializer { .. } => 1,
            Self::LengthMax => 2,
            Self::ReservedBits => 3,
            Self::ConnectionsMax => 4,
            Self::Magic { .. } | Self::Refused(_) => return None,
        };
        Some([MAGIC, code << 4, 0, 0])
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Magic { byte } => {
                write!(f, "expected first byte {MAGIC:#04x}, got {byte:#04x}")
            }
            Self::Serializer { number } => write!(f, "serializer {number} unsupported"),
            Self::LengthMax => f.write_str("maximum message length unacceptable"),
            Self::ReservedBits => f.write_str("use of reserved bits"),
            Self::ConnectionsMax => f.write_str("maximum connection count reached"),
            Self::Refused(1) => f.write_str("router refused: serializer unsupported"),
            Self::Refused(2) => f.write_str("router refused: maximum message length unacceptable"),
            Self::Refused(3) => f.write_str("router refused: use of reserved bits"),
            Self::Refused(4) => f.write_str("router refused: maximum connection count reached"),
            Self::Refused(code) => write!(f, "router refused with unknown code {code}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Finds messages, pings and pongs behind their prefixes.
#[derive(Clone, Debug)]
pub struct Decoder {
    length_max: u32,
}

impl Decoder {
    /// `length_max` is the announced length.
    pub fn new(length_max: usize) -> Self {
        Self {
            length_max: length_max.min(LENGTH_MAX) as u32,
        }
    }

    /// From the next message on accepts `length_max`, whatever was announced.
    pub fn set_length_max(&mut self, length_max: usize) {
        *self = Self::new(length_max);
    }

    /// The range of a message's bytes in `input`, if it is all of the input. Then [`Decoder::next`] finds it there.
    pub fn whole(&self, input: &[u8]) -> Option<Range<usize>> {
        let prefix = u32::from_be_bytes(*input.first_chunk::<PREFIX_LENGTH>()?);
        let is_plain = prefix <= self.length_max && prefix >> 24 == 0;
        let is_whole = is_plain && prefix as usize == input.len() - PREFIX_LENGTH;
        is_whole.then_some(PREFIX_LENGTH..input.len())
    }

    /// The item at the start of `input`, if it is complete.
    #[inline]
    pub fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        let Some((prefix, rest)) = input.split_first_chunk::<PREFIX_LENGTH>() else {
            return Ok(Step::wants(PREFIX_LENGTH));
        };
        // A plain message has a first byte of zero, so its prefix is its length.
        let prefix = u32::from_be_bytes(*prefix);
        let kind = (prefix >> 24) as u8;
        let length = match kind {
            0 => prefix,
            _ => uncommon_length(prefix)?,
        };
        if length > self.length_max {
            return Err(FramingError::TooLong {
                length: u64::from(length),
                length_max: self.length_max as usize,
            });
        }
        let consumed = PREFIX_LENGTH + length as usize;
        let Some(bytes) = rest.get(..length as usize) else {
            return Ok(Step::wants(consumed));
        };
        let item = match kind & KIND {
            0 => Item::Message { bytes, text: false },
            PING => Item::Ping(bytes),
            _ => Item::Pong(bytes),
        };
        Ok(Step::found(consumed, item))
    }
}

// Of a frame's first byte three bits are its type. A length of 2^24, which the three bytes behind it cannot hold,
// has a bit of its own.
const KIND: u8 = 0b111;
const IS_LENGTH_MAX: u8 = 0b1000;
const PING: u8 = 1;
const PONG: u8 = 2;

/// The length of any other message than a plain one below 2^24 bytes.
#[cold]
fn uncommon_length(prefix: u32) -> Result<u32, FramingError> {
    let byte = (prefix >> 24) as u8;
    let length = prefix & 0x00FF_FFFF;
    if byte & 0xF0 != 0 {
        return Err(FramingError::PrefixReserved { byte });
    }
    let kind = byte & KIND;
    if kind > PONG {
        return Err(FramingError::PrefixType { kind });
    }
    match (byte & IS_LENGTH_MAX != 0, length) {
        (false, _) => Ok(length),
        (true, 0) => Ok(LENGTH_MAX as u32),
        (true, _) => Err(FramingError::PrefixLength { length }),
    }
}

/// The first frame of this side's own output: its message, or `None` for a ping or pong, and the frame's length. `None` if
/// the bytes do not begin with a frame.
pub fn sent_frame(bytes: &[u8]) -> Option<(Option<&[u8]>, usize)> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_LENGTH>()?;
    let prefix = u32::from_be_bytes(*prefix);
    let kind = (prefix >> 24) as u8;
    let length = match kind {
        0 => prefix,
        _ => uncommon_length(prefix).ok()?,
    } as usize;
    let payload = rest.get(..length)?;
    let message = (kind & KIND == 0).then_some(payload);
    Some((message, PREFIX_LENGTH + length))
}

/// Whether a frame (prefix and message) may be sent to a peer that announced `peer_length_max`.
#[inline]
pub fn fits(frame_length: usize, peer_length_max: usize) -> bool {
    frame_length <= peer_length_max + PREFIX_LENGTH
}

/// Appends a message with its prefix, of which `apart_bytes` are not written here.
#[inline]
pub(super) fn frame<E>(
    apart_bytes: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), FrameError<E>> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_LENGTH]);
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(FrameError::Write(error));
    }
    let length = out.len() - start - PREFIX_LENGTH + apart_bytes;
    if length > LENGTH_MAX {
        out.truncate(start);
        return Err(FrameError::TooLong {
            length,
            length_max: LENGTH_MAX,
        });
    }
    let prefix = prefix(0, length).to_be_bytes();
    out[start..start + PREFIX_LENGTH].copy_from_slice(&prefix);
    Ok(())
}

pub(super) fn ping(payload: &[u8], out: &mut Vec<u8>) {
    control(PING, payload, out);
}

pub(super) fn pong(payload: &[u8], out: &mut Vec<u8>) {
    control(PONG, payload, out);
}

fn control(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    let payload = &payload[..payload.len().min(LENGTH_MAX)];
    out.extend_from_slice(&prefix(kind, payload.len()).to_be_bytes());
    out.extend_from_slice(payload);
}

/// 24 bits do not hold 2^24: a bit of its own, and no other length, stands for it.
fn prefix(kind: u8, length: usize) -> u32 {
    let length = match length {
        LENGTH_MAX => u32::from(IS_LENGTH_MAX) << 24,
        _ => length as u32,
    };
    u32::from(kind) << 24 | length
}

/// The length to announce in a handshake for messages of up to `length_max` bytes: the largest power of two that is not
/// above it.
pub fn announced_length(length_max: usize) -> usize {
    length_of(length_exponent(length_max))
}

fn length_of(exponent: u8) -> usize {
    LENGTH_MAX_LEAST << exponent
}

/// The largest announceable maximum that is not above `length_max`, as the handshake writes it.
fn length_exponent(length_max: usize) -> u8 {
    let length_max = length_max.clamp(LENGTH_MAX_LEAST, LENGTH_MAX);
    (length_max.ilog2() - LENGTH_MAX_LEAST.ilog2()) as u8
}

fn number_of(serializer: Serializer) -> u8 {
    match serializer {
        Serializer::Json => 1,
        Serializer::MsgPack => 2,
        Serializer::Cbor => 3,
    }
}

fn serializer_of(number: u8) -> Option<Serializer> {
    match number {
        1 => Some(Serializer::Json),
        2 => Some(Serializer::MsgPack),
        3 => Some(Serializer::Cbor),
        _ => None,
    }
}
