//! Message boundaries in a peer's input, for either framing.

use std::ops::Range;

use crosstie_wamp::framing::{FramingError, Step, rawsocket, websocket};

/// Finds the boundaries of messages in the input.
pub(crate) enum Frames {
    RawSocket(rawsocket::Decoder),
    WebSocket(websocket::Decoder),
}

impl Frames {
    pub(crate) fn set_message_bytes_max(&mut self, bytes_max: usize) {
        match self {
            Self::RawSocket(frames) => frames.set_length_max(bytes_max),
            Self::WebSocket(frames) => frames.set_message_bytes_max(bytes_max),
        }
    }

    /// The item at the start of `input`, if it is complete.
    #[inline]
    pub(crate) fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        match self {
            Self::RawSocket(frames) => frames.next(input),
            Self::WebSocket(frames) => frames.next(input),
        }
    }

    /// The range of a message in `input`, if it fills all of the input unmasked and uncompressed.
    pub(crate) fn whole(&self, input: &[u8]) -> Option<Range<usize>> {
        match self {
            Self::RawSocket(frames) => frames.whole(input),
            Self::WebSocket(frames) => frames.whole(input),
        }
    }

    /// Whether the next item may become much longer than its bytes in `input`.
    #[inline]
    pub(crate) fn may_swell(&self, input: &[u8]) -> bool {
        match self {
            Self::RawSocket(_) => false,
            Self::WebSocket(frames) => frames.may_swell(input),
        }
    }

    /// Bytes of earlier messages that are kept because later compressed ones may refer to them.
    #[inline]
    pub(crate) fn window_bytes(&self) -> usize {
        match self {
            Self::RawSocket(_) => 0,
            Self::WebSocket(frames) => frames.window_bytes(),
        }
    }

    /// Bytes of fragments that are kept until more arrive.
    #[inline]
    pub(crate) fn kept_bytes(&self) -> usize {
        match self {
            Self::RawSocket(_) => 0,
            Self::WebSocket(frames) => frames.kept_bytes(),
        }
    }
}
