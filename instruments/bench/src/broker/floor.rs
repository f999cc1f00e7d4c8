//! The floor: the minimal program in a broker's place. One thread and one epoll. It knows only which connections
//! consume which queue, without exchanges, queues or permissions, and forwards a message's frames unchanged. Its system
//! calls are a broker's: one wait and one read for received bytes, one write for each connection with something to
//! send.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

use crosstie_amqp::frame::{self, Decoded, OVERHEAD_BYTES};
use crosstie_amqp::method::{
    Arguments, BasicAck, BasicConsumeOk, BasicDeliver, BasicQosOk, ChannelOpenOk, ConfirmSelectOk,
    ConnectionCloseOk, ConnectionOpenOk, ConnectionStart, ConnectionTune, ExchangeDeclareOk,
    ExchangeDeleteOk, QueueBindOk, QueueDeclareOk, QueueDeleteOk,
};
use crosstie_amqp::{FrameKind, Method, PROTOCOL_HEADER, Table};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::load::{Listener, Stream};
use crate::process::{Listening, WorkerError, say};
use crate::subject::Endpoint;

pub(crate) const ROLE: &str = "broker-floor";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloorOrder {
    pub address: SocketAddr,
}

pub(crate) fn work(order: FloorOrder) -> Result<(), WorkerError> {
    let (listener, endpoint) = Listener::bind(&Endpoint::Tcp(order.address))?;
    say(&Listening { endpoint });
    Ok(Floor::new()?.serve(&listener)?)
}

const FRAME_BYTES_MAX: u32 = 131_072;
const INPUT_BYTES: usize = 64 * 1024;

struct Floor {
    epoll: OwnedFd,
    /// By descriptor.
    peers: Vec<Option<Peer>>,
    /// By the queue that they consume.
    consumers: HashMap<String, Rc<Consumers>>,
    touched: Vec<usize>,
}

/// The consumers of one queue, which take turns.
struct Consumers {
    all: Vec<(usize, String)>,
    turn: std::cell::Cell<usize>,
}

struct Peer {
    stream: Stream,
    input: Vec<u8>,
    output: Vec<u8>,
    confirms: bool,
    published: u64,
    confirmed: u64,
    delivered: u64,
    /// The last `basic.publish` and its consumers: the next one is most often the same.
    last: Option<(Vec<u8>, Rc<Consumers>)>,
}

impl Floor {
    fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            peers: Vec::new(),
            consumers: HashMap::new(),
            touched: Vec::new(),
        })
    }

    fn serve(mut self, listener: &Listener) -> io::Result<()> {
        let Listener::Tcp(socket) = listener else {
            return Err(io::Error::other("the floor listens on TCP"));
        };
        let listening = socket.as_raw_fd() as u64;
        epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(listening),
            EventFlags::IN,
        )?;
        let mut events = Vec::with_capacity(64);
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
        epoll::add(
            &self.epoll,
            &stream,
            EventData::new_u64(at as u64),
            EventFlags::IN,
        )?;
        self.peers[at] = Some(Peer {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            confirms: false,
            published: 0,
            confirmed: 0,
            delivered: 0,
            last: None,
        });
        Ok(())
    }

    /// One read, and all its messages; false if the connection is over.
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
        input.extend_from_slice(&buffer[..length]);
        let mut rest = &input[..];
        let goes_on = loop {
            match self.take(at, rest) {
                Some(0) => break true,
                Some(taken) => rest = &rest[taken..],
                None => break false,
            }
        };
        let taken = input.len() - rest.len();
        input.drain(..taken);
        if let Some(Some(peer)) = self.peers.get_mut(at) {
            peer.input = input;
            peer.confirm();
            self.touched.push(at);
        }
        goes_on
    }

    /// Handles the front of an input and returns its length: 0 if it is incomplete, `None` if the connection is over.
    fn take(&mut self, at: usize, input: &[u8]) -> Option<usize> {
        let peer = self.peers.get_mut(at)?.as_mut()?;
        if input.starts_with(&PROTOCOL_HEADER) {
            let start = ConnectionStart {
                version_major: 0,
                version_minor: 9,
                server_properties: Table::default(),
                mechanisms: b"PLAIN AMQPLAIN",
                locales: b"en_US",
            };
            peer.answer(0, &start);
            return Some(PROTOCOL_HEADER.len());
        }
        let (method, mut consumed) = match frame::decode(input, FRAME_BYTES_MAX).ok()? {
            Decoded::Frame { frame, consumed } if frame.kind == FrameKind::Method => {
                (frame.payload, consumed)
            }
            // A heartbeat.
            Decoded::Frame { consumed, .. } => return Some(consumed),
            Decoded::Incomplete { .. } => return Some(0),
        };
        if let Some((last, consumers)) = &peer.last
            && last == method
        {
            let consumers = Rc::clone(consumers);
            let Some(content) = content(&input[consumed..])? else {
                return Some(0);
            };
            consumed += content.len();
            self.deliver(at, &consumers, content);
            return Some(consumed);
        }
        match Method::decode(method).ok()? {
            Method::BasicPublish(publish) => {
                let Some(content) = content(&input[consumed..])? else {
                    return Some(0);
                };
                consumed += content.len();
                if let Some(consumers) = self.consumers.get(publish.routing_key) {
                    let consumers = Rc::clone(consumers);
                    peer.last = Some((method.to_owned(), Rc::clone(&consumers)));
                    self.deliver(at, &consumers, content);
                } else {
                    // Without a consumer it is lost, which the count shows.
                    peer.published += 1;
                }
            }
            Method::BasicConsume(consume) => {
                let consumer_tag = consume.consumer_tag;
                if !consume.no_wait {
                    peer.answer(1, &BasicConsumeOk { consumer_tag });
                }
                self.consume(at, consume.queue, consumer_tag);
            }
            Method::ConfirmSelect(_) => {
                peer.confirms = true;
                peer.answer(1, &ConfirmSelectOk {});
            }
            Method::ConnectionClose(_) => peer.answer(0, &ConnectionCloseOk {}),
            method => peer.agree(&method)?,
        }
        Some(consumed)
    }

    fn consume(&mut self, at: usize, queue: &str, tag: &str) {
        let mut all = match self.consumers.get(queue) {
            Some(known) => known.all.clone(),
            None => Vec::new(),
        };
        all.push((at, tag.to_owned()));
        let turn = std::cell::Cell::new(0);
        let consumers = Rc::new(Consumers { all, turn });
        self.consumers.insert(queue.to_owned(), consumers);
        self.peers
            .iter_mut()
            .flatten()
            .for_each(|peer| peer.last = None);
    }

    fn deliver(&mut self, from: usize, consumers: &Consumers, content: &[u8]) {
        let turn = consumers.turn.get();
        consumers.turn.set((turn + 1) % consumers.all.len().max(1));
        if let Some((to, tag)) = consumers.all.get(turn)
            && let Some(Some(peer)) = self.peers.get_mut(*to)
        {
            peer.delivered += 1;
            let deliver = BasicDeliver {
                consumer_tag: tag,
                delivery_tag: peer.delivered,
                redelivered: false,
                exchange: "",
                routing_key: "",
            };
            peer.answer(1, &deliver);
            peer.output.extend_from_slice(content);
            if self.touched.last() != Some(to) {
                self.touched.push(*to);
            }
        }
        if let Some(Some(peer)) = self.peers.get_mut(from) {
            peer.published += 1;
        }
    }

    /// One write for each connection that has something to send.
    fn flush(&mut self) {
        for at in std::mem::take(&mut self.touched) {
            if let Some(Some(peer)) = self.peers.get_mut(at)
                && !peer.output.is_empty()
            {
                // A lost connection shows at its next read.
                let _ = peer.stream.write_all(&peer.output);
                peer.output.clear();
            }
        }
    }

    fn forget(&mut self, at: usize) {
        self.peers[at] = None;
        self.consumers
            .retain(|_, consumers| consumers.all.iter().all(|(of, _)| *of != at));
        self.peers
            .iter_mut()
            .flatten()
            .for_each(|peer| peer.last = None);
    }
}

impl Peer {
    fn answer(&mut self, channel: u16, method: &impl Arguments) {
        frame::write_method(channel, method, &mut self.output);
    }

    /// One confirm for all messages of one read.
    fn confirm(&mut self) {
        if self.confirms && self.confirmed < self.published {
            let ack = BasicAck {
                delivery_tag: self.published,
                multiple: self.published - self.confirmed > 1,
            };
            self.answer(1, &ack);
            self.confirmed = self.published;
        }
    }

    /// Agrees to any request; `None` for an unknown one.
    fn agree(&mut self, method: &Method<'_>) -> Option<()> {
        match method {
            Method::ConnectionStartOk(_) => {
                let tune = ConnectionTune {
                    channel_max: 2047,
                    frame_max: FRAME_BYTES_MAX,
                    heartbeat: 60,
                };
                self.answer(0, &tune);
            }
            Method::ConnectionOpen(_) => self.answer(0, &ConnectionOpenOk::default()),
            Method::ChannelOpen(_) => self.answer(1, &ChannelOpenOk::default()),
            Method::ExchangeDeclare(_) => self.answer(1, &ExchangeDeclareOk {}),
            Method::ExchangeDelete(_) => self.answer(1, &ExchangeDeleteOk {}),
            Method::QueueDeclare(declare) => {
                let queue = declare.queue;
                let declared = QueueDeclareOk {
                    queue,
                    ..QueueDeclareOk::default()
                };
                self.answer(1, &declared);
            }
            Method::QueueDelete(_) => self.answer(1, &QueueDeleteOk::default()),
            Method::QueueBind(_) => self.answer(1, &QueueBindOk {}),
            Method::BasicQos(_) => self.answer(1, &BasicQosOk {}),
            Method::ConnectionTuneOk(_) | Method::BasicAck(_) => {}
            _ => return None,
        }
        Some(())
    }
}

/// The frames of a message's header and body at the front of an input, unchanged: `Some(None)` if incomplete, `None` if
/// invalid.
#[expect(
    clippy::option_option,
    reason = "three outcomes, two of which `?` tells apart"
)]
fn content(input: &[u8]) -> Option<Option<&[u8]>> {
    let Decoded::Frame { frame, consumed } = frame::decode(input, FRAME_BYTES_MAX).ok()? else {
        return Some(None);
    };
    let length = u64::from_be_bytes(frame.payload.get(4..12)?.try_into().ok()?) as usize;
    let part_bytes_max = FRAME_BYTES_MAX as usize - OVERHEAD_BYTES;
    let frames = length.div_ceil(part_bytes_max);
    let whole = consumed + length + frames * OVERHEAD_BYTES;
    Some(input.get(..whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_found_when_all_of_it_is_there() {
        #[track_caller]
        fn check(length: usize) {
            let mut bytes = Vec::new();
            frame::write_content(1, &[0, 0], &vec![7; length], FRAME_BYTES_MAX, &mut bytes);
            let whole = bytes.len();
            bytes.extend_from_slice(b"more");
            assert_eq!(content(&bytes[..whole - 1]), Some(None));
            assert_eq!(content(&bytes), Some(Some(&bytes[..whole])));
        }
        check(0);
        check(100);
        check(131_064);
        check(300_000);
    }
}
