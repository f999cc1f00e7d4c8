//! The two to fourteen bytes before each frame's payload. RFC 6455 section 5.2.

use super::Role;
use crate::framing::FramingError;

/// The longest header: two bytes, an eight-byte length, a mask.
pub(super) const HEADER_LENGTH_MAX: usize = 14;
/// The longest payload of a control frame.
pub(super) const CONTROL_LENGTH_MAX: usize = 125;

// The bits of the first two bytes, and the two lengths that say that the length follows (RFC 6455, section 5.2).
pub(super) const FIN: u8 = 0x80;
pub(super) const RSV1: u8 = 0x40;
const RSV: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_IS_U16: u8 = 126;
const LENGTH_IS_U64: u8 = 127;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    #[inline]
    fn new(byte: u8) -> Result<Self, FramingError> {
        Ok(match byte & 0x0F {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            opcode => return Err(FramingError::Opcode { opcode }),
        })
    }

    pub fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }

    pub(super) fn data(text: bool) -> Self {
        match text {
            true => Self::Text,
            false => Self::Binary,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) opcode: Opcode,
    pub(super) fin: bool,
    pub(super) rsv1: bool,
    pub(super) mask: Option<[u8; 4]>,
    /// Bytes of the header itself.
    pub(super) length: usize,
    pub(super) payload_length: u64,
}

/// A header, or the number of bytes needed to read one.
pub(super) enum Parsed {
    Header(Header),
    Wanted(usize),
}

impl Header {
    /// Reads the header at the start of `input`, and checks everything that a header alone can violate.
    #[inline]
    pub(super) fn parse(
        input: &[u8],
        role: Role,
        rsv1_allowed: bool,
    ) -> Result<Parsed, FramingError> {
        let Some((&[first, second], rest)) = input.split_first_chunk::<2>() else {
            return Ok(Parsed::Wanted(2));
        };
        let opcode = Opcode::new(first)?;
        let fin = first & FIN != 0;
        let rsv1 = first & RSV1 != 0;
        if first & RSV != 0 {
            // RSV1 marks a compressed message, so it stands on a message's first frame only.
            let compressed = matches!(opcode, Opcode::Text | Opcode::Binary) && rsv1_allowed;
            if first & RSV != RSV1 || !compressed {
                return Err(FramingError::ReservedBits { bits: first & RSV });
            }
        }
        let short = second & !MASKED;
        if opcode.is_control() {
            let opcode = opcode as u8;
            if !fin {
                return Err(FramingError::ControlFragmented { opcode });
            }
            if usize::from(short) > CONTROL_LENGTH_MAX {
                return Err(FramingError::ControlTooLong { opcode });
            }
        }
        let masked = second & MASKED != 0;
        match (role, masked) {
            (Role::Server, false) => return Err(FramingError::Unmasked),
            (Role::Client, true) => return Err(FramingError::Masked),
            _ => {}
        }
        let mask_length = if masked { 4 } else { 0 };
        let Some((length_length, payload_length)) = payload_length(short, rest)? else {
            let length_length = if short == LENGTH_IS_U16 { 2 } else { 8 };
            return Ok(Parsed::Wanted(2 + length_length + mask_length));
        };
        let length = 2 + length_length + mask_length;
        let mask = match masked {
            false => None,
            true => match rest[length_length..].first_chunk() {
                None => return Ok(Parsed::Wanted(length)),
                Some(&mask) => Some(mask),
            },
        };
        Ok(Parsed::Header(Self {
            opcode,
            fin,
            rsv1,
            mask,
            length,
            payload_length,
        }))
    }

    /// Bytes of the header for such a payload.
    #[inline]
    pub(super) fn length_for(payload_length: usize, masked: bool) -> usize {
        let mask_length = if masked { 4 } else { 0 };
        mask_length
            + match payload_length {
                0..126 => 2,
                126..=0xFFFF => 4,
                _ => 10,
            }
    }

    /// Writes the header of a frame whose first byte is `first` into the front of `out`, of length
    /// [`Header::length_for`].
    #[inline]
    pub(super) fn write(first: u8, payload_length: usize, mask: Option<[u8; 4]>, out: &mut [u8]) {
        let masked = if mask.is_some() { MASKED } else { 0 };
        out[0] = first;
        match payload_length {
            0..126 => out[1] = masked | payload_length as u8,
            126..=0xFFFF => {
                out[1] = masked | LENGTH_IS_U16;
                out[2..4].copy_from_slice(&(payload_length as u16).to_be_bytes());
            }
            _ => {
                out[1] = masked | LENGTH_IS_U64;
                out[2..10].copy_from_slice(&(payload_length as u64).to_be_bytes());
            }
        }
        if let Some(mask) = mask {
            let at = out.len() - mask.len();
            out[at..].copy_from_slice(&mask);
        }
    }
}

/// The first frame of a server's own output, unfragmented and uncompressed: its opcode, its payload, and its length.
/// `None` if the bytes do not begin with one.
pub fn sent_frame(bytes: &[u8]) -> Option<(Opcode, &[u8], usize)> {
    let Ok(Parsed::Header(header)) = Header::parse(bytes, Role::Client, false) else {
        return None;
    };
    let end = (header.length as u64).checked_add(header.payload_length)?;
    let end = usize::try_from(end).ok()?;
    let payload = bytes.get(header.length..end)?;
    header.fin.then_some((header.opcode, payload, end))
}

/// The bytes of the payload's length behind the first two, and that length; `None` while they are incomplete.
/// A length has the shortest form that holds it (RFC 6455, section 5.2).
#[inline]
fn payload_length(short: u8, rest: &[u8]) -> Result<Option<(usize, u64)>, FramingError> {
    let (length_length, length) = match short {
        LENGTH_IS_U16 => match rest.first_chunk() {
            None => return Ok(None),
            Some(bytes) => (2, u64::from(u16::from_be_bytes(*bytes))),
        },
        LENGTH_IS_U64 => match rest.first_chunk() {
            None => return Ok(None),
            Some(bytes) => (8, u64::from_be_bytes(*bytes)),
        },
        _ => (0, u64::from(short)),
    };
    let minimal = match length_length {
        0 => true,
        2 => length >= u64::from(LENGTH_IS_U16),
        _ => length > u64::from(u16::MAX) && length <= i64::MAX as u64,
    };
    match minimal {
        true => Ok(Some((length_length, length))),
        false => Err(FramingError::LengthForm { length }),
    }
}
