//! A blocking WAMP session on one socket and one thread: no runtime, no queue, no allocation per message. A heavier
//! client would hide the measured router.
//!
//! ```text
//! push, push, … ─▶ output ─flush─▶ one write
//! one read ─▶ input ─▶ decoder ─▶ codec ─▶ handle(message), handle(message), …
//! ```

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crosstie_wamp::framing::websocket::{self, ClientRequest, DecoderConfig, MessageKind, Role};
use crosstie_wamp::framing::{FrameError, Framing, FramingError, Item, Step, batched, rawsocket};
use crosstie_wamp::{Dict, Message, Serializer, codec};

use crate::load::{Stream, Traffic};
use crate::process::{LOGIN_PATIENCE, PATIENCE, WorkerError};
use crate::subject::{Target, Transport};

/// The masking key of every frame of a driver. RFC 6455 section 5.3 wants it unpredictable, to protect proxies from a
/// script; here are neither, and its cost is the same.
pub(crate) const CLIENT_MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

const MESSAGE_BYTES_MAX: usize = 16 << 20;
const INPUT_BYTES: usize = 64 * 1024;

/// An open connection and the session on it.
pub(crate) struct Pipe {
    stream: Stream,
    input: Input,
    output: Output,
    traffic: Traffic,
    /// Whether another thread has sent GOODBYE, if one may. Nothing is sent after GOODBYE, and none is sent in the
    /// middle of something else.
    departed: Option<Arc<Mutex<bool>>>,
}

impl Pipe {
    pub(crate) fn connect(target: &Target) -> Result<Self, WorkerError> {
        Self::connect_patiently(target, PATIENCE)
    }

    /// The same for a router that may stall for so long.
    pub(crate) fn connect_patiently(
        target: &Target,
        patience: Duration,
    ) -> Result<Self, WorkerError> {
        let stream = Stream::connect(&target.endpoint)
            .map_err(|error| WorkerError::Connect(target.endpoint.to_string(), error))?;
        stream.limit_waiting(Some(patience))?;
        Self::shake_hands(stream, target, INPUT_BYTES)
    }

    /// Connects from a given address, with a buffer for small messages: for thousands of idle sessions.
    pub(crate) fn connect_idle(target: &Target, source: Ipv4Addr) -> Result<Self, WorkerError> {
        let stream = Stream::connect_from(source, &target.endpoint)
            .map_err(|error| WorkerError::Connect(target.endpoint.to_string(), error))?;
        stream.limit_waiting(Some(PATIENCE))?;
        Self::shake_hands(stream, target, 512)
    }

    /// With a buffer for the messages around a WELCOME that may be late, and in the minimum of system calls for that,
    /// on either side.
    pub(crate) fn connect_briefly(target: &Target) -> Result<Self, WorkerError> {
        let mut stream = Stream::connect(&target.endpoint)
            .map_err(|error| WorkerError::Connect(target.endpoint.to_string(), error))?;
        stream.wait_by_poll(LOGIN_PATIENCE);
        Self::shake_hands(stream, target, 4_096)
    }

    fn shake_hands(
        stream: Stream,
        target: &Target,
        input_bytes: usize,
    ) -> Result<Self, WorkerError> {
        let mut input = Input {
            bytes: vec![0; input_bytes],
            start: 0,
            end: 0,
            decoder: Decoder::RawSocket(rawsocket::Decoder::new(MESSAGE_BYTES_MAX)),
            serializer: target.serializer,
            batched: target.transport.is_batched(),
        };
        let framing = match target.transport {
            Transport::RawSocket => {
                open_rawsocket(&stream, target.serializer)?;
                Framing::RawSocket
            }
            _ => {
                open_websocket(&stream, target, &mut input)?;
                Framing::WebSocketClient {
                    batched: input.batched,
                    mask: CLIENT_MASK,
                }
            }
        };
        let output = Output {
            bytes: Vec::new(),
            framing,
            serializer: target.serializer,
        };
        Ok(Self {
            stream,
            input,
            output,
            traffic: Traffic::default(),
            departed: None,
        })
    }

    /// Sends GOODBYE, and waits for the router's own. A router that only closes is accepted too.
    pub(crate) fn leave(&mut self) -> Result<(), WorkerError> {
        push_goodbye(&mut self.output)?;
        self.flush()?;
        let mut gone = false;
        while !gone {
            let received = self.receive(|message, _| {
                gone = matches!(message, Message::Goodbye { .. });
                Ok(())
            })?;
            gone |= !received;
        }
        Ok(())
    }

    /// Sends GOODBYE after the router's own.
    pub(crate) fn answer_farewell(&mut self) -> Result<(), WorkerError> {
        push_farewell(&mut self.output, GOODBYE_AND_OUT)?;
        self.flush()
    }

    /// A closure for another thread that leaves while this one waits for messages.
    pub(crate) fn leaver(&mut self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        let mut goodbye = Output {
            bytes: Vec::new(),
            ..self.output
        };
        push_goodbye(&mut goodbye)?;
        let stream = self.stream.try_clone()?;
        let departed = Arc::clone(self.departed.get_or_insert_default());
        Ok(move || {
            let mut departed = departed.lock().unwrap_or_else(PoisonError::into_inner);
            *departed = true;
            if stream.write_all(&goodbye.bytes).is_err() {
                stream.shut_down();
            }
        })
    }

    /// The decoder of a WebSocket, for another reader. Compressed messages may refer to those before.
    pub(crate) fn take_websocket(&mut self) -> Option<websocket::Decoder> {
        let none = Decoder::RawSocket(rawsocket::Decoder::new(MESSAGE_BYTES_MAX));
        match std::mem::replace(&mut self.input.decoder, none) {
            Decoder::RawSocket(_) => None,
            Decoder::WebSocket(decoder) => Some(decoder),
        }
    }

    /// A closure for another thread that ends any wait of this one.
    pub(crate) fn breaker(&self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        let stream = self.stream.try_clone()?;
        Ok(move || stream.shut_down())
    }

    pub(crate) fn push(&mut self, message: &Message<'_>) -> Result<(), WorkerError> {
        self.output.push(message)
    }

    /// Sends the pushed messages, in one write.
    pub(crate) fn flush(&mut self) -> Result<(), WorkerError> {
        if self.output.bytes.is_empty() {
            return Ok(());
        }
        let departed = self.departed.as_ref();
        let departed = departed.map(|gone| gone.lock().unwrap_or_else(PoisonError::into_inner));
        let written = match departed.as_deref() {
            Some(true) => Ok(()),
            _ => self.stream.write_all(&self.output.bytes),
        };
        self.output.bytes.clear();
        Ok(written?)
    }

    /// Reads until at least one whole message is there, and passes on all whole ones. False at the end of the stream.
    pub(crate) fn receive(
        &mut self,
        handle: impl FnMut(&Message<'_>, &mut Output) -> Result<(), WorkerError>,
    ) -> Result<bool, WorkerError> {
        Ok(self.receive_noting(|| (), handle)?.is_some())
    }

    /// The same with the time when the last read returned.
    pub(crate) fn receive_timed(
        &mut self,
        handle: impl FnMut(&Message<'_>, &mut Output) -> Result<(), WorkerError>,
    ) -> Result<Option<Instant>, WorkerError> {
        self.receive_noting(Instant::now, handle)
    }

    fn receive_noting<T>(
        &mut self,
        note: impl Fn() -> T,
        mut handle: impl FnMut(&Message<'_>, &mut Output) -> Result<(), WorkerError>,
    ) -> Result<Option<T>, WorkerError> {
        loop {
            let length = match self.stream.read(self.input.space()) {
                Ok(length) => length,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Err(WorkerError::TimedOut),
                    io::ErrorKind::ConnectionReset => 0,
                    _ => return Err(error.into()),
                },
            };
            let noted = note();
            if length == 0 {
                return Ok(None);
            }
            self.traffic.reads += 1;
            match self.take_in(length, &mut handle)? {
                Found::Closed => return Ok(None),
                Found::Messages(0) => {}
                Found::Messages(count) => {
                    self.traffic.messages += count;
                    return Ok(Some(noted));
                }
            }
        }
    }

    /// Reads available bytes without waiting, and answers pings. False at the end of the stream.
    pub(crate) fn keep_alive(&mut self) -> Result<bool, WorkerError> {
        loop {
            let length = match self.stream.try_read(self.input.space()) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error.into()),
            };
            let found = self.take_in(length, |_, _| Ok(()))?;
            if length == 0 || matches!(found, Found::Closed) {
                return Ok(false);
            }
        }
    }

    fn take_in(
        &mut self,
        length: usize,
        mut handle: impl FnMut(&Message<'_>, &mut Output) -> Result<(), WorkerError>,
    ) -> Result<Found, WorkerError> {
        self.input.end += length;
        let pushed_before = self.output.bytes.len();
        let found = self.input.drain(&mut self.output, &mut handle)?;
        // A batch of pings alone has no later message that flushes the pongs.
        if matches!(found, Found::Messages(0)) && self.output.bytes.len() > pushed_before {
            self.flush()?;
        }
        Ok(found)
    }

    /// From now on a read or a write waits so long.
    pub(crate) fn limit_waiting(&self, longest: Duration) -> Result<(), WorkerError> {
        Ok(self.stream.limit_waiting(Some(longest))?)
    }

    /// Writes prepared bytes, or bytes that are not a message.
    pub(crate) fn write_raw(&self, bytes: &[u8]) -> Result<(), WorkerError> {
        self.stream
            .write_all(bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => WorkerError::TimedOut,
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    WorkerError::Closed("taking all of it")
                }
                _ => error.into(),
            })
    }

    pub(crate) fn serializer(&self) -> Serializer {
        self.output.serializer
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// From now on a read waits as long as it takes.
    pub(crate) fn wait_for_ever(&self) -> Result<(), WorkerError> {
        Ok(self.stream.limit_waiting(None)?)
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }
}

impl std::os::fd::AsFd for Pipe {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Encoded messages that wait for the next flush.
pub(crate) struct Output {
    bytes: Vec<u8>,
    framing: Framing,
    serializer: Serializer,
}

impl Output {
    pub(crate) fn push(&mut self, message: &Message<'_>) -> Result<(), WorkerError> {
        let length_hint = 48 + message.payload().map_or(0, |payload| payload.len());
        let serializer = self.serializer;
        self.framing
            .frame(serializer, length_hint, &mut self.bytes, |out| {
                codec::encode(message, serializer, out)
            })
            .map_err(|error: FrameError<_>| WorkerError::Encode(error.to_string()))
    }
}

/// The answer to a GOODBYE (WAMP §4.2).
pub(crate) const GOODBYE_AND_OUT: &str = "wamp.close.goodbye_and_out";

fn push_goodbye(output: &mut Output) -> Result<(), WorkerError> {
    push_farewell(output, "wamp.close.close_realm")
}

fn push_farewell(output: &mut Output, reason: &str) -> Result<(), WorkerError> {
    output.push(&Message::Goodbye {
        details: Dict::new(),
        reason: reason.into(),
    })
}

enum Found {
    Messages(u64),
    Closed,
}

/// Received bytes that are not consumed yet, and the decoder of their framing.
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    decoder: Decoder,
    serializer: Serializer,
    batched: bool,
}

enum Decoder {
    RawSocket(rawsocket::Decoder),
    WebSocket(websocket::Decoder),
}

impl Decoder {
    fn next<'b>(&'b mut self, input: &'b mut [u8]) -> Result<Step<'b>, FramingError> {
        match self {
            Self::RawSocket(decoder) => decoder.next(input),
            Self::WebSocket(decoder) => decoder.next(input),
        }
    }
}

impl Input {
    /// Room for one read.
    fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.bytes.len() {
                self.bytes.resize(2 * self.end, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    fn drain(
        &mut self,
        output: &mut Output,
        handle: &mut impl FnMut(&Message<'_>, &mut Output) -> Result<(), WorkerError>,
    ) -> Result<Found, WorkerError> {
        let limits = codec::Limits::default();
        let mut count = 0;
        loop {
            let step = self.decoder.next(&mut self.bytes[self.start..self.end])?;
            let consumed = step.consumed;
            match step.item {
                Some(Item::Message { bytes, .. }) if self.batched => {
                    for bytes in batched::split(self.serializer, bytes) {
                        handle(&codec::decode(self.serializer, bytes?, &limits)?, output)?;
                        count += 1;
                    }
                }
                Some(Item::Message { bytes, .. }) => {
                    handle(&codec::decode(self.serializer, bytes, &limits)?, output)?;
                    count += 1;
                }
                Some(Item::Ping(bytes)) => output.framing.pong(bytes, &mut output.bytes),
                Some(Item::Pong(_)) | None => {}
                Some(Item::Close(_)) => return Ok(Found::Closed),
            }
            if consumed == 0 {
                return Ok(Found::Messages(count));
            }
            self.start += consumed;
        }
    }
}

fn open_rawsocket(stream: &Stream, serializer: Serializer) -> Result<(), WorkerError> {
    let handshake = rawsocket::ClientHandshake {
        serializer,
        receive_length_max: MESSAGE_BYTES_MAX,
    };
    stream.write_all(&handshake.request())?;
    let mut answer = [0; 4];
    stream
        .read_exact(&mut answer)
        .map_err(WorkerError::handshake)?;
    handshake.accept(answer).map_err(WorkerError::handshake)?;
    Ok(())
}

/// Bytes behind the response in the same read stay in `input`.
fn open_websocket(stream: &Stream, target: &Target, input: &mut Input) -> Result<(), WorkerError> {
    let subprotocol = websocket::subprotocol(target.serializer, input.batched);
    let key = websocket::key(*b"crosstie's bench");
    let offered = target.transport.deflate();
    let offer = offered.map(|deflate| deflate.offer());
    let deflate;
    let request = ClientRequest {
        host: &target.host,
        target: &target.resource,
        key: &key,
        protocols: &[subprotocol],
        extensions: offer.as_deref(),
        headers: &[],
    };
    stream.write_all(&request.to_bytes())?;
    loop {
        match stream.read(input.space())? {
            0 => return Err(WorkerError::Closed("answering the WebSocket handshake")),
            length => input.end += length,
        }
        let received = &input.bytes[..input.end];
        let accepted = request.accept(received).map_err(WorkerError::handshake)?;
        let Some((length, accepted)) = accepted else {
            continue;
        };
        if accepted.protocol != Some(subprotocol) {
            return Err(WorkerError::handshake(format!(
                "{subprotocol} was not accepted"
            )));
        }
        deflate = match offered {
            Some(offered) => offered
                .agree(&accepted.extensions)
                .map_err(WorkerError::handshake)?,
            None => None,
        };
        if offered.is_some() && deflate.is_none() {
            return Err(WorkerError::handshake(
                "permessage-deflate was not accepted",
            ));
        }
        input.start = length;
        break;
    }
    let kind = if target.serializer.is_binary() {
        MessageKind::Binary
    } else {
        MessageKind::Text
    };
    input.decoder = Decoder::WebSocket(websocket::Decoder::new(
        Role::Client,
        DecoderConfig {
            message_bytes_max: MESSAGE_BYTES_MAX,
            frame_bytes_max: MESSAGE_BYTES_MAX,
            // The JSON decoder validates the text anyway.
            validate_text: false,
            expect: Some(kind),
            deflate,
        },
    ));
    Ok(())
}
