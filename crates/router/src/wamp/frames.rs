//! Where a message ends in what a peer sends, in either framing.

use crosstie_wamp::framing::{FramingError, Step, rawsocket, websocket};

/// The ends of messages in the input.
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

    /// The item at the start of `input`, if it is there whole.
    #[inline]
    pub(crate) fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        match self {
            Self::RawSocket(frames) => frames.next(input),
            Self::WebSocket(frames) => frames.next(input),
        }
    }

    /// Bytes of fragments that are kept because more are to come.
    #[inline]
    pub(crate) fn kept_bytes(&self) -> usize {
        match self {
            Self::RawSocket(_) => 0,
            Self::WebSocket(frames) => frames.kept_bytes(),
        }
    }
}
