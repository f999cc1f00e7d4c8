//! Decodes a connection's bytes into messages.

use std::collections::VecDeque;

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::websocket::{self, Role};
use crosstie_wamp::framing::{FramingError, Item, Step, batched, rawsocket};
use crosstie_wamp::{Message, Serializer};

use crate::outgoing::{Format, WireFormat};

/// Received bytes that are not decoded yet, with the decoder of their framing.
#[derive(Debug)]
pub(crate) struct Incoming {
    buffer: Vec<u8>,
    decoder: Decoder,
    serializer: Serializer,
    batched: bool,
    /// Remaining messages of a batch.
    batch: VecDeque<Vec<u8>>,
}

#[derive(Debug)]
enum Decoder {
    RawSocket(rawsocket::Decoder),
    WebSocket(websocket::Decoder),
}

/// An input from the router.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    Message(Message<'a>),
    Ping(&'a [u8]),
    Pong,
    Close { code: Option<u16>, reason: &'a str },
}

/// Bytes that break the protocol.
#[derive(Debug)]
pub(crate) struct Malformed {
    /// The close code for a WebSocket.
    pub(crate) close_code: u16,
    pub(crate) reason: String,
}

/// Bytes of one read, and the maximum that an idle connection keeps.
const READ_BYTES: usize = 16 << 10;

impl Incoming {
    /// `received`: the bytes that arrived in one read with the handshake's end.
    pub(crate) fn new(format: &Format, message_bytes_max: usize, received: Vec<u8>) -> Self {
        let (decoder, batched) = match format.wire {
            WireFormat::RawSocket => {
                let decoder = rawsocket::Decoder::new(message_bytes_max);
                (Decoder::RawSocket(decoder), false)
            }
            WireFormat::WebSocket { batched } => {
                let expect = match format.serializer.is_binary() {
                    true => websocket::MessageKind::Binary,
                    false => websocket::MessageKind::Text,
                };
                let config = websocket::DecoderConfig {
                    message_bytes_max,
                    frame_bytes_max: message_bytes_max,
                    // The JSON decoder validates it.
                    validate_text: false,
                    expect: Some(expect),
                    ..websocket::DecoderConfig::default()
                };
                let decoder = websocket::Decoder::new(Role::Client, config);
                (Decoder::WebSocket(decoder), batched)
            }
        };
        Self {
            buffer: received,
            decoder,
            serializer: format.serializer,
            batched,
            batch: VecDeque::new(),
        }
    }

    /// The buffer for the next read.
    pub(crate) fn space(&mut self) -> &mut Vec<u8> {
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// Drops all received bytes.
    pub(crate) fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Passes complete messages to `handle` in order, until that returns a value.
    ///
    /// The rest stays for the next call.
    pub(crate) fn next<T, E: From<Malformed>>(
        &mut self,
        mut handle: impl FnMut(Received<'_>) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let mut start = 0;
        let mut found = None;
        while found.is_none() {
            if let Some(bytes) = self.batch.pop_front() {
                found = handle(Received::Message(decode(self.serializer, &bytes)?))?;
                continue;
            }
            let Step { consumed, item, .. } = match &mut self.decoder {
                Decoder::RawSocket(decoder) => decoder.next(&mut self.buffer[start..]),
                Decoder::WebSocket(decoder) => decoder.next(&mut self.buffer[start..]),
            }
            .map_err(Malformed::from)?;
            if consumed == 0 {
                break;
            }
            start += consumed;
            found = match item {
                None => None,
                Some(Item::Message { bytes, .. }) if self.batched => {
                    for bytes in batched::split(self.serializer, bytes) {
                        let bytes = bytes.map_err(Malformed::from)?;
                        self.batch.push_back(bytes.to_vec());
                    }
                    None
                }
                Some(Item::Message { bytes, .. }) => {
                    handle(Received::Message(decode(self.serializer, bytes)?))?
                }
                Some(Item::Ping(payload)) => handle(Received::Ping(payload))?,
                Some(Item::Pong(_)) => handle(Received::Pong)?,
                Some(Item::Close(close)) => handle(Received::Close {
                    code: close.code,
                    reason: close.reason,
                })?,
            };
        }
        self.buffer.drain(..start);
        if self.buffer.is_empty() {
            self.buffer.shrink_to(READ_BYTES);
        }
        Ok(found)
    }
}

fn decode(serializer: Serializer, bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    codec::decode(serializer, bytes, &Limits::default()).map_err(|error| Malformed {
        close_code: 1002,
        reason: error.to_string(),
    })
}

impl From<FramingError> for Malformed {
    fn from(error: FramingError) -> Self {
        Self {
            close_code: error.close_code(),
            reason: error.to_string(),
        }
    }
}
