//! Messages and control frames out of a stream of frames.
//!
//! A complete frame in the input is unmasked in place and lent out without a copy. For an incomplete frame the decoder
//! requests the missing bytes. Fragments are joined inside: the state between two frames of one message is boxed, so
//! that the millionth idle connection costs a few words.

use std::ops::Range;

use super::header::{Header, Opcode, Parsed};
use super::inflate::{Inflater, NotInflated};
use super::utf8::Utf8Stream;
use super::{CloseFrame, Deflate, MessageKind, Role, mask};
use crate::framing::{FramingError, Item, Step};

#[derive(Clone, Copy, Debug)]
pub struct DecoderConfig {
    /// Bytes of one message, all its fragments together, inflated.
    pub message_bytes_max: usize,
    /// Bytes of one frame's payload, as it is sent.
    pub frame_bytes_max: usize,
    /// Whether text is checked to be UTF-8, at its first wrong byte. A parser of JSON
    /// that reads the text afterwards checks it there.
    pub validate_text: bool,
    /// The only kind of message the subprotocol has, if it has one.
    pub expect: Option<MessageKind>,
    /// The agreed compression. None: no frame may be compressed.
    pub deflate: Option<Deflate>,
}

impl Default for DecoderConfig {
    fn default() -> Self {
        Self {
            message_bytes_max: 16 << 20,
            frame_bytes_max: 16 << 20,
            validate_text: true,
            expect: None,
            deflate: None,
        }
    }
}

/// This many compressed bytes inflate to 1 MiB at most.
const COMPRESSED_BYTES_FEW: u64 = 1024;

/// Deflate's worst case is an eighth more, and some bytes.
const COMPRESSED_BYTES_MORE: usize = 256;

/// RFC 6455 sections 5 to 8. See [`crate::framing`] for how to drive it; an error is final.
#[derive(Debug)]
pub struct Decoder {
    /// As in the configuration, or as much as fits here.
    message_bytes_max: u32,
    expect: Option<MessageKind>,
    role: Role,
    /// A Close was read: input behind it has no meaning (section 5.5.1).
    closed: bool,
    partial: Option<Box<Partial>>,
    /// Boxed, because a WAMP client that does not compress needs none of it.
    more: Option<Box<More>>,
}

/// The state of text that is checked, of compression, and of frames with a bound of their own.
#[derive(Debug)]
struct More {
    frame_bytes_max: usize,
    validate_text: bool,
    text: Utf8Stream,
    /// How much of the payload of the unfinished text frame at the input's start is unmasked and
    /// checked already.
    checked: usize,
    deflate: Option<Deflate>,
    inflater: Option<Box<Inflater>>,
}

/// A message in fragments, or one that is inflated.
#[derive(Debug)]
struct Partial {
    text: bool,
    compressed: bool,
    /// Nothing is missing: it was lent out by the last step.
    whole: bool,
    bytes: Vec<u8>,
}

impl Decoder {
    pub fn new(role: Role, config: DecoderConfig) -> Self {
        let DecoderConfig {
            message_bytes_max,
            frame_bytes_max,
            validate_text,
            expect,
            deflate,
        } = config;
        let needs_more = validate_text || deflate.is_some() || frame_bytes_max < message_bytes_max;
        let more = needs_more.then(|| More {
            frame_bytes_max,
            validate_text,
            text: Utf8Stream::default(),
            checked: 0,
            deflate,
            inflater: None,
        });
        Self {
            message_bytes_max: bound(message_bytes_max),
            expect,
            role,
            closed: false,
            partial: None,
            more: more.map(Box::new),
        }
    }

    /// From the next message on this is the most bytes of one, no more than the configured ones.
    pub fn set_message_bytes_max(&mut self, message_bytes_max: usize) {
        self.message_bytes_max = bound(message_bytes_max);
    }

    /// Bytes of a message in fragments that are kept because more are to come, and of its inflater.
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        match &self.partial {
            Some(partial) => {
                let inflater = self.inflater();
                partial.bytes.capacity() + inflater.map_or(0, Inflater::message_bytes)
            }
            None => 0,
        }
    }

    /// Bytes of messages that are kept because later compressed ones may refer to them.
    #[inline]
    pub fn window_bytes(&self) -> usize {
        self.inflater().map_or(0, Inflater::window_bytes)
    }

    #[inline]
    fn inflater(&self) -> Option<&Inflater> {
        self.more.as_ref()?.inflater.as_deref()
    }

    #[inline]
    fn deflate(&self) -> Option<Deflate> {
        self.more.as_ref()?.deflate
    }

    /// The range of a message's bytes in `input`, if it is all of the input: one plain frame. Then [`Decoder::next`]
    /// finds it there, or an error.
    pub fn whole(&self, input: &[u8]) -> Option<Range<usize>> {
        let is_joining = self.partial.as_ref().is_some_and(|partial| !partial.whole);
        if self.closed || is_joining {
            return None;
        }
        let header = self.header(input)?;
        let is_plain = header.fin && !header.rsv1;
        let is_message = matches!(header.opcode, Opcode::Text | Opcode::Binary);
        let end = (header.length as u64).checked_add(header.payload_length)?;
        let is_whole = is_plain && is_message && end == input.len() as u64;
        is_whole.then_some(header.length..input.len())
    }

    /// Whether the frame at the start of `input` has enough compressed bytes to inflate to a thousand times their size.
    pub fn may_swell(&self, input: &[u8]) -> bool {
        if self.deflate().is_none() {
            return false;
        }
        let is_inflating = self.partial.as_ref();
        let is_inflating = is_inflating.is_some_and(|partial| partial.compressed && !partial.whole);
        self.header(input).is_some_and(|header| {
            (header.rsv1 || is_inflating) && header.payload_length > COMPRESSED_BYTES_FEW
        })
    }

    fn header(&self, input: &[u8]) -> Option<Header> {
        match Header::parse(input, self.role, self.deflate().is_some()) {
            Ok(Parsed::Header(header)) => Some(header),
            Ok(Parsed::Wanted(_)) | Err(_) => None,
        }
    }

    /// The item at the start of `input`, if it is complete.
    #[inline]
    pub fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        if self.partial.as_ref().is_some_and(|partial| partial.whole) {
            self.partial = None;
        }
        if self.closed {
            return Ok(Step::swallowed(input.len()));
        }
        let header = match Header::parse(input, self.role, self.deflate().is_some())? {
            Parsed::Header(header) => header,
            Parsed::Wanted(wanted) => return Ok(Step::wants(wanted)),
        };
        self.check(&header)?;
        // The check bounds it by a configured maximum.
        let payload_length = header.payload_length as usize;
        let end = header.length + payload_length;
        if input.len() < end {
            self.look_ahead(&header, &mut input[header.length..])?;
            return Ok(Step::wants(end));
        }
        let payload = &mut input[header.length..end];
        let checked = match &mut self.more {
            Some(more) => std::mem::take(&mut more.checked).min(payload_length),
            None => 0,
        };
        if let Some(key) = header.mask {
            mask::apply(&mut payload[checked..], key, checked);
        }
        match header.opcode {
            Opcode::Text | Opcode::Binary if header.fin && !header.rsv1 => {
                let text = header.opcode == Opcode::Text;
                if text && let Some(more) = self.validating() {
                    more.text.feed(&payload[checked..])?;
                    more.text.finish()?;
                }
                let message = Item::Message {
                    bytes: payload,
                    text,
                };
                Ok(Step::found(end, message))
            }
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {
                self.join(&header, payload, checked)?;
                match &self.partial {
                    Some(partial) if partial.whole => {
                        let message = Item::Message {
                            bytes: &partial.bytes,
                            text: partial.text,
                        };
                        Ok(Step::found(end, message))
                    }
                    _ => Ok(Step::swallowed(end)),
                }
            }
            Opcode::Ping => Ok(Step::found(end, Item::Ping(payload))),
            Opcode::Pong => Ok(Step::found(end, Item::Pong(payload))),
            Opcode::Close => {
                let close = CloseFrame::read(payload)?;
                self.closed = true;
                Ok(Step::found(end, Item::Close(close)))
            }
        }
    }

    /// Whether such a frame may come now.
    #[inline]
    fn check(&self, header: &Header) -> Result<(), FramingError> {
        // Bytes of the message so far, if the message is measured as it arrives: compressed messages are measured when
        // they are inflated.
        let joined = match (&self.partial, header.opcode) {
            (_, Opcode::Close | Opcode::Ping | Opcode::Pong) => return Ok(()),
            (None, Opcode::Continuation) => return Err(FramingError::ContinuationUnexpected),
            (Some(partial), Opcode::Continuation) => {
                (!partial.compressed).then_some(partial.bytes.len())
            }
            (Some(_), Opcode::Text | Opcode::Binary) => {
                return Err(FramingError::ContinuationExpected {
                    opcode: header.opcode as u8,
                });
            }
            (None, Opcode::Text) => {
                self.check_kind(MessageKind::Text)?;
                (!header.rsv1).then_some(0)
            }
            (None, Opcode::Binary) => {
                self.check_kind(MessageKind::Binary)?;
                (!header.rsv1).then_some(0)
            }
        };
        let length = header.payload_length;
        if let Some(more) = &self.more
            && length > more.frame_bytes_max as u64
        {
            let length_max = more.frame_bytes_max;
            return Err(FramingError::TooLong { length, length_max });
        }
        let length_max = self.message_bytes_max as usize;
        // Compressed bytes may be only a little longer than their result: an incomplete message cannot be inflated.
        let compressed_max = length_max.saturating_add(length_max / 4 + COMPRESSED_BYTES_MORE);
        if joined.is_none() && length > compressed_max as u64 {
            return Err(FramingError::TooLong { length, length_max });
        }
        if let Some(joined) = joined
            && length > length_max.saturating_sub(joined) as u64
        {
            let length = length.saturating_add(joined as u64);
            return Err(FramingError::TooLong { length, length_max });
        }
        Ok(())
    }

    /// The state of text, if it is checked.
    #[inline]
    fn validating(&mut self) -> Option<&mut More> {
        let more = self.more.as_deref_mut()?;
        more.validate_text.then_some(more)
    }

    #[inline]
    fn check_kind(&self, kind: MessageKind) -> Result<(), FramingError> {
        match self.expect {
            Some(expected) if expected != kind => Err(FramingError::Kind { expected }),
            _ => Ok(()),
        }
    }

    /// Checks the received part of an incomplete text frame, so that invalid text ends the connection at its first
    /// invalid byte and not only at the frame's end.
    #[cold]
    fn look_ahead(&mut self, header: &Header, part: &mut [u8]) -> Result<(), FramingError> {
        let text = match header.opcode {
            Opcode::Text => !header.rsv1,
            Opcode::Continuation => {
                let partial = self.partial.as_ref();
                partial.is_some_and(|partial| partial.text && !partial.compressed)
            }
            _ => false,
        };
        let Some(more) = self.validating().filter(|_| text) else {
            return Ok(());
        };
        let Some(unchecked) = part.get_mut(more.checked..) else {
            return Ok(());
        };
        if let Some(key) = header.mask {
            mask::apply(unchecked, key, more.checked);
        }
        more.text.feed(unchecked)?;
        more.checked += unchecked.len();
        Ok(())
    }

    /// Keeps one fragment: unmasked, inflated, and its text checked.
    fn join(
        &mut self,
        header: &Header,
        payload: &[u8],
        checked: usize,
    ) -> Result<(), FramingError> {
        let partial = self.partial.get_or_insert_with(|| {
            Box::new(Partial {
                text: header.opcode == Opcode::Text,
                compressed: header.rsv1,
                whole: false,
                bytes: Vec::new(),
            })
        });
        let joined = partial.bytes.len();
        let more = self.more.as_deref_mut();
        match more.and_then(|more| Some((more.deflate?, &mut more.inflater))) {
            Some((deflate, inflater)) if partial.compressed => {
                let peer = deflate.peer;
                let length_max = self.message_bytes_max as usize;
                inflater
                    .get_or_insert_with(|| {
                        Box::new(Inflater::new(peer.takeover.then_some(peer.window_bits)))
                    })
                    .frame(payload, header.fin, length_max, &mut partial.bytes)
                    .map_err(|fault| match fault {
                        NotInflated::Invalid => FramingError::Deflate,
                        NotInflated::TooLong => FramingError::InflatedTooLong { length_max },
                    })?;
                if header.fin && !peer.takeover {
                    *inflater = None;
                }
            }
            _ => partial.bytes.extend_from_slice(payload),
        }
        if partial.text
            && let Some(more) = self.more.as_mut().filter(|more| more.validate_text)
        {
            more.text.feed(&partial.bytes[joined + checked..])?;
            if header.fin {
                more.text.finish()?;
            }
        }
        partial.whole = header.fin;
        Ok(())
    }
}

/// A message of 4 GiB or more fits into no decoder.
fn bound(bytes_max: usize) -> u32 {
    u32::try_from(bytes_max).unwrap_or(u32::MAX)
}
