//! A broker's messages: a method, and the content behind it. Found complete in the received bytes, and borrowed from
//! them.

use std::borrow::Cow;

use crosstie_amqp::frame::{self, Decoded};
use crosstie_amqp::{ContentHeader, Frame, FrameKind, Method, MethodError, Properties};

use crate::ConnectionError;

/// Maximum length of a content, which is RabbitMQ's maximum for a message.
const CONTENT_BYTES_MAX: u64 = 128 << 20;

/// A method of the broker's.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    pub channel: u16,
    pub method: Method<'a>,
    /// Of basic.deliver, basic.return and basic.get-ok.
    pub content: Option<Content<'a>>,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Content<'a> {
    pub properties: Properties<'a>,
    /// Borrowed, unless it arrived in several frames.
    pub body: Cow<'a, [u8]>,
}

/// The front of the received bytes.
pub(crate) enum Scan {
    /// More bytes are needed; the total, as far as known.
    Incomplete {
        wanted: usize,
    },
    Heartbeat {
        bytes: usize,
    },
    /// A method with all of its content.
    Event {
        channel: u16,
        ids: (u16, u16),
        bytes: usize,
    },
}

/// Finds the end of the first event in `input`, decoding as little as possible.
pub(crate) fn scan(input: &[u8], frame_bytes_max: u32) -> Result<Scan, ConnectionError> {
    let (method, mut bytes) = match next(input, 0, frame_bytes_max)? {
        Next::Incomplete { wanted } => return Ok(Scan::Incomplete { wanted }),
        Next::Frame(frame, end) => (frame, end),
    };
    match method.kind {
        FrameKind::Method => {}
        FrameKind::Heartbeat => return Ok(Scan::Heartbeat { bytes }),
        FrameKind::Header | FrameKind::Body => return Err(ConnectionError::Interleaved),
    }
    let ids = ids(method.payload)?;
    if has_content(ids) {
        let mut left = None;
        while left != Some(0) {
            let (frame, end) = match next(input, bytes, frame_bytes_max)? {
                Next::Incomplete { wanted } => return Ok(Scan::Incomplete { wanted }),
                Next::Frame(frame, end) => (frame, end),
            };
            bytes = end;
            left = Some(match (frame.kind, left) {
                (FrameKind::Header, None) if frame.channel == method.channel => {
                    let body_bytes = ContentHeader::decode(frame.payload)?.body_bytes;
                    if body_bytes > CONTENT_BYTES_MAX {
                        return Err(ConnectionError::TooLong {
                            bytes: body_bytes,
                            bytes_max: CONTENT_BYTES_MAX,
                        });
                    }
                    body_bytes
                }
                (FrameKind::Body, Some(left)) if frame.channel == method.channel => left
                    .checked_sub(frame.payload.len() as u64)
                    .ok_or(ConnectionError::Interleaved)?,
                _ => return Err(ConnectionError::Interleaved),
            });
        }
    }
    Ok(Scan::Event {
        channel: method.channel,
        ids,
        bytes,
    })
}

/// Decodes an event that [`scan`] has found.
pub(crate) fn decode(bytes: &[u8]) -> Result<Event<'_>, ConnectionError> {
    let mut at = 0;
    let mut frame = || match next(bytes, at, 0)? {
        Next::Frame(frame, end) => {
            at = end;
            Ok(frame)
        }
        Next::Incomplete { .. } => Err(ConnectionError::Interleaved),
    };
    let first = frame()?;
    let method = Method::decode(first.payload)?;
    let mut content = None;
    if method.has_content() {
        let header = ContentHeader::decode(frame()?.payload)?;
        let body_bytes = header.body_bytes as usize;
        let mut body = Cow::Borrowed(match body_bytes {
            0 => [].as_slice(),
            _ => frame()?.payload,
        });
        while body.len() < body_bytes {
            let part = frame()?.payload;
            let body = body.to_mut();
            body.reserve(body_bytes - body.len());
            body.extend_from_slice(part);
        }
        content = Some(Content {
            properties: header.properties,
            body,
        });
    }
    Ok(Event {
        channel: first.channel,
        method,
        content,
    })
}

enum Next<'a> {
    Frame(Frame<'a>, usize),
    Incomplete { wanted: usize },
}

/// The frame at `at`, and its end.
fn next(input: &[u8], at: usize, frame_bytes_max: u32) -> Result<Next<'_>, ConnectionError> {
    Ok(match frame::decode(&input[at..], frame_bytes_max)? {
        Decoded::Frame { frame, consumed } => Next::Frame(frame, at + consumed),
        Decoded::Incomplete { wanted } => Next::Incomplete {
            wanted: at + wanted,
        },
    })
}

fn ids(payload: &[u8]) -> Result<(u16, u16), MethodError> {
    let (&[c, l, m, d], _) = payload.split_first_chunk().ok_or(MethodError::NoMethod)?;
    Ok((u16::from_be_bytes([c, l]), u16::from_be_bytes([m, d])))
}

/// Return, deliver and get-ok of class basic; only a client sends publish.
fn has_content(ids: (u16, u16)) -> bool {
    matches!(ids, (60, 50 | 60 | 71))
}
