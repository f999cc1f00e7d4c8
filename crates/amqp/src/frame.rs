//! Frames (section 4.2.3): a type, a channel, a payload, and an octet that ends it.

use std::fmt;

use crate::Arguments;

/// Bytes of a frame beside its payload.
pub const OVERHEAD_BYTES: usize = 8;

/// The least that both sides must take as the longest frame.
pub const FRAME_MIN_BYTES: u32 = 4096;

/// The type, the channel and the length of the payload (section 4.2.3).
const HEADER_BYTES: usize = 7;
/// The byte behind each payload, by which a wrong length shows (section 4.2.3).
const END: u8 = 0xCE;

/// The type of a frame's payload (section 4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    Method,
    Header,
    Body,
    Heartbeat,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: FrameKind,
    pub channel: u16,
    pub payload: &'a [u8],
}

/// The frame at the front of an input, if it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    Frame {
        frame: Frame<'a>,
        consumed: usize,
    },
    /// The frame is not all there; it needs `wanted` bytes, as far as is known.
    Incomplete {
        wanted: usize,
    },
}

/// A fault in a frame. Each of them ends the connection with 501 `FRAME_ERROR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    UnknownKind {
        kind: u8,
    },
    /// A payload longer than the frames that were agreed on.
    TooLong {
        bytes: u64,
        bytes_max: u32,
    },
    /// The last octet of a frame is not 0xCE.
    NoEnd {
        found: u8,
    },
}

/// Decodes the frame at the front of `input`. A payload longer than `frame_bytes_max` is an error as soon as its length
/// is known; 0 means no bound.
///
/// By the specification the bytes around a payload count, too. RabbitMQ allows these eight bytes in addition, for
/// clients that forget them, and so does this.
pub fn decode(input: &[u8], frame_bytes_max: u32) -> Result<Decoded<'_>, FrameError> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() else {
        if let [kind, ..] = input {
            FrameKind::from_octet(*kind)?;
        }
        return Ok(Decoded::Incomplete {
            wanted: HEADER_BYTES + 1,
        });
    };
    let kind = FrameKind::from_octet(header[0])?;
    let channel = u16::from_be_bytes([header[1], header[2]]);
    let payload_bytes = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
    if frame_bytes_max != 0 && payload_bytes > frame_bytes_max {
        return Err(FrameError::TooLong {
            bytes: payload_bytes.into(),
            bytes_max: frame_bytes_max,
        });
    }
    let payload_bytes = payload_bytes as usize;
    let Some(&end) = rest.get(payload_bytes) else {
        return Ok(Decoded::Incomplete {
            wanted: payload_bytes + OVERHEAD_BYTES,
        });
    };
    if end != END {
        return Err(FrameError::NoEnd { found: end });
    }
    Ok(Decoded::Frame {
        frame: Frame {
            kind,
            channel,
            payload: &rest[..payload_bytes],
        },
        consumed: payload_bytes + OVERHEAD_BYTES,
    })
}

/// Appends a frame whose payload `write` appends.
pub fn write(kind: FrameKind, channel: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(kind.octet());
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    write(out);
    let payload_bytes = (out.len() - start - HEADER_BYTES) as u32;
    out[start + 3..start + HEADER_BYTES].copy_from_slice(&payload_bytes.to_be_bytes());
    out.push(END);
}

/// Appends a method's frame.
pub fn write_method(channel: u16, method: &impl Arguments, out: &mut Vec<u8>) {
    write(FrameKind::Method, channel, out, |out| method.write(out));
}

/// Appends the frames that follow a method with content: the header, then the body in as many
/// frames as `frame_bytes_max` asks for (0: one). `properties` are the bytes of checked properties.
pub fn write_content(
    channel: u16,
    properties: &[u8],
    body: &[u8],
    frame_bytes_max: u32,
    out: &mut Vec<u8>,
) {
    write(FrameKind::Header, channel, out, |out| {
        out.extend_from_slice(&crate::method::BASIC_CLASS.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        out.extend_from_slice(properties);
    });
    let part_bytes = match frame_bytes_max {
        0 => u32::MAX,
        bytes_max => bytes_max.max(FRAME_MIN_BYTES),
    } as usize
        - OVERHEAD_BYTES;
    for part in body.chunks(part_bytes) {
        write(FrameKind::Body, channel, out, |out| {
            out.extend_from_slice(part);
        });
    }
}

/// A heartbeat (section 4.2.7).
pub const HEARTBEAT: [u8; OVERHEAD_BYTES] = [8, 0, 0, 0, 0, 0, 0, END];

impl FrameKind {
    fn from_octet(kind: u8) -> Result<Self, FrameError> {
        match kind {
            1 => Ok(Self::Method),
            2 => Ok(Self::Header),
            3 => Ok(Self::Body),
            8 => Ok(Self::Heartbeat),
            kind => Err(FrameError::UnknownKind { kind }),
        }
    }

    fn octet(self) -> u8 {
        match self {
            Self::Method => 1,
            Self::Header => 2,
            Self::Body => 3,
            Self::Heartbeat => 8,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { kind } => write!(
                f,
                "a frame of type {kind}, expected 1 (method), 2 (header), 3 (body) or 8 (heartbeat)"
            ),
            Self::TooLong { bytes, bytes_max } => {
                write!(
                    f,
                    "a frame's payload of {bytes} bytes, where frames of {bytes_max} are the longest"
                )
            }
            Self::NoEnd { found } => {
                write!(
                    f,
                    "a frame that ends with octet {found:#04x}, expected 0xce"
                )
            }
        }
    }
}

impl std::error::Error for FrameError {}
