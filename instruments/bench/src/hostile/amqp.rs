//! An attacker's connection to a broker: many channels, prepared bytes, and answers that are counted but not read.
//! Writing and reading alternate, so that neither side's buffers ever stall, and everything ends at the attack's
//! deadline.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use crosstie_amqp::frame::{self, Decoded};
use crosstie_amqp::method::{
    Arguments, ChannelCloseOk, ChannelOpen, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk,
};
use crosstie_amqp::{FrameKind, Method, PROTOCOL_HEADER, Table};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::broker::Broker;
use crate::load::Stream;
use crate::process::WorkerError;
use crate::subject::Endpoint;

const INPUT_BYTES: usize = 256 * 1024;
const FRAME_BYTES_MAX: u32 = 131_072;

pub(super) struct AmqpPeer {
    stream: Stream,
    input: Vec<u8>,
    filled: usize,
    /// The bytes of the next [`AmqpPeer::drive`].
    pub(super) output: Vec<u8>,
    pub(super) seen: Seen,
    deadline: Instant,
}

/// The answers so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Methods other than the following: answers.
    pub(super) answers: u64,
    pub(super) deliveries: u64,
    pub(super) delivery_tag: u64,
    /// Confirms, each counted once, for any number of messages.
    pub(super) confirms: u64,
    /// The channel that the broker closed, or the connection (0), and the reason.
    pub(super) closed: Option<(u16, String)>,
}

/// Appends one method on one channel to an attack's buffer.
pub(super) fn method(channel: u16, method: &impl Arguments, out: &mut Vec<u8>) {
    frame::write_method(channel, method, out);
}

/// A message's header and body, in frames that every broker accepts.
pub(super) fn content(channel: u16, properties: &[u8], body: &[u8], out: &mut Vec<u8>) {
    frame::write_content(channel, properties, body, FRAME_BYTES_MAX, out);
}

impl AmqpPeer {
    /// Connects, logs in, opens the vhost and so many channels, numbered from 1.
    pub(super) fn open(
        broker: &Broker,
        channels: u16,
        deadline: Instant,
    ) -> Result<Self, WorkerError> {
        Self::introduce(
            Stream::connect(&broker.endpoint),
            broker,
            channels,
            deadline,
        )
    }

    /// The same from a given address.
    pub(super) fn open_from(
        source: Ipv4Addr,
        broker: &Broker,
        channels: u16,
        deadline: Instant,
    ) -> Result<Self, WorkerError> {
        let stream = match &broker.endpoint {
            Endpoint::Tcp(SocketAddr::V4(_)) => Stream::connect_from(source, &broker.endpoint),
            endpoint => Stream::connect(endpoint),
        };
        Self::introduce(stream, broker, channels, deadline)
    }

    fn introduce(
        stream: io::Result<Stream>,
        broker: &Broker,
        channels: u16,
        deadline: Instant,
    ) -> Result<Self, WorkerError> {
        let stream =
            stream.map_err(|error| WorkerError::Connect(broker.endpoint.to_string(), error))?;
        let mut peer = Self {
            stream,
            input: vec![0; INPUT_BYTES],
            filled: 0,
            output: PROTOCOL_HEADER.to_vec(),
            seen: Seen::default(),
            deadline,
        };
        peer.await_answers(1)?;
        let response = format!("\0{}\0{}", broker.user, broker.password);
        let start_ok = ConnectionStartOk {
            client_properties: Table::default(),
            mechanism: "PLAIN",
            response: response.as_bytes(),
            locale: "en_US",
        };
        peer.ask(0, &start_ok)?;
        let tune_ok = ConnectionTuneOk {
            channel_max: 2047,
            frame_max: FRAME_BYTES_MAX,
            heartbeat: 0,
        };
        method(0, &tune_ok, &mut peer.output);
        let open = ConnectionOpen {
            virtual_host: &broker.vhost,
            capabilities: "",
            insist: false,
        };
        peer.ask(0, &open)?;
        for channel in 1..=channels {
            peer.ask(channel, &ChannelOpen { out_of_band: "" })?;
        }
        Ok(peer)
    }

    /// Sends the pushed bytes and one more method, and waits for one answer.
    pub(super) fn ask(
        &mut self,
        channel: u16,
        question: &impl Arguments,
    ) -> Result<(), WorkerError> {
        method(channel, question, &mut self.output);
        self.await_answers(1)
    }

    /// Reopens the channel that a refusal has closed, to continue; a closed connection is the end.
    pub(super) fn reopen(&mut self) -> Result<(), WorkerError> {
        match self.seen.closed.take() {
            Some((0, why)) => Err(WorkerError::Dismissed(why)),
            Some((channel, _)) => {
                method(channel, &ChannelCloseOk {}, &mut self.output);
                self.ask(channel, &ChannelOpen { out_of_band: "" })
            }
            None => Ok(()),
        }
    }

    /// Sends the pushed bytes and waits for so many answers.
    pub(super) fn await_answers(&mut self, answers: u64) -> Result<(), WorkerError> {
        let wanted = self.seen.answers + answers;
        self.drive(|seen| seen.answers >= wanted)
    }

    /// Sends the pushed bytes and counts answers, until everything is sent and `is_enough` holds.
    pub(super) fn drive(&mut self, is_enough: impl Fn(&Seen) -> bool) -> Result<(), WorkerError> {
        let output = std::mem::take(&mut self.output);
        let outcome = self.pass(&output, is_enough);
        self.output = output;
        self.output.clear();
        outcome
    }

    /// Counts answers until then, or until the broker closes.
    pub(super) fn listen(&mut self, until: Instant) -> Result<(), WorkerError> {
        let deadline = std::mem::replace(&mut self.deadline, until);
        let outcome = self.pass(&[], |_| false);
        self.deadline = deadline;
        match outcome {
            Err(WorkerError::TimedOut) => Ok(()),
            other => other,
        }
    }

    fn pass(
        &mut self,
        mut unsent: &[u8],
        is_enough: impl Fn(&Seen) -> bool,
    ) -> Result<(), WorkerError> {
        loop {
            if let Some((_, why)) = &self.seen.closed {
                return Err(WorkerError::Dismissed(why.clone()));
            }
            if unsent.is_empty() && is_enough(&self.seen) {
                return Ok(());
            }
            let ready = self.await_readiness(!unsent.is_empty())?;
            if ready.contains(PollFlags::OUT) {
                let sent = self.stream.try_write(unsent).map_err(gone)?;
                unsent = &unsent[sent..];
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.read()?;
            }
        }
    }

    fn await_readiness(&self, writing: bool) -> Result<PollFlags, WorkerError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(WorkerError::TimedOut);
        }
        let wanted = match writing {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        let mut waiting = [PollFd::new(&self.stream, wanted)];
        let left = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut waiting, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(waiting[0].revents()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn read(&mut self) -> Result<(), WorkerError> {
        let length = match self.stream.try_read(&mut self.input[self.filled..]) {
            Ok(0) => return Err(WorkerError::Closed("going on")),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(gone(error)),
        };
        self.filled += length;
        let mut start = 0;
        while let Decoded::Frame { frame, consumed } =
            frame::decode(&self.input[start..self.filled], FRAME_BYTES_MAX)?
        {
            if frame.kind == FrameKind::Method {
                self.seen
                    .note(frame.channel, Method::decode(frame.payload)?);
            }
            start += consumed;
        }
        self.input.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(())
    }
}

impl Seen {
    fn note(&mut self, channel: u16, method: Method<'_>) {
        match method {
            Method::BasicDeliver(deliver) => {
                self.deliveries += 1;
                self.delivery_tag = deliver.delivery_tag;
            }
            Method::BasicAck(_) | Method::BasicNack(_) => self.confirms += 1,
            Method::ConnectionClose(close) => {
                self.closed = Some((0, format!("{} {}", close.reply_code, close.reply_text)));
            }
            Method::ChannelClose(close) => {
                let why = format!("{} {}", close.reply_code, close.reply_text);
                self.closed = Some((channel, why));
            }
            Method::BasicReturn(_)
            | Method::BasicCancel(_)
            | Method::ConnectionBlocked(_)
            | Method::ConnectionUnblocked(_) => {}
            _ => self.answers += 1,
        }
    }
}

/// A connection that was cut is one that was closed.
pub(super) fn gone(error: io::Error) -> WorkerError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            WorkerError::Closed("going on")
        }
        _ => error.into(),
    }
}
