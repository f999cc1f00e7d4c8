//! The middle of the floor: a relay that makes the system calls of a router and nothing else. Its time is the
//! machine's; the rest of a round trip is the router's.
//!
//! It counts bytes. For each whole CALL's worth from the caller it sends one INVOCATION's worth to the callee, for each
//! YIELD's worth one RESULT's worth back. All bytes caused by one read leave in one write, as with a corking router.

use std::collections::HashMap;
use std::io;

use rustix::event::epoll;
use serde::{Deserialize, Serialize};

use super::ends::Lengths;
use crate::load::{Listener, Stream};
use crate::subject::Endpoint;

/// The two ways to wait. The faster one depends on the machine, and defines the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Waiting {
    /// `epoll_wait`, then a non-blocking read and write.
    Epoll,
    /// Blocking reads, caller and callee in turn. Only for one pair with little in flight.
    Blocking,
}

impl Waiting {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Blocking => "blocking",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RelayOrder {
    pub endpoint: Endpoint,
    pub waiting: Waiting,
    pub pairs: usize,
    /// Threads that share the pairs, like a router's threads.
    pub threads: usize,
    pub lengths: Lengths,
}

/// The end and the pair of a connection, from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Introduction {
    pub pair: u32,
    pub caller: bool,
}

impl Introduction {
    pub(crate) const LENGTH: usize = 5;

    pub(crate) fn bytes(self) -> [u8; Self::LENGTH] {
        let [a, b, c, d] = self.pair.to_be_bytes();
        [self.caller.into(), a, b, c, d]
    }

    fn read(stream: &Stream) -> io::Result<Self> {
        let mut bytes = [0; Self::LENGTH];
        stream.read_exact(&mut bytes)?;
        let [caller, pair @ ..] = bytes;
        Ok(Self {
            pair: u32::from_be_bytes(pair),
            caller: caller != 0,
        })
    }
}

struct Pair {
    caller: Stream,
    callee: Stream,
}

/// Serves one round: all pairs connect, and it ends when all have left.
pub(crate) fn serve_round(listener: &Listener, order: &RelayOrder) -> io::Result<()> {
    let mut shares: Vec<Vec<Pair>> = (0..order.threads.max(1)).map(|_| Vec::new()).collect();
    for (index, pair) in accept_pairs(listener, order.pairs)?.into_iter().enumerate() {
        let share = index % shares.len();
        shares[share].push(pair);
    }
    let relay = |pairs| match order.waiting {
        Waiting::Epoll => relay_epoll(pairs, order.lengths),
        Waiting::Blocking => relay_blocking(pairs, order.lengths),
    };
    // The first share stays on this thread, so that a relay of one thread is one thread.
    let own = shares.swap_remove(0);
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .into_iter()
            .map(|pairs| scope.spawn(move || relay(pairs)))
            .collect();
        let mut outcome = relay(own);
        for other in others {
            let ended = other
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread ended")));
            outcome = outcome.and(ended);
        }
        outcome
    })
}

fn accept_pairs(listener: &Listener, count: usize) -> io::Result<Vec<Pair>> {
    let mut ends = HashMap::new();
    while ends.len() < 2 * count {
        let stream = listener.accept()?;
        // A connection that closes before its introduction was only a probe.
        if let Ok(introduction) = Introduction::read(&stream) {
            ends.insert(introduction, stream);
        }
    }
    let mut pairs = Vec::with_capacity(count);
    for pair in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        let mut take = |caller| {
            ends.remove(&Introduction { pair, caller })
                .ok_or_else(|| io::Error::other(format!("pair {pair} is not complete")))
        };
        pairs.push(Pair {
            caller: take(true)?,
            callee: take(false)?,
        });
    }
    Ok(pairs)
}

/// Bytes for whole messages: as many of `give` are sent as of `take` were received.
struct Measure {
    take: usize,
    give: usize,
    partial: usize,
}

impl Measure {
    fn new(take: usize, give: usize) -> Self {
        Self {
            take,
            give,
            partial: 0,
        }
    }

    /// The bytes to send after `length` more received ones.
    fn forward(&mut self, length: usize) -> usize {
        let received = self.partial + length;
        self.partial = received % self.take;
        received / self.take * self.give
    }

    /// The place for the next bytes: behind the received part of a message, whose first bytes carry its number.
    fn room<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        &mut buffer[self.partial..]
    }
}

const BUFFER_BYTES: usize = 64 * 1024;

fn relay_blocking(pairs: Vec<Pair>, lengths: Lengths) -> io::Result<()> {
    let [Pair { caller, callee }] = <[Pair; 1]>::try_from(pairs)
        .map_err(|_| io::Error::other("a blocking relay serves one pair"))?;
    let mut buffer = vec![0; BUFFER_BYTES.max(lengths.longest())];
    let mut towards_callee = Measure::new(lengths.call, lengths.invocation);
    let mut towards_caller = Measure::new(lengths.yielded, lengths.result);
    loop {
        if !pass_on(&caller, &callee, &mut towards_callee, &mut buffer)?
            || !pass_on(&callee, &caller, &mut towards_caller, &mut buffer)?
        {
            return Ok(());
        }
    }
}

/// Reads until at least one whole message is there, and writes. False at the end of the stream.
fn pass_on(
    from: &Stream,
    to: &Stream,
    measure: &mut Measure,
    buffer: &mut [u8],
) -> io::Result<bool> {
    let mut bytes = 0;
    while bytes == 0 {
        match read_or_end(from.read(measure.room(buffer)))? {
            0 => return Ok(false),
            length => bytes = measure.forward(length),
        }
    }
    while bytes > 0 {
        let part = bytes.min(buffer.len());
        if write_or_end(to.write_all(&buffer[..part]))?.is_none() {
            return Ok(false);
        }
        bytes -= part;
    }
    Ok(true)
}

/// One direction's source, and the bytes pending for this connection itself.
struct End {
    stream: Stream,
    /// From this end to the other.
    measure: Measure,
    /// Bytes still to be written to this end.
    owed: usize,
    /// Whether epoll is registered for writability.
    awaits_space: bool,
    open: bool,
}

fn relay_epoll(pairs: Vec<Pair>, lengths: Lengths) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    // Neighbours are the two ends of a pair: the other end of `n` is `n ^ 1`.
    let mut ends: Vec<End> = Vec::with_capacity(2 * pairs.len());
    for Pair { caller, callee } in pairs {
        for (stream, measure) in [
            (caller, Measure::new(lengths.call, lengths.invocation)),
            (callee, Measure::new(lengths.yielded, lengths.result)),
        ] {
            let data = epoll::EventData::new_u64(ends.len() as u64);
            epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
            ends.push(End {
                stream,
                measure,
                owed: 0,
                awaits_space: false,
                open: true,
            });
        }
    }
    let mut buffer = vec![0; BUFFER_BYTES.max(lengths.longest())];
    let mut open = ends.len();
    let mut events = Vec::with_capacity(256);
    while open > 0 {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let at = event.data.u64() as usize;
            if !ends[at].open {
                continue;
            }
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::OUT) && !settle(&epoll, &mut ends, at, &buffer)? {
                open -= close_pair(&epoll, &mut ends, at);
                continue;
            }
            if flags.difference(epoll::EventFlags::OUT).is_empty() {
                continue;
            }
            let End {
                stream, measure, ..
            } = &ends[at];
            let length = match stream.try_read(measure.room(&mut buffer)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                outcome => read_or_end(outcome)?,
            };
            let bytes = ends[at].measure.forward(length);
            let other = at ^ 1;
            ends[other].owed += bytes;
            if length == 0 || (bytes > 0 && !settle(&epoll, &mut ends, other, &buffer)?) {
                open -= close_pair(&epoll, &mut ends, at);
            }
        }
    }
    Ok(())
}

/// Writes an end's pending bytes, as far as possible without waiting. False if the end has closed.
fn settle(
    epoll: &impl std::os::fd::AsFd,
    ends: &mut [End],
    at: usize,
    buffer: &[u8],
) -> io::Result<bool> {
    let end = &mut ends[at];
    while end.owed > 0 {
        let part = end.owed.min(buffer.len());
        match write_or_end(end.stream.try_write(&buffer[..part]))? {
            None => return Ok(false),
            Some(written) => {
                end.owed -= written;
                if written < part {
                    break;
                }
            }
        }
    }
    // Writability is awaited only while something is left over, which never happens in a round trip.
    let awaits_space = end.owed > 0;
    if awaits_space != end.awaits_space {
        end.awaits_space = awaits_space;
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, awaits_space);
        epoll::modify(
            epoll,
            &end.stream,
            epoll::EventData::new_u64(at as u64),
            flags,
        )?;
    }
    Ok(true)
}

/// Closes both ends of a pair; returns how many were still open.
fn close_pair(epoll: &impl std::os::fd::AsFd, ends: &mut [End], at: usize) -> usize {
    let mut closed = 0;
    for end in [at, at ^ 1] {
        if std::mem::replace(&mut ends[end].open, false) {
            let _ = epoll::delete(epoll, &ends[end].stream);
            ends[end].stream.shut_down();
            closed += 1;
        }
    }
    closed
}

/// A peer that resets its connection has ended it.
fn read_or_end(outcome: io::Result<usize>) -> io::Result<usize> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
        outcome => outcome,
    }
}

fn write_or_end<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_forwarded() {
        let mut measure = Measure::new(10, 12);
        let forwarded: Vec<usize> = [10, 4, 6, 25, 5].map(|n| measure.forward(n)).into();
        assert_eq!(forwarded, [12, 0, 12, 24, 12]);
    }

    #[test]
    fn an_introduction_names_its_pair() {
        assert_eq!(
            Introduction {
                pair: 258,
                caller: true
            }
            .bytes(),
            [1, 0, 0, 1, 2]
        );
        assert_eq!(
            Introduction {
                pair: 1,
                caller: false
            }
            .bytes(),
            [0, 0, 0, 0, 1]
        );
    }
}
