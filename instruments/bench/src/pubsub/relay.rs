//! The floor of a fan-out: a relay that makes the system calls of the plainest router and nothing else. It reads the
//! bytes of publications, and writes the bytes of one event to every subscriber, one write each. Its time is the
//! machine's.

use std::io;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::server::{Lengths, NUMBER_BYTES};
use crate::load::{Listener, Stream};
use crate::process::{Listening, PATIENCE, WorkerError, say};
use crate::subject::Endpoint;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RelayOrder {
    pub(super) endpoint: Endpoint,
    pub(super) lengths: Lengths,
}

/// The purpose of a connection to a server. The relay gets it as one byte, and answers with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Publisher = b'p' as isize,
    Subscriber = b's' as isize,
}

impl Part {
    pub(super) fn introduce(self, stream: &Stream) -> io::Result<()> {
        let byte = [self as u8];
        stream.write_all(&byte)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        match answer == byte {
            true => Ok(()),
            false => Err(io::Error::other("the relay answered with something else")),
        }
    }

    fn accept(stream: &Stream) -> io::Result<Self> {
        stream.limit_waiting(Some(PATIENCE))?;
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        stream.write_all(&byte)?;
        match byte {
            [b'p'] => Ok(Self::Publisher),
            _ => Ok(Self::Subscriber),
        }
    }
}

pub(super) fn work(order: &RelayOrder) -> Result<(), WorkerError> {
    let (listener, endpoint) = Listener::bind(&order.endpoint)?;
    say(&Listening { endpoint });
    Ok(Relay::new(order.lengths)?.serve(&listener)?)
}

const LISTENER: u64 = u64::MAX;
const PUBLISHER: u64 = u64::MAX - 1;
const BUFFER_BYTES: usize = 64 * 1024;

struct Relay {
    epoll: rustix::fd::OwnedFd,
    publication: usize,
    /// Bytes of an event; its number is in the first of them.
    event: Vec<u8>,
    publisher: Option<Publisher>,
    subscribers: Vec<Option<Subscriber>>,
    last: u64,
}

struct Publisher {
    stream: Stream,
    buffer: Vec<u8>,
    filled: usize,
}

/// Numbers have no gaps, so a subscriber's pending events are two numbers and not a queue.
struct Subscriber {
    stream: Stream,
    /// The number of its next event ...
    next: u64,
    /// ... and the number of bytes that it has of that.
    written: usize,
    awaits_space: bool,
}

impl Relay {
    fn new(lengths: Lengths) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            publication: lengths.publication,
            event: vec![b'x'; lengths.event],
            publisher: None,
            subscribers: Vec::new(),
            last: 0,
        })
    }

    /// Serves until it is killed.
    fn serve(&mut self, listener: &Listener) -> io::Result<()> {
        match listener {
            Listener::Unix(listener) => self.listen_to(listener)?,
            Listener::Tcp(listener) => self.listen_to(listener)?,
        }
        let mut ready = Vec::with_capacity(1024);
        loop {
            ready.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut ready),
                None,
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &ready {
                let flags = event.flags;
                match event.data.u64() {
                    LISTENER => self.accept(listener)?,
                    PUBLISHER => self.relay()?,
                    at if flags.contains(EventFlags::OUT) => self.settle(at as usize),
                    // A subscriber sends nothing: readable means its end.
                    at => self.subscribers[at as usize] = None,
                }
            }
        }
    }

    fn listen_to(&self, listener: &impl std::os::fd::AsFd) -> io::Result<()> {
        let data = EventData::new_u64(LISTENER);
        Ok(epoll::add(&self.epoll, listener, data, EventFlags::IN)?)
    }

    fn accept(&mut self, listener: &Listener) -> io::Result<()> {
        let stream = listener.accept()?;
        // A connection that closes before its introduction was only a probe.
        let Ok(part) = Part::accept(&stream) else {
            return Ok(());
        };
        let at = match part {
            Part::Publisher => PUBLISHER,
            Part::Subscriber => self.subscribers.len() as u64,
        };
        epoll::add(&self.epoll, &stream, EventData::new_u64(at), EventFlags::IN)?;
        match part {
            Part::Publisher => {
                self.publisher = Some(Publisher {
                    stream,
                    buffer: vec![0; BUFFER_BYTES.max(self.publication)],
                    filled: 0,
                });
            }
            Part::Subscriber => self.subscribers.push(Some(Subscriber {
                stream,
                next: self.last + 1,
                written: 0,
                awaits_space: false,
            })),
        }
        Ok(())
    }

    /// Reads once from the publisher, and writes the resulting events.
    fn relay(&mut self) -> io::Result<()> {
        let Some(mut publisher) = self.publisher.take() else {
            return Ok(());
        };
        let Publisher {
            stream,
            buffer,
            filled,
        } = &mut publisher;
        match stream.try_read(&mut buffer[*filled..]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The publisher has closed; its connection is dropped with this.
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) => *filled += length,
        }
        let mut consumed = 0;
        while *filled - consumed >= self.publication {
            let head: [u8; NUMBER_BYTES] = std::array::from_fn(|at| buffer[consumed + at]);
            self.publish(u64::from_be_bytes(head));
            consumed += self.publication;
        }
        buffer.copy_within(consumed..*filled, 0);
        *filled -= consumed;
        self.publisher = Some(publisher);
        Ok(())
    }

    fn publish(&mut self, number: u64) {
        self.event[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        for at in 0..self.subscribers.len() {
            let Some(subscriber) = &mut self.subscribers[at] else {
                continue;
            };
            if subscriber.next != number || subscriber.written > 0 {
                // It is behind, and gets this one when there is space.
                continue;
            }
            match subscriber.stream.try_write(&self.event) {
                Ok(length) if length == self.event.len() => subscriber.next += 1,
                Ok(length) => {
                    subscriber.written = length;
                    self.await_space(at, true);
                }
                Err(_) => self.subscribers[at] = None,
            }
        }
        self.last = number;
    }

    /// Writes one subscriber's pending events, as far as possible: one write per event here too.
    fn settle(&mut self, at: usize) {
        let Some(subscriber) = &mut self.subscribers[at] else {
            return;
        };
        while subscriber.next <= self.last {
            self.event[..NUMBER_BYTES].copy_from_slice(&subscriber.next.to_be_bytes());
            let part = &self.event[subscriber.written..];
            match subscriber.stream.try_write(part) {
                Ok(length) if length == part.len() => {
                    subscriber.next += 1;
                    subscriber.written = 0;
                }
                Ok(length) => {
                    subscriber.written += length;
                    return;
                }
                Err(_) => {
                    self.subscribers[at] = None;
                    return;
                }
            }
        }
        self.await_space(at, false);
    }

    fn await_space(&mut self, at: usize, wanted: bool) {
        let Some(subscriber) = &mut self.subscribers[at] else {
            return;
        };
        if subscriber.awaits_space != wanted {
            subscriber.awaits_space = wanted;
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, wanted);
            let data = EventData::new_u64(at as u64);
            // It fails for a closed connection, which the next write notices.
            let _ = epoll::modify(&self.epoll, &subscriber.stream, data, flags);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Subscribers that read only after everything was published get all of it nevertheless, in order.
    #[test]
    fn pending_events_are_written_when_there_is_space() {
        const PUBLICATIONS: u64 = 20_000;
        let lengths = Lengths {
            publication: 16,
            event: 1_000,
        };
        let directory = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::Unix(directory.path().join("relay.sock"));
        let (listener, endpoint) = Listener::bind(&endpoint).unwrap();
        thread::spawn(move || Relay::new(lengths).unwrap().serve(&listener));
        let connect = |part: Part| {
            let stream = Stream::connect(&endpoint).unwrap();
            part.introduce(&stream).unwrap();
            stream
        };
        let subscribers = [connect(Part::Subscriber), connect(Part::Subscriber)];
        let publisher = connect(Part::Publisher);
        let mut publication = [0; 16];
        for number in 1..=PUBLICATIONS {
            publication[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
            publisher.write_all(&publication).unwrap();
        }
        let mut event = [0; 1_000];
        for subscriber in &subscribers {
            for number in 1..=PUBLICATIONS {
                subscriber.read_exact(&mut event).unwrap();
                assert_eq!(event[..NUMBER_BYTES], number.to_be_bytes());
            }
        }
    }
}
