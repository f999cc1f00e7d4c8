//! A connection: opened, written to, waited on.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crosstie_amqp::frame::{self, HEARTBEAT};
use crosstie_amqp::method::{BasicPublish, ChannelCloseOk, ChannelFlowOk, ChannelOpen};
use crosstie_amqp::method::{ChannelClose, ConnectionClose, ConnectionCloseOk};
use crosstie_amqp::{Arguments, Method, TableBuf};
use rustix::net::{RecvFlags, recv};

use crate::ConnectionError;
use crate::event::{self, Event, Scan};
use crate::input::Input;
use crate::url::{Host, TransportUrl};

/// The options of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Time limit for each address, and for each step of the negotiation there.
    pub connect_timeout: Duration,
    /// Time limit for the broker's answers, and for writes.
    pub reply_timeout: Duration,
    /// In seconds; the broker's proposal if that is less, and 0 for none at all.
    pub heartbeat_s: u16,
    /// In bytes; the broker's proposal if that is less.
    pub frame_bytes_max: u32,
    /// The login mechanism; by default the first that the broker offers: AMQPLAIN, as in oslo.messaging, or PLAIN.
    pub mechanism: Option<Mechanism>,
    /// Shown to the broker's operators.
    pub name: String,
}

/// The login mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    AmqPlain,
    Plain,
}

/// A connection to a broker.
pub struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) host: Host,
    pub(crate) input: Input,
    pub(crate) output: Vec<u8>,
    /// Events that arrived while another one was awaited.
    pub(crate) aside: VecDeque<Vec<u8>>,
    /// The last event returned from it.
    pub(crate) handed_out: Vec<u8>,
    pub(crate) frame_bytes_max: u32,
    pub(crate) channel_max: u16,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) read_at: Instant,
    pub(crate) written_at: Instant,
    /// The socket's current timeout, so that it is set only when it changes.
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) reply_timeout: Duration,
    pub(crate) blocked: Option<String>,
    pub(crate) server_properties: TableBuf,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            reply_timeout: Duration::from_secs(60),
            heartbeat_s: 60,
            frame_bytes_max: 131_072,
            mechanism: None,
            name: "crosstie".to_owned(),
        }
    }
}

impl Connection {
    /// Connects to the first of the hosts that answers, logs in there, opens the vhost.
    pub fn open(url: &TransportUrl, options: &ConnectionOptions) -> Result<Self, ConnectionError> {
        let mut tried = Vec::new();
        let mut mute = None;
        for host in &url.hosts {
            let stream = match connect(host, options) {
                Ok(stream) => stream,
                Err(error) => {
                    tried.push((host.to_string(), error));
                    continue;
                }
            };
            match Self::negotiate(stream, host, &url.virtual_host, options) {
                // The address accepts without a broker behind it: most often a balancer without one.
                Err(
                    error @ (ConnectionError::Socket(_)
                    | ConnectionError::EndOfStream
                    | ConnectionError::Timeout { .. }),
                ) => mute = Some(error),
                negotiated => return negotiated,
            }
        }
        Err(mute.unwrap_or(ConnectionError::Unreachable(tried)))
    }

    pub fn open_channel(&mut self, channel: u16) -> Result<(), ConnectionError> {
        self.call(channel, &ChannelOpen::default()).map(drop)
    }

    /// Buffers a method. It leaves with the next flush, or with the next wait.
    pub fn send(&mut self, channel: u16, method: &impl Arguments) {
        frame::write_method(channel, method, &mut self.output);
    }

    /// Publishes a message, with its encoded properties. Buffered like [`Self::send`].
    pub fn publish(
        &mut self,
        channel: u16,
        method: &BasicPublish<'_>,
        properties: &[u8],
        body: &[u8],
    ) {
        frame::write_method(channel, method, &mut self.output);
        let bytes_max = self.frame_bytes_max;
        frame::write_content(channel, properties, body, bytes_max, &mut self.output);
    }

    /// Writes the buffered frames.
    pub fn flush(&mut self) -> Result<(), ConnectionError> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.written_at = Instant::now();
        let written = self.stream.write_all(&self.output);
        self.output.clear();
        match written {
            Ok(()) => Ok(()),
            Err(error) if is_timeout(&error) => Err(self.timed_out("room for a message")),
            // The broker's last close method is the better reason.
            Err(error) => Err(self.last_words().unwrap_or_else(|| error.into())),
        }
    }

    /// The broker's next event; `None` if nothing arrived in time. Writes the buffered frames before it waits.
    pub fn next_event(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Option<Event<'_>>, ConnectionError> {
        if let Some(bytes) = self.aside.pop_front() {
            self.handed_out = bytes;
            return event::decode(&self.handed_out).map(Some);
        }
        match self.receive(timeout)? {
            Some(found) => event::decode(self.input.take(found.bytes)).map(Some),
            None => Ok(None),
        }
    }

    /// Sends a method, and waits for its answer. Other events are kept for [`Self::next_event`].
    pub fn call<A: Arguments>(
        &mut self,
        channel: u16,
        method: &A,
    ) -> Result<Method<'_>, ConnectionError> {
        let reply = match (A::CLASS_ID, A::METHOD_ID) {
            (40, 40) => (40, 51),
            (class_id, method_id) => (class_id, method_id + 1),
        };
        self.send(channel, method);
        self.await_method(channel, reply, A::NAME)
    }

    /// Sends a heartbeat if one is due, and handles received bytes, without waiting.
    pub fn keep_alive(&mut self) -> Result<(), ConnectionError> {
        if let Some(found) = self.receive(Some(Duration::ZERO))? {
            let bytes = self.input.take(found.bytes).to_vec();
            self.aside.push_back(bytes);
        }
        Ok(())
    }

    /// Closes in order.
    pub fn close(mut self) -> Result<(), ConnectionError> {
        let close = ConnectionClose {
            reply_code: 200,
            reply_text: "OK",
            ..ConnectionClose::default()
        };
        self.call(0, &close).map(drop)
    }

    /// Closes a channel in order.
    pub fn close_channel(&mut self, channel: u16) -> Result<(), ConnectionError> {
        let close = ChannelClose {
            reply_code: 200,
            reply_text: "OK",
            ..ChannelClose::default()
        };
        self.call(channel, &close).map(drop)
    }

    /// The reason why the broker currently accepts no messages, if it does not.
    pub fn blocked(&self) -> Option<&str> {
        self.blocked.as_deref()
    }

    /// The broker's server properties.
    pub fn server_properties(&self) -> &TableBuf {
        &self.server_properties
    }

    /// The host that answered.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The highest channel that may be opened.
    pub fn channel_max(&self) -> u16 {
        self.channel_max
    }

    /// The agreed longest frame, in bytes.
    pub fn frame_bytes_max(&self) -> u32 {
        self.frame_bytes_max
    }

    /// The interval of [`Self::keep_alive`] for a user that does not wait.
    pub fn keep_alive_interval(&self) -> Option<Duration> {
        self.heartbeat.map(|interval| interval / 2)
    }

    /// Waits for a method, and keeps other events.
    pub(crate) fn await_method(
        &mut self,
        channel: u16,
        awaited: (u16, u16),
        name: &'static str,
    ) -> Result<Method<'_>, ConnectionError> {
        let timeout = self.reply_timeout;
        loop {
            let Some(found) = self.receive(Some(timeout))? else {
                return Err(self.timed_out(name));
            };
            if (found.channel, found.ids) == (channel, awaited) {
                let bytes = self.input.take(found.bytes);
                return event::decode(bytes).map(|event| event.method);
            }
            let bytes = self.input.take(found.bytes).to_vec();
            self.aside.push_back(bytes);
        }
    }

    /// Reads until an event for the owner is complete at the front of the input.
    fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Found>, ConnectionError> {
        self.flush()?;
        let mut deadline = None;
        loop {
            let wanted = match event::scan(self.input.bytes(), self.frame_bytes_max)? {
                Scan::Event {
                    channel,
                    ids,
                    bytes,
                } => {
                    let found = Found {
                        channel,
                        ids,
                        bytes,
                    };
                    if self.is_for_owner(&found)? {
                        return Ok(Some(found));
                    }
                    continue;
                }
                Scan::Heartbeat { bytes } => {
                    self.input.take(bytes);
                    continue;
                }
                Scan::Incomplete { wanted } => wanted,
            };
            let now = Instant::now();
            let is_first = deadline.is_none();
            let until = *deadline.get_or_insert_with(|| timeout.map(|timeout| now + timeout));
            let left = until.map(|until| until.saturating_duration_since(now));
            if left == Some(Duration::ZERO) && !is_first {
                return Ok(None);
            }
            if !self.read(wanted, left)? {
                self.beat()?;
            }
        }
    }

    /// One read; false if nothing arrived.
    fn read(&mut self, wanted: usize, wait: Option<Duration>) -> Result<bool, ConnectionError> {
        let is_poll = wait == Some(Duration::ZERO);
        if !is_poll {
            let tick = self.heartbeat.map(|interval| interval / 2);
            let wait = match (wait, tick) {
                (Some(wait), Some(tick)) => Some(wait.min(tick)),
                (wait, tick) => wait.or(tick),
            };
            // The socket's timeout has coarser units, and rejects zero.
            let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
            if wait != self.read_timeout {
                self.stream.set_read_timeout(wait)?;
                self.read_timeout = wait;
            }
        }
        let room = self.input.room(wanted);
        let read = match is_poll {
            true => recv(&self.stream, room, RecvFlags::DONTWAIT)
                .map(|(_, bytes)| bytes)
                .map_err(Into::into),
            false => self.stream.read(room),
        };
        match read {
            Ok(0) => Err(ConnectionError::EndOfStream),
            Ok(bytes) => {
                self.input.has_come(bytes);
                self.read_at = Instant::now();
                // A client that only receives must send heartbeats as well.
                if self.is_heartbeat_due() {
                    self.beat()?;
                }
                Ok(true)
            }
            Err(error) if is_timeout(&error) => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_heartbeat_due(&self) -> bool {
        self.heartbeat.is_some_and(|interval| {
            self.read_at.saturating_duration_since(self.written_at) >= interval / 2
        })
    }

    /// Sends a heartbeat if this side has been silent, and checks that the other has not.
    fn beat(&mut self) -> Result<(), ConnectionError> {
        let Some(interval) = self.heartbeat else {
            return Ok(());
        };
        let now = Instant::now();
        if now.saturating_duration_since(self.read_at) > interval * 2 {
            return Err(ConnectionError::HeartbeatMissed { interval });
        }
        if now.saturating_duration_since(self.written_at) >= interval / 2 {
            self.output.extend_from_slice(&HEARTBEAT);
            self.flush()?;
        }
        Ok(())
    }

    /// Handles events of the connection itself, and removes these.
    fn is_for_owner(&mut self, found: &Found) -> Result<bool, ConnectionError> {
        match found.ids {
            (10, 50 | 60 | 61) | (20, 20 | 40) => {}
            _ => return Ok(true),
        }
        let event = event::decode(self.input.take(found.bytes))?;
        match event.method {
            Method::ConnectionClose(close) => {
                let error = ConnectionError::Closed {
                    code: close.reply_code,
                    text: close.reply_text.to_owned(),
                    class_id: close.class_id,
                    method_id: close.method_id,
                };
                frame::write_method(0, &ConnectionCloseOk {}, &mut self.output);
                // Informing the broker is optional.
                let _ = self.stream.write_all(&self.output);
                self.output.clear();
                return Err(error);
            }
            Method::ConnectionBlocked(blocked) => self.blocked = Some(blocked.reason.to_owned()),
            Method::ConnectionUnblocked(_) => self.blocked = None,
            Method::ChannelFlow(flow) => {
                let ok = ChannelFlowOk {
                    active: flow.active,
                };
                frame::write_method(found.channel, &ok, &mut self.output);
                self.flush()?;
            }
            Method::ChannelClose(close) => {
                let error = ConnectionError::ChannelClosed {
                    channel: found.channel,
                    code: close.reply_code,
                    text: close.reply_text.to_owned(),
                    class_id: close.class_id,
                    method_id: close.method_id,
                };
                frame::write_method(found.channel, &ChannelCloseOk {}, &mut self.output);
                self.flush()?;
                return Err(error);
            }
            _ => {}
        }
        Ok(false)
    }

    /// The connection.close that may have arrived before the socket failed.
    fn last_words(&mut self) -> Option<ConnectionError> {
        loop {
            match event::scan(self.input.bytes(), self.frame_bytes_max).ok()? {
                Scan::Event {
                    channel,
                    ids,
                    bytes,
                } => {
                    let found = Found {
                        channel,
                        ids,
                        bytes,
                    };
                    match ids {
                        (10, 50) => return self.is_for_owner(&found).err(),
                        _ => drop(self.input.take(bytes)),
                    }
                }
                Scan::Heartbeat { bytes } => drop(self.input.take(bytes)),
                Scan::Incomplete { wanted } => {
                    self.stream.set_nonblocking(true).ok()?;
                    match self.stream.read(self.input.room(wanted)) {
                        Ok(bytes) if bytes > 0 => self.input.has_come(bytes),
                        _ => return None,
                    }
                }
            }
        }
    }

    fn timed_out(&self, awaited: &'static str) -> ConnectionError {
        ConnectionError::Timeout {
            waited: self.reply_timeout,
            awaited,
            blocked: self.blocked.clone(),
        }
    }
}

/// An event at the front of the input.
struct Found {
    channel: u16,
    ids: (u16, u16),
    bytes: usize,
}

/// Connects to the first of the host's addresses that answers.
fn connect(host: &Host, options: &ConnectionOptions) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (host.name.as_str(), host.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, options.connect_timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(options.reply_timeout))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
