//! One connection to a router: its transport's handshake, and messages as plain values.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use crosstie_client::Transport;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::websocket::{self, ClientRequest, DecoderConfig, MessageKind, Role};
use crosstie_wamp::framing::{FrameError, Framing, Item, batched, rawsocket};
use crosstie_wamp::{Serializer, Value};
use thiserror::Error;

use crate::stream::Stream;

/// Maximum length of a router's message here.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Maximum length of an answer to a WebSocket's opening request.
const RESPONSE_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Connection {
    stream: Stream,
    input: Vec<u8>,
    decoder: Decoder,
    framing: Framing,
    serializer: Serializer,
    batched: bool,
    /// Messages of a batch that were not requested yet.
    waiting: VecDeque<Value>,
}

enum Decoder {
    RawSocket(rawsocket::Decoder),
    WebSocket(Box<websocket::Decoder>),
}

/// The reason why there is no message.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
    #[error("nothing within {} s", .0.as_secs_f64())]
    Silence(Duration),
    #[error("the end of the connection")]
    Closed,
    #[error("a malformed message: {0}")]
    Nonsense(String),
    /// The router does not support the serializer.
    #[error("{0}")]
    NotSpoken(String),
    #[error("no connection: {0}")]
    Unreachable(io::Error),
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// The protocol on the stream.
pub(crate) struct Speech<'a> {
    pub(crate) transport: &'a Transport,
    /// The host in a WebSocket's request.
    pub(crate) host: &'a str,
    pub(crate) serializer: Serializer,
    pub(crate) batched: bool,
}

impl Connection {
    pub(crate) fn open(
        stream: Stream,
        speech: &Speech<'_>,
        patience: Duration,
    ) -> Result<Self, Trouble> {
        let framing = match speech.transport {
            Transport::RawSocket => Framing::RawSocket,
            Transport::WebSocket { .. } => Framing::WebSocketClient {
                batched: speech.batched,
                mask: random(),
            },
        };
        let mut connection = Self {
            stream,
            input: Vec::new(),
            decoder: Decoder::RawSocket(rawsocket::Decoder::new(MESSAGE_BYTES_MAX)),
            framing,
            serializer: speech.serializer,
            batched: speech.batched,
            waiting: VecDeque::new(),
        };
        let end = Instant::now() + patience;
        match speech.transport {
            Transport::RawSocket => connection.open_rawsocket(end, patience)?,
            Transport::WebSocket { target } => {
                connection.open_websocket(speech, target, end, patience)?;
            }
        }
        Ok(connection)
    }

    pub(crate) fn send(&mut self, message: &Value) -> Result<(), Trouble> {
        let serializer = self.serializer;
        self.write(|out| {
            codec::encode_value(message, serializer, out).map_err(|error| error.to_string())
        })
    }

    /// Sends bytes in the place of a message.
    pub(crate) fn send_octets(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.write(|out| {
            out.extend_from_slice(bytes);
            Ok(())
        })
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), Trouble> {
        let mut out = Vec::new();
        let framed = self.framing.frame(self.serializer, 256, &mut out, write);
        framed.map_err(|error: FrameError<String>| Trouble::Nonsense(error.to_string()))?;
        self.stream.write_all(&out)?;
        Ok(self.stream.flush()?)
    }

    /// The next message.
    pub(crate) fn receive(&mut self, patience: Duration) -> Result<Value, Trouble> {
        let end = Instant::now() + patience;
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            if !self.take_in()? {
                self.read(end, patience)?;
            }
        }
    }

    /// Handles one item of the input; false if none is complete.
    fn take_in(&mut self) -> Result<bool, Trouble> {
        let step = match &mut self.decoder {
            Decoder::RawSocket(decoder) => decoder.next(&mut self.input),
            Decoder::WebSocket(decoder) => decoder.next(&mut self.input),
        };
        let step = step.map_err(|error| Trouble::Nonsense(error.to_string()))?;
        let (consumed, serializer) = (step.consumed, self.serializer);
        match step.item {
            Some(Item::Message { bytes, .. }) if self.batched => {
                for bytes in batched::split(serializer, bytes) {
                    let bytes = bytes.map_err(|error| Trouble::Nonsense(error.to_string()))?;
                    self.waiting.push_back(decode(serializer, bytes)?);
                }
            }
            Some(Item::Message { bytes, .. }) => self.waiting.push_back(decode(serializer, bytes)?),
            Some(Item::Ping(payload)) => {
                let mut pong = Vec::new();
                self.framing.pong(payload, &mut pong);
                self.stream.write_all(&pong)?;
                self.stream.flush()?;
            }
            Some(Item::Pong(_)) | None => {}
            Some(Item::Close(_)) => return Err(Trouble::Closed),
        }
        self.input.drain(..consumed);
        Ok(consumed > 0)
    }

    fn read(&mut self, end: Instant, patience: Duration) -> Result<(), Trouble> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Trouble::Silence(patience));
        }
        self.stream.limit_waiting(left)?;
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(Trouble::Closed),
            Ok(length) => {
                self.input.extend_from_slice(&buffer[..length]);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Err(Trouble::Silence(patience))
                }
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error.into()),
            },
        }
    }

    fn open_rawsocket(&mut self, end: Instant, patience: Duration) -> Result<(), Trouble> {
        let handshake = rawsocket::ClientHandshake {
            serializer: self.serializer,
            receive_length_max: MESSAGE_BYTES_MAX,
        };
        self.stream.write_all(&handshake.request())?;
        self.stream.flush()?;
        while self.input.len() < 4 {
            match self.read(end, patience) {
                Err(Trouble::Closed) => return Err(not_spoken(self.serializer, "it closes")),
                read => read?,
            }
        }
        let answer = [self.input[0], self.input[1], self.input[2], self.input[3]];
        let accepted = handshake.accept(answer);
        accepted.map_err(|error| not_spoken(self.serializer, &error.to_string()))?;
        self.input.drain(..4);
        Ok(())
    }

    fn open_websocket(
        &mut self,
        speech: &Speech<'_>,
        target: &str,
        end: Instant,
        patience: Duration,
    ) -> Result<(), Trouble> {
        let subprotocol = websocket::subprotocol(self.serializer, self.batched);
        let key = websocket::key(random());
        let request = ClientRequest {
            host: speech.host,
            target,
            key: &key,
            protocols: &[subprotocol],
            extensions: None,
            headers: &[],
        };
        self.stream.write_all(&request.to_bytes())?;
        self.stream.flush()?;
        loop {
            match self.read(end, patience) {
                Err(Trouble::Closed) => return Err(not_spoken(self.serializer, "it closes")),
                read => read?,
            }
            let accepted = request.accept(&self.input);
            let accepted =
                accepted.map_err(|error| not_spoken(self.serializer, &error.to_string()))?;
            if let Some((length, accepted)) = accepted {
                if accepted.protocol != Some(subprotocol) {
                    return Err(not_spoken(self.serializer, "its answer has another"));
                }
                self.input.drain(..length);
                break;
            }
            if self.input.len() > RESPONSE_BYTES_MAX {
                return Err(Trouble::Nonsense("an answer without an end".to_owned()));
            }
        }
        let kind = match self.serializer.is_binary() {
            true => MessageKind::Binary,
            false => MessageKind::Text,
        };
        let config = DecoderConfig {
            message_bytes_max: MESSAGE_BYTES_MAX,
            frame_bytes_max: MESSAGE_BYTES_MAX,
            expect: Some(kind),
            ..DecoderConfig::default()
        };
        self.decoder = Decoder::WebSocket(Box::new(websocket::Decoder::new(Role::Client, config)));
        Ok(())
    }
}

fn not_spoken(serializer: Serializer, why: &str) -> Trouble {
    Trouble::NotSpoken(format!(
        "the router does not speak {serializer} here: {why}"
    ))
}

fn decode(serializer: Serializer, bytes: &[u8]) -> Result<Value, Trouble> {
    codec::decode_value(serializer, bytes, &Limits::default())
        .map_err(|error| Trouble::Nonsense(error.to_string()))
}

/// RFC 6455 sections 4.1 and 5.3: keys and masks are chosen at random.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without any randomness left in the system the connection works as well.
    let _ = getrandom::fill(&mut bytes);
    bytes
}
