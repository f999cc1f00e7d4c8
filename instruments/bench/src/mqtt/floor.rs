//! The floor: the smallest program in a broker's place. One thread and one epoll. It knows only which connections
//! subscribe to which topic, without sessions, wildcards other than a last `#`, retained messages or permissions, and
//! forwards a PUBLISH unchanged but for its packet identifier. Its system calls are a broker's: one wait and one read
//! for received octets, one write for each connection with something to send.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

use crosstie_mqtt::{
    Ack, Codes, ConnAck, Decoded, Header, HeaderDecoded, Packet, PacketId, PacketType, Properties,
    REMAINING_MAX, ReasonCode, SubAck, Version, decode, decode_connect, decode_header,
    set_packet_id,
};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::load::{Listener, Stream};
use crate::process::{Listening, WorkerError, descriptors, say};
use crate::subject::Endpoint;

pub(crate) const ROLE: &str = "mqtt-floor";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloorOrder {
    pub(super) address: SocketAddr,
}

pub(crate) fn work(order: FloorOrder) -> Result<(), WorkerError> {
    descriptors::raise();
    let (listener, endpoint) = Listener::bind(&Endpoint::Tcp(order.address))?;
    say(&Listening { endpoint });
    Ok(Floor::new()?.serve(&listener)?)
}

const INPUT_BYTES: usize = 64 * 1024;

struct Floor {
    epoll: OwnedFd,
    /// By descriptor.
    peers: Vec<Option<Peer>>,
    /// By topic; the ones below a `#` by what is before it.
    subscribers: HashMap<Vec<u8>, Rc<Vec<usize>>>,
    touched: Vec<usize>,
}

struct Peer {
    stream: Stream,
    version: Option<Version>,
    input: Vec<u8>,
    output: Vec<u8>,
    is_touched: bool,
    next_id: PacketId,
    /// The last topic and its subscribers: the next one is most often the same.
    last: Option<(Vec<u8>, Rc<Vec<usize>>)>,
}

impl Floor {
    fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            peers: Vec::new(),
            subscribers: HashMap::new(),
            touched: Vec::new(),
        })
    }

    fn serve(mut self, listener: &Listener) -> io::Result<()> {
        let Listener::Tcp(socket) = listener else {
            return Err(io::Error::other("the floor listens on TCP"));
        };
        let listening = socket.as_raw_fd() as u64;
        let data = EventData::new_u64(listening);
        epoll::add(&self.epoll, socket, data, EventFlags::IN)?;
        let mut events = Vec::with_capacity(256);
        let mut buffer = vec![0; INPUT_BYTES];
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                if event.data.u64() == listening {
                    self.accept(listener.accept()?)?;
                    continue;
                }
                let at = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                if !self.advance(at, &mut buffer) {
                    self.forget(at);
                }
                self.flush();
            }
        }
    }

    fn accept(&mut self, stream: Stream) -> io::Result<()> {
        let at = usize::try_from(stream.as_fd().as_raw_fd()).unwrap_or(0);
        if self.peers.len() <= at {
            self.peers.resize_with(at + 1, || None);
        }
        let data = EventData::new_u64(at as u64);
        epoll::add(&self.epoll, &stream, data, EventFlags::IN)?;
        self.peers[at] = Some(Peer {
            stream,
            version: None,
            input: Vec::new(),
            output: Vec::new(),
            is_touched: false,
            next_id: PacketId::FIRST,
            last: None,
        });
        Ok(())
    }

    /// One read, and all its packets; false if the connection is over.
    fn advance(&mut self, at: usize, buffer: &mut [u8]) -> bool {
        let Some(Some(peer)) = self.peers.get_mut(at) else {
            return true;
        };
        let length = match peer.stream.try_read(buffer) {
            Ok(0) => return false,
            Ok(length) => length,
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        };
        let mut input = std::mem::take(&mut peer.input);
        if input.is_empty() {
            let rest = &mut buffer[..length];
            let taken = self.take_all(at, rest);
            let kept = taken.map(|taken| rest[taken..].to_vec());
            return self.keep(at, kept);
        }
        input.extend_from_slice(&buffer[..length]);
        let taken = self.take_all(at, &mut input);
        let kept = taken.map(|taken| input.split_off(taken));
        self.keep(at, kept)
    }

    /// Keeps an incomplete packet; false if the connection is over.
    fn keep(&mut self, at: usize, kept: Option<Vec<u8>>) -> bool {
        match (self.peers.get_mut(at), kept) {
            (Some(Some(peer)), Some(kept)) => {
                peer.input = kept;
                true
            }
            _ => false,
        }
    }

    /// Handles all complete packets and returns their length; `None` if the connection is over.
    fn take_all(&mut self, at: usize, input: &mut [u8]) -> Option<usize> {
        let mut taken = 0;
        loop {
            match self.take(at, &mut input[taken..])? {
                0 => return Some(taken),
                length => taken += length,
            }
        }
    }

    /// Handles the front of an input and returns its length: 0 if it is incomplete, `None` if the connection is over.
    fn take(&mut self, at: usize, input: &mut [u8]) -> Option<usize> {
        let peer = self.peers.get_mut(at)?.as_mut()?;
        let Some(version) = peer.version else {
            let Decoded::Packet { packet, consumed } = decode_connect(input, REMAINING_MAX).ok()?
            else {
                return Some(0);
            };
            peer.version = Some(packet.version);
            self.send(at, &Packet::ConnAck(ConnAck::new(ReasonCode::Success)));
            return Some(consumed);
        };
        let header = match decode_header(input, version, REMAINING_MAX).ok()? {
            HeaderDecoded::Header(header) => header,
            HeaderDecoded::Incomplete { .. } => return Some(0),
        };
        let length = header.header_bytes + header.remaining_bytes;
        let Some(packet) = input.get_mut(..length) else {
            return Some(0);
        };
        match header.packet_type {
            PacketType::Publish => self.publish(at, header, packet)?,
            _ => self.answer(at, version, packet)?,
        }
        Some(length)
    }

    fn publish(&mut self, from: usize, header: Header, packet: &mut [u8]) -> Option<()> {
        let body = packet.get(header.header_bytes..)?;
        let (length, body) = body.split_first_chunk::<2>()?;
        let (topic, body) = body.split_at_checked(u16::from_be_bytes(*length).into())?;
        let qos = header.flags >> 1 & 3;
        if qos > 0 {
            let id = PacketId::new(u16::from_be_bytes(*body.first_chunk::<2>()?))?;
            self.send(
                from,
                &match qos {
                    1 => Packet::PubAck(Ack::success(id)),
                    _ => Packet::PubRec(Ack::success(id)),
                },
            );
        }
        let subscribers = self.subscribers_of(from, topic)?;
        for to in subscribers.iter() {
            let Some(Some(peer)) = self.peers.get_mut(*to) else {
                continue;
            };
            if qos > 0 {
                set_packet_id(packet, peer.next_id, false);
                peer.next_id = peer.next_id.next();
            }
            peer.output.extend_from_slice(packet);
            touch(peer, *to, &mut self.touched);
        }
        Some(())
    }

    fn subscribers_of(&mut self, from: usize, topic: &[u8]) -> Option<Rc<Vec<usize>>> {
        let peer = self.peers.get_mut(from)?.as_mut()?;
        if let Some((last, subscribers)) = &peer.last
            && last == topic
        {
            return Some(Rc::clone(subscribers));
        }
        let above = topic.iter().rposition(|octet| *octet == b'/');
        let above = above.map(|end| &topic[..=end]);
        let found = self.subscribers.get(topic);
        let found = found.or_else(|| self.subscribers.get(above?));
        let found = found.cloned().unwrap_or_default();
        peer.last = Some((topic.to_owned(), Rc::clone(&found)));
        Some(found)
    }

    fn answer(&mut self, at: usize, version: Version, packet: &[u8]) -> Option<()> {
        let Decoded::Packet { packet, .. } = decode(packet, version, REMAINING_MAX).ok()? else {
            return None;
        };
        match packet {
            Packet::Subscribe(subscribe) => {
                let mut granted = Vec::new();
                for subscription in subscribe.subscriptions.iter() {
                    self.subscribe(at, subscription.filter.trim_end_matches('#').as_bytes());
                    granted.push(subscription.options.qos.octet());
                }
                self.send(
                    at,
                    &Packet::SubAck(SubAck {
                        packet_id: subscribe.packet_id,
                        properties: Properties::EMPTY,
                        codes: Codes::from_octets(&granted),
                    }),
                );
            }
            Packet::PubRec(ack) => self.send(at, &Packet::PubRel(Ack::success(ack.packet_id))),
            Packet::PubRel(ack) => self.send(at, &Packet::PubComp(Ack::success(ack.packet_id))),
            Packet::PubAck(_) | Packet::PubComp(_) => {}
            _ => return None,
        }
        Some(())
    }

    fn subscribe(&mut self, at: usize, filter: &[u8]) {
        let known = self.subscribers.entry(filter.to_owned()).or_default();
        Rc::make_mut(known).push(at);
        self.forget_last();
    }

    fn send(&mut self, at: usize, packet: &Packet<'_>) {
        if let Some(Some(peer)) = self.peers.get_mut(at) {
            let version = peer.version.unwrap_or(Version::V311);
            // Each of these packets has a form.
            let _ = packet.encode(version, &mut peer.output);
            touch(peer, at, &mut self.touched);
        }
    }

    /// One write for each connection that has something to send.
    fn flush(&mut self) {
        for at in self.touched.drain(..) {
            if let Some(Some(peer)) = self.peers.get_mut(at) {
                peer.is_touched = false;
                // A lost connection shows at its next read.
                let _ = peer.stream.write_all(&peer.output);
                peer.output.clear();
            }
        }
    }

    fn forget(&mut self, at: usize) {
        self.peers[at] = None;
        for subscribers in self.subscribers.values_mut() {
            if subscribers.contains(&at) {
                Rc::make_mut(subscribers).retain(|one| *one != at);
            }
        }
        self.subscribers.retain(|_, all| !all.is_empty());
        self.forget_last();
    }

    fn forget_last(&mut self) {
        self.peers
            .iter_mut()
            .flatten()
            .for_each(|peer| peer.last = None);
    }
}

fn touch(peer: &mut Peer, at: usize, touched: &mut Vec<usize>) {
    if !peer.is_touched {
        peer.is_touched = true;
        touched.push(at);
    }
}
