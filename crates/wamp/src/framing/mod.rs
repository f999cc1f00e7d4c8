//! Splits a stream of bytes into messages.
//!
//! A decoder is offered all received bytes that are not consumed yet, and returns the item at their start; the caller
//! owns the buffer. A connection is driven like this:
//!
//! ```text
//! append what was received to the unconsumed bytes
//! loop  step = decoder.next(&mut unconsumed)?      an error: say why, close the connection
//!       handle step.item, if there is one
//!       drop step.consumed bytes from the front
//!       consumed == 0? keep the rest, wait for more; a buffer of `wanted` bytes will be needed
//! ```
//!
//! The loop ends with the step that consumed nothing: that step also frees what the one before it lent out. Bytes that
//! were not consumed are offered again as the decoder left them: it may have unmasked some of them already.

pub mod batched;
mod error;
pub mod rawsocket;
pub mod websocket;

pub use error::{FrameError, FramingError};

use crate::Serializer;

/// The next item in the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// One whole message (of a batched subprotocol: one whole batch).
    Message {
        bytes: &'a [u8],
        /// Whether it was WebSocket text; never on a RawSocket, whose messages have no kind.
        text: bool,
    },
    /// Answer with a pong that carries the same bytes.
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// The peer began, or answered, the closing handshake (WebSocket only).
    Close(websocket::CloseFrame<'a>),
}

/// One step of a decoder.
#[derive(Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes of the input that are consumed. Zero: there is no complete item yet.
    pub consumed: usize,
    /// The item; `None` with `consumed > 0` is a fragment kept inside.
    pub item: Option<Item<'a>>,
    /// With `consumed == 0`: bytes that the next item needs in all, as far as is known.
    /// It never exceeds the configured maximum by more than a header; but it is what the peer
    /// *says* it will send, so grow a buffer with what arrives, not to this at once.
    pub wanted: usize,
}

impl<'a> Step<'a> {
    #[inline]
    fn wants(wanted: usize) -> Self {
        Self {
            consumed: 0,
            item: None,
            wanted,
        }
    }

    #[inline]
    fn found(consumed: usize, item: Item<'a>) -> Self {
        Self {
            consumed,
            item: Some(item),
            wanted: 0,
        }
    }

    #[inline]
    fn swallowed(consumed: usize) -> Self {
        Self {
            consumed,
            item: None,
            wanted: 0,
        }
    }
}

/// A body with this many bytes apart has the longest header of a WebSocket frame.
pub const APART_BYTES_MIN: usize = 64 * 1024;

/// How a sender frames its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// A four-byte prefix.
    RawSocket,
    /// Messages that wait for a request over HTTP (WAMP, "HTTP Longpoll Transport"): each behind its length, until the
    /// size of an answer is known. The same bytes as [`Framing::RawSocket`]'s, for messages shorter than
    /// [`rawsocket::LENGTH_MAX`].
    LongPoll,
    /// Answers for the session of an MQTT client, which the router itself reads. The same bytes as [`Framing::RawSocket`]'s.
    Mqtt,
    /// A server's WebSocket frames, unmasked.
    WebSocketServer { batched: bool },
    /// The same, in batches for a client that is [`batched::is_autobahn`].
    WebSocketServerAutobahn,
    /// A client's WebSocket frames, masked with this key.
    WebSocketClient { batched: bool, mask: [u8; 4] },
}

impl Framing {
    /// Appends one frame to `out`, whose body `write` appends. On its error `out` is as it was.
    ///
    /// `length_hint` is the body's likely length: a good guess saves moving it.
    #[inline]
    pub fn frame<E>(
        self,
        serializer: Serializer,
        length_hint: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), FrameError<E>> {
        self.frame_around(serializer, length_hint, 0, out, write)
    }

    /// The same for a body of which `apart_bytes` are sent from elsewhere: `write` leaves them out. As
    /// many as [`APART_BYTES_MIN`], or none; a client masks all that it sends, and can have none.
    ///
    /// Bytes that `write` has appended stay where they are: the header's length follows from so many bytes.
    #[inline]
    pub fn frame_around<E>(
        self,
        serializer: Serializer,
        length_hint: usize,
        apart_bytes: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), FrameError<E>> {
        debug_assert!(apart_bytes == 0 || apart_bytes >= APART_BYTES_MIN);
        debug_assert!(apart_bytes == 0 || self.mask().is_none());
        let length_hint = length_hint.max(apart_bytes);
        let (batched, mask) = match self {
            Self::RawSocket | Self::LongPoll | Self::Mqtt => {
                return rawsocket::frame(apart_bytes, out, write);
            }
            Self::WebSocketServer { batched } => (batched, None),
            Self::WebSocketServerAutobahn => (true, None),
            Self::WebSocketClient { batched, mask } => (batched, Some(mask)),
        };
        let text = !serializer.is_binary();
        if batched {
            let hint = length_hint + batched::overhead(serializer);
            let separator = match self {
                Self::WebSocketServerAutobahn => batched::SEPARATOR_AUTOBAHN,
                _ => batched::SEPARATOR,
            };
            websocket::frame(text, mask, hint, apart_bytes, out, |out| {
                batched::wrap(serializer, separator, apart_bytes, out, write)
            })
        } else {
            websocket::frame(text, mask, length_hint, apart_bytes, out, |out| {
                write(out).map_err(FrameError::Write)
            })
        }
    }

    /// Appends a ping. A WebSocket ping carries at most 125 bytes: the rest is left out. Over HTTP there are none.
    pub fn ping(self, payload: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::RawSocket => rawsocket::ping(payload, out),
            Self::LongPoll | Self::Mqtt => {}
            _ => websocket::ping(self.mask(), payload, out),
        }
    }

    /// Appends the answer to a ping.
    pub fn pong(self, payload: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::RawSocket => rawsocket::pong(payload, out),
            Self::LongPoll | Self::Mqtt => {}
            _ => websocket::pong(self.mask(), payload, out),
        }
    }

    /// Appends a Close frame; the reason is cut to the 123 bytes that fit.
    /// A RawSocket has none: nothing is appended, closing the connection says it all. Neither has a long-poll.
    pub fn close(self, code: u16, reason: &str, out: &mut Vec<u8>) {
        match self {
            Self::RawSocket | Self::LongPoll | Self::Mqtt => {}
            _ => websocket::close(self.mask(), code, reason, out),
        }
    }

    /// Whether a frame has a batch.
    pub fn is_batched(self) -> bool {
        match self {
            Self::WebSocketServer { batched } | Self::WebSocketClient { batched, .. } => batched,
            Self::WebSocketServerAutobahn => true,
            Self::RawSocket | Self::LongPoll | Self::Mqtt => false,
        }
    }

    /// In one word: `rawsocket`, `websocket`, `longpoll`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RawSocket => "rawsocket",
            Self::LongPoll => "longpoll",
            Self::Mqtt => "mqtt",
            Self::WebSocketServer { .. }
            | Self::WebSocketServerAutobahn
            | Self::WebSocketClient { .. } => "websocket",
        }
    }

    /// How a client is answered that is [`batched::is_autobahn`].
    pub fn for_autobahn(self) -> Self {
        match self {
            Self::WebSocketServer { .. } => Self::WebSocketServerAutobahn,
            // Its output is made on request.
            other => other,
        }
    }

    fn mask(self) -> Option<[u8; 4]> {
        match self {
            Self::WebSocketClient { mask, .. } => Some(mask),
            Self::RawSocket
            | Self::LongPoll
            | Self::Mqtt
            | Self::WebSocketServer { .. }
            | Self::WebSocketServerAutobahn => None,
        }
    }
}
