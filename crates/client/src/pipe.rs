//! A session with direct access to its messages: no calls, subscriptions, handlers or reconnection.
//!
//! Links between routers are made of it. [`PipeSender`] appends to the queue from any thread; [`Pipe::run`] moves the
//! bytes, and passes on received messages.

use std::sync::Arc;
use std::time::Duration;

use crosstie_wamp::{Message, Serializer};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::sync::Notify;

use crate::config::Config;
use crate::dial::Stream;
use crate::error::{ConnectError, Disconnected, Unsendable};
use crate::incoming::{Incoming, Malformed, Received};
use crate::join::join;
use crate::keepalive::Keepalive;
use crate::outgoing::Outgoing;
use crate::welcome::Welcome;
use crate::writer::Writer;

/// A joined session, before and while it runs.
pub struct Pipe {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: Writer,
    incoming: Incoming,
    sender: Arc<PipeSender>,
    ping_interval: Option<Duration>,
    outgoing_bytes_max: usize,
}

/// The sending half of a session.
pub struct PipeSender {
    outgoing: Mutex<Outgoing>,
    serializer: Serializer,
    wake: Notify,
}

/// The receiver of a [`Pipe`]'s messages.
pub trait PipeHandler {
    /// Handles one message. An error ends the session, with that reason.
    fn handle(&mut self, message: Message<'_>) -> Result<(), String>;

    /// Called after the messages of one read and after each write, with the number of queued bytes.
    fn pause(&mut self, outgoing_bytes: usize);
}

impl Pipe {
    /// Connects, and joins the realm.
    pub async fn connect(config: &Config) -> Result<(Self, Welcome), ConnectError> {
        let joined = join(config).await?;
        let wire = joined.wire;
        let (reader, writer) = tokio::io::split(wire.stream);
        let pipe = Self {
            reader,
            writer: Writer::new(writer),
            incoming: wire.incoming,
            sender: Arc::new(PipeSender {
                serializer: wire.outgoing.serializer(),
                outgoing: Mutex::new(wire.outgoing),
                wake: Notify::new(),
            }),
            ping_interval: config.ping_interval,
            outgoing_bytes_max: config.outgoing_bytes_max,
        };
        Ok((pipe, joined.welcome))
    }

    /// Its sending half.
    pub fn sender(&self) -> Arc<PipeSender> {
        Arc::clone(&self.sender)
    }

    /// Moves bytes until the session is over; returns the reason. Dropping the future closes the connection.
    pub async fn run(&mut self, handler: &mut (dyn PipeHandler + Send)) -> Disconnected {
        let mut keepalive = Keepalive::new(self.ping_interval);
        // The read with the WELCOME may have brought more.
        let mut ended = self.handle(handler);
        loop {
            if let Some(why) = ended {
                return self.farewell(why).await;
            }
            if let Some(why) = self.take_outgoing() {
                return why;
            }
            let is_writing = !self.writer.is_idle();
            ended = tokio::select! {
                read = self.reader.read_buf(self.incoming.space()) => match read {
                    Ok(0) => return Disconnected::Closed { reason: None },
                    Ok(_) => {
                        keepalive.heard();
                        self.handle(handler)
                    }
                    Err(error) => return Disconnected::Broken(error.into()),
                },
                written = self.writer.write_out(), if is_writing => match written {
                    Ok(()) => {
                        handler.pause(self.sender.outgoing_bytes());
                        None
                    }
                    Err(error) => return Disconnected::Broken(error.into()),
                },
                () = self.sender.wake.notified() => None,
                silent = keepalive.tick() => match silent {
                    Some(silence) => return Disconnected::Silent(silence),
                    None => {
                        self.sender.outgoing.lock().ping();
                        None
                    }
                },
            };
        }
    }

    /// Passes on all received messages.
    fn handle(&mut self, handler: &mut (dyn PipeHandler + Send)) -> Option<Disconnected> {
        let sender = &self.sender;
        let handled = self.incoming.next(|received| match received {
            Received::Message(message) => {
                let handled = handler.handle(message);
                handled.map(|()| None).map_err(Broken)
            }
            Received::Ping(payload) => {
                sender.outgoing.lock().pong(payload);
                Ok(None)
            }
            Received::Pong => Ok(None),
            Received::Close { reason, .. } => Ok(Some(Disconnected::Closed {
                reason: (!reason.is_empty()).then(|| reason.to_owned()),
            })),
        });
        handler.pause(sender.outgoing_bytes());
        handled.unwrap_or_else(|Broken(why)| Some(Disconnected::Protocol(why)))
    }

    /// Takes queued bytes once the previous ones are sent.
    fn take_outgoing(&mut self) -> Option<Disconnected> {
        let mut outgoing = self.sender.outgoing.lock();
        // The handler has to stop the source of these bytes at the bound.
        if outgoing.len() > self.outgoing_bytes_max.saturating_mul(2) {
            return Some(Disconnected::Stalled(outgoing.len()));
        }
        if outgoing.len() > 0 && self.writer.is_idle() {
            self.writer.take(|bytes| outgoing.take(bytes));
        }
        None
    }

    async fn farewell(&mut self, why: Disconnected) -> Disconnected {
        self.finish().await;
        why
    }

    /// Sends the queued bytes, as far as the router takes them within a second, and ends the connection.
    pub async fn finish(&mut self) {
        let mut last = Vec::new();
        self.sender.outgoing.lock().take(&mut last);
        let finishing = self.writer.finish(&last);
        let _ = tokio::time::timeout(FAREWELL, finishing).await;
    }
}

const FAREWELL: Duration = Duration::from_secs(1);

impl PipeSender {
    /// Appends a message, or returns the reason why it cannot be sent.
    pub fn say(&self, message: &Message<'_>) -> Result<(), Unsendable> {
        let said = self.outgoing.lock().push(message);
        self.wake.notify_one();
        said
    }

    /// The session's serializer.
    pub fn serializer(&self) -> Serializer {
        self.serializer
    }

    /// Bytes that wait to be sent.
    pub fn outgoing_bytes(&self) -> usize {
        self.outgoing.lock().len()
    }
}

/// The reason why received bytes are rejected.
struct Broken(String);

impl From<Malformed> for Broken {
    fn from(error: Malformed) -> Self {
        Self(error.reason)
    }
}
