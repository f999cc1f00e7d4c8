//! A session for who handles its messages himself: no calls, subscriptions or handlers, and no reconnection, but
//! what the router says as it says it.
//!
//! It is what a link between routers is made of. [`PipeSender`] appends to what is to be sent, from any thread;
//! [`Pipe::run`] moves the bytes, and hands over what comes.

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
use crate::outgoing::Outgoing;
use crate::pinging::Pinging;
use crate::welcome::Welcome;
use crate::writer::Writer;

/// A joined session, before and while it is run.
pub struct Pipe {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: Writer,
    incoming: Incoming,
    sender: Arc<PipeSender>,
    ping_interval: Option<Duration>,
    outgoing_bytes_max: usize,
}

/// The way into a session.
pub struct PipeSender {
    outgoing: Mutex<Outgoing>,
    serializer: Serializer,
    wake: Notify,
}

/// What a [`Pipe`] hands messages to.
pub trait PipeHandler {
    /// Takes one message. An error ends the session, with that reason.
    fn handle(&mut self, message: Message<'_>) -> Result<(), String>;

    /// After all that one read brought, and after each write: so many bytes wait to be sent.
    fn pause(&mut self, outgoing_bytes: usize);
}

impl Pipe {
    /// Connects, and joins the realm.
    pub async fn connect(config: &Config) -> Result<(Self, Welcome), ConnectError> {
        let joined = join(config).await?;
        let link = joined.link;
        let (reader, writer) = tokio::io::split(link.stream);
        let pipe = Self {
            reader,
            writer: Writer::new(writer),
            incoming: link.incoming,
            sender: Arc::new(PipeSender {
                serializer: link.outgoing.serializer(),
                outgoing: Mutex::new(link.outgoing),
                wake: Notify::new(),
            }),
            ping_interval: config.ping_interval,
            outgoing_bytes_max: config.outgoing_bytes_max,
        };
        Ok((pipe, joined.welcome))
    }

    /// The way into it.
    pub fn sender(&self) -> Arc<PipeSender> {
        Arc::clone(&self.sender)
    }

    /// Moves bytes until the session is over; why. Who drops it closes the connection.
    pub async fn run(&mut self, handler: &mut (dyn PipeHandler + Send)) -> Disconnected {
        let mut pinging = Pinging::new(self.ping_interval);
        // The WELCOME may have come with more behind it.
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
                        pinging.heard();
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
                silent = pinging.tick() => match silent {
                    Some(silence) => return Disconnected::Silent(silence),
                    None => {
                        self.sender.outgoing.lock().ping();
                        None
                    }
                },
            };
        }
    }

    /// Hands over all that has come.
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

    /// Takes what waits to be sent, once what was taken before is sent.
    fn take_outgoing(&mut self) -> Option<Disconnected> {
        let mut outgoing = self.sender.outgoing.lock();
        // Who handles messages has to stop what fills it at the bound.
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

    /// Sends what is still to be said, as far as the router takes it within a second, and ends the connection.
    pub async fn finish(&mut self) {
        let mut last = Vec::new();
        self.sender.outgoing.lock().take(&mut last);
        let finishing = self.writer.finish(&last);
        let _ = tokio::time::timeout(FAREWELL, finishing).await;
    }
}

const FAREWELL: Duration = Duration::from_secs(1);

impl PipeSender {
    /// Appends a message, or says why it cannot be sent.
    pub fn say(&self, message: &Message<'_>) -> Result<(), Unsendable> {
        let said = self.outgoing.lock().push(message);
        self.wake.notify_one();
        said
    }

    /// In which the session speaks.
    pub fn serializer(&self) -> Serializer {
        self.serializer
    }

    /// Bytes that wait to be sent.
    pub fn outgoing_bytes(&self) -> usize {
        self.outgoing.lock().len()
    }
}

/// Why what came is not taken.
struct Broken(String);

impl From<Malformed> for Broken {
    fn from(error: Malformed) -> Self {
        Self(error.reason)
    }
}
