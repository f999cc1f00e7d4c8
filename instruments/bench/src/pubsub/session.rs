//! One of the many connections of a driver's process. All of them read into one buffer, and a message is handled in
//! place; only an incomplete rest is kept with its session.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket;
use crosstie_wamp::framing::{Framing, FramingError, Item, Step, batched, rawsocket};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::relay::Part;
use super::server::{Server, framings};
use crate::load::{Stream, monotonic_ns};
use crate::process::{PATIENCE, WorkerError};
use crate::subject::{Endpoint, Target};
use crate::wamp::pipe::Pipe;

const MESSAGE_BYTES_MAX: usize = 16 << 20;

const READ_BYTES: usize = 256 * 1024;

/// The read buffer of all sessions of a process.
pub(super) struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        Self(vec![0; READ_BYTES])
    }
}

pub(super) struct Session {
    link: Link,
    cutter: Cutter,
    framing: Framing,
    /// The incomplete rest of a read.
    rest: Vec<u8>,
}

enum Link {
    Router(Pipe),
    Floor(Stream),
}

/// Finds the end of a message.
enum Cutter {
    RawSocket(rawsocket::Decoder),
    WebSocket {
        decoder: websocket::Decoder,
        batched: Option<Serializer>,
    },
    /// Every message has this length.
    Fixed(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Nothing,
    Bytes(usize),
    /// The server has closed.
    End,
}

impl Session {
    /// Connects and joins, or tells the floor its purpose.
    pub(super) fn open(server: &Server, part: Part, source: Ipv4Addr) -> Result<Self, WorkerError> {
        match server {
            Server::Router { target, topic } => {
                let mut pipe = match target.endpoint {
                    Endpoint::Tcp(SocketAddr::V6(_)) => Pipe::connect(target)?,
                    _ => Pipe::connect_idle(target, source)?,
                };
                pipe.join(&target.realm)?;
                if part == Part::Subscriber {
                    pipe.subscribe(topic)?;
                }
                Ok(Self {
                    cutter: Cutter::of(target, &mut pipe),
                    link: Link::Router(pipe),
                    framing: framings(target.transport).0,
                    rest: Vec::new(),
                })
            }
            Server::Floor { endpoint, lengths } => {
                let stream = Stream::connect_from(source, endpoint)
                    .map_err(|error| WorkerError::Connect(endpoint.to_string(), error))?;
                stream.limit_waiting(Some(PATIENCE))?;
                part.introduce(&stream)?;
                Ok(Self {
                    link: Link::Floor(stream),
                    cutter: Cutter::Fixed(lengths.event),
                    framing: Framing::RawSocket,
                    rest: Vec::new(),
                })
            }
        }
    }

    /// Reads once, without waiting, and passes on every whole message with the time when the read returned.
    pub(super) fn receive(
        &mut self,
        buffer: &mut Buffer,
        mut handle: impl FnMut(u64, &[u8]) -> Result<(), WorkerError>,
    ) -> Result<Received, WorkerError> {
        let kept = self.rest.len();
        if buffer.0.len() < kept + READ_BYTES {
            buffer.0.resize(kept + READ_BYTES, 0);
        }
        let length = loop {
            match recv(
                self.link.as_fd(),
                &mut buffer.0[kept..kept + READ_BYTES],
                RecvFlags::DONTWAIT,
            ) {
                Ok((length, _)) => break length,
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => break 0,
                Err(error) => return Err(io::Error::from(error).into()),
            }
        };
        let now_ns = monotonic_ns();
        if length == 0 {
            return Ok(Received::End);
        }
        buffer.0[..kept].copy_from_slice(&self.rest);
        let bytes = &mut buffer.0[..kept + length];
        let mut consumed = 0;
        let mut closed = false;
        let mut pongs = Vec::new();
        let framing = self.framing;
        while !closed {
            let step = self
                .cutter
                .cut(&mut bytes[consumed..], &mut |item| match item {
                    Cut::Message(message) => handle(now_ns, message),
                    Cut::Ping(payload) => {
                        framing.pong(payload, &mut pongs);
                        Ok(())
                    }
                    Cut::Close => {
                        closed = true;
                        Ok(())
                    }
                })?;
            if step == 0 {
                break;
            }
            consumed += step;
        }
        self.rest.clear();
        self.rest.extend_from_slice(&bytes[consumed..]);
        if !pongs.is_empty() {
            self.write_all(&pongs)?;
        }
        Ok(if closed {
            Received::End
        } else {
            Received::Bytes(length)
        })
    }

    /// Writes all of it, waiting for a server that does not take it.
    pub(super) fn write_all(&self, mut bytes: &[u8]) -> Result<(), WorkerError> {
        while !bytes.is_empty() {
            match send(self.link.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(length) => bytes = &bytes[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(WorkerError::TimedOut),
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    return Err(WorkerError::Closed("taking a publication"));
                }
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        Ok(())
    }

    /// Sends GOODBYE, unless the server is the floor.
    pub(super) fn leave(self) -> Result<(), WorkerError> {
        match self.link {
            Link::Router(mut pipe) => pipe.leave(),
            Link::Floor(_) => Ok(()),
        }
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Router(pipe) => pipe.as_fd(),
            Self::Floor(stream) => stream.as_fd(),
        }
    }
}

enum Cut<'a> {
    Message(&'a [u8]),
    Ping(&'a [u8]),
    Close,
}

impl Cutter {
    fn of(target: &Target, pipe: &mut Pipe) -> Self {
        let batched = target.transport.is_batched();
        match pipe.take_websocket() {
            None => Self::RawSocket(rawsocket::Decoder::new(MESSAGE_BYTES_MAX)),
            Some(decoder) => Self::WebSocket {
                decoder,
                batched: batched.then_some(target.serializer),
            },
        }
    }

    /// Finds the next item and returns its number of bytes; `None` while it is incomplete.
    fn cut(
        &mut self,
        bytes: &mut [u8],
        found: &mut dyn FnMut(Cut<'_>) -> Result<(), WorkerError>,
    ) -> Result<usize, WorkerError> {
        let (step, batched): (Result<Step<'_>, FramingError>, _) = match self {
            Self::Fixed(length) => {
                let Some(message) = bytes.get(..*length) else {
                    return Ok(0);
                };
                found(Cut::Message(message))?;
                return Ok(*length);
            }
            Self::RawSocket(decoder) => (decoder.next(bytes), None),
            Self::WebSocket { decoder, batched } => (decoder.next(bytes), *batched),
        };
        let step = step?;
        match step.item {
            Some(Item::Message { bytes, .. }) => match batched {
                None => found(Cut::Message(bytes))?,
                Some(serializer) => {
                    for message in batched::split(serializer, bytes) {
                        found(Cut::Message(message?))?;
                    }
                }
            },
            Some(Item::Ping(payload)) => found(Cut::Ping(payload))?,
            Some(Item::Close(_)) => found(Cut::Close)?,
            Some(Item::Pong(_)) | None => {}
        }
        Ok(step.consumed)
    }
}
