//! A connection to a broker, for drivers: pushed packets leave in one write, and one read takes whatever is there.
//!
//! Set-up waits ([`Wire::open`], [`Wire::subscribe`]). A driver's loop does not: [`Wire::receive`] and [`Wire::flush`]
//! return at once, so that one thread can serve any number of connections.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crosstie_mqtt::{
    Connect, Decoded, Disconnect, Options, Packet, PacketId, Properties, PropertiesBuf, Property,
    QoS, REMAINING_MAX, Subscribe, SubscriptionsBuf, Version, decode,
};
use rustls::{ClientConfig, ClientConnection};

use super::tls;
use super::url::Broker;
use crate::load::{Stream, reset_when_closed};
use crate::process::{PATIENCE, WorkerError};

/// The ends of all connections of a driver.
pub(super) struct Dial {
    broker: Broker,
    version: Version,
    tls: Option<Arc<ClientConfig>>,
}

/// The session that a CONNECT asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session<'a> {
    pub(super) client_id: &'a str,
    pub(super) clean_start: bool,
    /// Whether it outlives the connection.
    pub(super) is_kept: bool,
}

pub(super) struct Wire {
    stream: Stream,
    tls: Option<Box<ClientConnection>>,
    /// Octets that were read and belong to packets that are not all there, or were not asked for yet.
    input: Vec<u8>,
    pub(super) out: Out,
    /// Octets on their way, of which so many are written.
    sealed: Vec<u8>,
    written: usize,
    /// Whether its driver watches for space in the socket.
    pub(super) awaits_space: bool,
    session_present: bool,
    receive_max: u16,
    /// System calls since the set-up.
    pub(super) calls: u64,
}

/// Packets for the next flush.
pub(super) struct Out {
    bytes: Vec<u8>,
    version: Version,
}

/// The buffer that all connections of a thread read into.
pub(super) struct Scratch {
    bytes: Vec<u8>,
    plain: Vec<u8>,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Nothing,
    Something,
}

const READ_BYTES: usize = 64 * 1024;
/// For sessions that are kept: longer than any round.
const EXPIRY_SECONDS: u32 = 3_600;

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; READ_BYTES],
            plain: Vec::new(),
        }
    }
}

impl Out {
    pub(super) fn push(&mut self, packet: &Packet<'_>) -> Result<(), WorkerError> {
        let pushed = packet.encode(self.version, &mut self.bytes);
        pushed.map_err(|error| WorkerError::Encode(error.to_string()))
    }
}

impl Dial {
    pub(super) fn new(broker: &Broker, version: Version) -> Result<Self, WorkerError> {
        Ok(Self {
            broker: broker.clone(),
            version,
            tls: match broker.is_tls {
                true => Some(tls::client()?),
                false => None,
            },
        })
    }

    /// Connects, and opens a session.
    pub(super) fn open(&self, session: Session<'_>) -> Result<Wire, WorkerError> {
        let endpoint = &self.broker.endpoint;
        let stream = Stream::connect(endpoint)
            .map_err(|error| WorkerError::Connect(endpoint.to_string(), error))?;
        stream.limit_waiting(Some(PATIENCE))?;
        // Thousands of connections in TIME_WAIT would use up the ports.
        reset_when_closed(&stream).map_err(io::Error::from)?;
        let tls = match &self.tls {
            Some(config) => Some(Box::new(tls::shake_hands(config, &self.broker, &stream)?)),
            None => None,
        };
        let mut wire = Wire {
            stream,
            tls,
            input: Vec::new(),
            out: Out {
                bytes: Vec::new(),
                version: self.version,
            },
            sealed: Vec::new(),
            written: 0,
            awaits_space: false,
            session_present: false,
            receive_max: u16::MAX,
            calls: 0,
        };
        wire.connect(&self.broker, session)?;
        Ok(wire)
    }
}

impl Wire {
    fn connect(&mut self, broker: &Broker, session: Session<'_>) -> Result<(), WorkerError> {
        let version = self.out.version;
        let expiry = PropertiesBuf::new().with(Property::SessionExpiry(EXPIRY_SECONDS));
        let account = broker.account.as_ref();
        self.out.push(&Packet::Connect(Connect {
            version,
            is_bridge: false,
            // MQTT 3 has one flag for both.
            clean_start: session.clean_start && (version.is_v5() || !session.is_kept),
            keep_alive: 0,
            client_id: session.client_id,
            will: None,
            user_name: account.map(|(user, _)| user.as_str()),
            password: account.map(|(_, password)| password.as_bytes()),
            properties: match version.is_v5() && session.is_kept {
                true => expiry.as_properties(),
                false => Properties::EMPTY,
            },
        }))?;
        let answer = self.ask("CONNACK", |packet| match packet {
            Packet::ConnAck(ack) => Some((
                ack.reason,
                ack.session_present,
                ack.properties.receive_maximum(),
            )),
            _ => None,
        })?;
        let (reason, session_present, receive_max) = answer;
        if reason.is_error() {
            return Err(WorkerError::Refused(format!(
                "the session: {}",
                reason.name()
            )));
        }
        self.session_present = session_present;
        self.receive_max = receive_max.unwrap_or(u16::MAX);
        Ok(())
    }

    pub(super) fn subscribe(&mut self, filter: &str, qos: QoS) -> Result<(), WorkerError> {
        let subscriptions = SubscriptionsBuf::new().with(filter, Options::new(qos));
        self.out.push(&Packet::Subscribe(Subscribe {
            packet_id: PacketId::FIRST,
            properties: Properties::EMPTY,
            subscriptions: subscriptions.as_subscriptions(),
        }))?;
        let granted = self.ask("SUBACK", |packet| match packet {
            Packet::SubAck(ack) => Some(ack.codes.octets().to_vec()),
            _ => None,
        })?;
        match granted == [qos.octet()] {
            true => Ok(()),
            false => Err(WorkerError::Refused(format!(
                "QoS {} for {filter}, and answered {granted:?}",
                qos.octet()
            ))),
        }
    }

    /// Sends what was pushed, and waits for an answer. Packets before it are passed over.
    fn ask<T>(
        &mut self,
        expected: &'static str,
        mut answer: impl FnMut(&Packet<'_>) -> Option<T>,
    ) -> Result<T, WorkerError> {
        self.write_out()?;
        let mut bytes = vec![0; 4096];
        loop {
            let mut found = None;
            while found.is_none() {
                let Decoded::Packet { packet, consumed } = next(&self.input, self.out.version)?
                else {
                    break;
                };
                found = answer(&packet);
                self.input.drain(..consumed);
            }
            if let Some(found) = found {
                return Ok(found);
            }
            let length = match self.stream.read(&mut bytes) {
                Ok(0) => return Err(WorkerError::Closed(expected)),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(WorkerError::TimedOut);
                }
                Err(error) => return Err(error.into()),
            };
            open(self.tls.as_deref_mut(), &bytes[..length], &mut self.input)?;
        }
    }

    /// Whether the broker had kept the session.
    pub(super) fn session_present(&self) -> bool {
        self.session_present
    }

    /// Maximum number of unacknowledged publications to the broker.
    pub(super) fn receive_max(&self) -> u16 {
        self.receive_max
    }

    /// Packets that came with the answer to the set-up. Once, before the first [`Self::receive`].
    pub(super) fn take_early(
        &mut self,
        mut each: impl FnMut(&mut Out, &Packet<'_>) -> Result<(), WorkerError>,
    ) -> Result<(), WorkerError> {
        let used = read_all(&self.input, &mut self.out, &mut each)?;
        self.input.drain(..used);
        Ok(())
    }

    /// Reads once without waiting, and takes all packets that are complete.
    pub(super) fn receive(
        &mut self,
        scratch: &mut Scratch,
        mut each: impl FnMut(&mut Out, &Packet<'_>) -> Result<(), WorkerError>,
    ) -> Result<Received, WorkerError> {
        self.calls += 1;
        let length = match self.stream.try_read(&mut scratch.bytes) {
            Ok(0) => return Err(WorkerError::Closed("sending messages")),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Received::Nothing);
            }
            Err(error) => return Err(error.into()),
        };
        let mut bytes = &scratch.bytes[..length];
        if self.tls.is_some() {
            scratch.plain.clear();
            open(self.tls.as_deref_mut(), bytes, &mut scratch.plain)?;
            bytes = &scratch.plain;
        }
        if self.input.is_empty() {
            let used = read_all(bytes, &mut self.out, &mut each)?;
            self.input.extend_from_slice(&bytes[used..]);
        } else {
            self.input.extend_from_slice(bytes);
            let used = read_all(&self.input, &mut self.out, &mut each)?;
            self.input.drain(..used);
        }
        Ok(Received::Something)
    }

    /// Writes what was pushed, without waiting; false if the socket takes no more now.
    pub(super) fn flush(&mut self) -> Result<bool, WorkerError> {
        self.seal()?;
        while self.written < self.sealed.len() {
            self.calls += 1;
            let taken = self.stream.try_write(&self.sealed[self.written..])?;
            if taken == 0 {
                return Ok(false);
            }
            self.written += taken;
        }
        self.sealed.clear();
        self.written = 0;
        Ok(true)
    }

    /// Sends DISCONNECT, and waits until the broker closes.
    pub(super) fn leave(mut self) -> Result<(), WorkerError> {
        self.out.push(&Packet::Disconnect(Disconnect::default()))?;
        self.write_out()?;
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(()),
                // The last messages, or TLS's farewell.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(WorkerError::TimedOut);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn write_out(&mut self) -> Result<(), WorkerError> {
        self.seal()?;
        self.stream.write_all(&self.sealed[self.written..])?;
        self.sealed.clear();
        self.written = 0;
        Ok(())
    }

    /// Moves what was pushed to the octets on their way.
    fn seal(&mut self) -> Result<(), WorkerError> {
        let pushed = &mut self.out.bytes;
        match &mut self.tls {
            Some(tls) => {
                tls.writer().write_all(pushed)?;
                pushed.clear();
                while tls.wants_write() {
                    tls.write_tls(&mut self.sealed)?;
                }
            }
            None if self.sealed.is_empty() => std::mem::swap(&mut self.sealed, pushed),
            None => self.sealed.append(pushed),
        }
        Ok(())
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Appends the plain text of octets from the socket.
fn open(
    tls: Option<&mut ClientConnection>,
    mut bytes: &[u8],
    plain: &mut Vec<u8>,
) -> Result<(), WorkerError> {
    let Some(tls) = tls else {
        plain.extend_from_slice(bytes);
        return Ok(());
    };
    while !bytes.is_empty() {
        tls.read_tls(&mut bytes)?;
        tls.process_new_packets().map_err(WorkerError::handshake)?;
        match tls.reader().read_to_end(plain) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn next(bytes: &[u8], version: Version) -> Result<Decoded<Packet<'_>>, WorkerError> {
    decode(bytes, version, REMAINING_MAX).map_err(|error| WorkerError::Refused(error.to_string()))
}

/// All complete packets; returns their length.
fn read_all(
    bytes: &[u8],
    out: &mut Out,
    each: &mut impl FnMut(&mut Out, &Packet<'_>) -> Result<(), WorkerError>,
) -> Result<usize, WorkerError> {
    let mut used = 0;
    while let Decoded::Packet { packet, consumed } = next(&bytes[used..], out.version)? {
        if let Packet::Disconnect(farewell) = packet {
            let reason = farewell.reason.name().to_owned();
            return Err(WorkerError::Dismissed(reason));
        }
        each(out, &packet)?;
        used += consumed;
    }
    Ok(used)
}
