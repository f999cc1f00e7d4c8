//! The reader of a connection: from readiness to [`Protocol::handle_input`].

mod unread;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{io, mem};

use tokio::io::unix::AsyncFd;

use crate::{Connection, StageError, balance, clock, readiness};

pub use unread::Unread;
pub(crate) use unread::is_transient;

use unread::Read;

/// The protocol of a connection's bytes.
pub trait Protocol {
    /// Handles the front of `input`, and may change it in place (unmasking). Bytes that it does not consume are passed
    /// again, with more behind them.
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome;

    /// Whether its connection may move to another thread ([`Ended::Moved`]).
    fn may_move(&self) -> bool {
        false
    }

    /// [Handles](Protocol::handle_input) an input that has a buffer of its own, as long ones have. A protocol that
    /// consumes all of it may keep the buffer and leave another.
    fn handle_buffer(&mut self, input: &mut Vec<u8>) -> Outcome {
        self.handle_input(input)
    }

    /// Called before its first input in a place.
    fn handle_place(&mut self, _place: Place) {}
}

/// The kind of thread that pumps a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There is one kind only.
    Any,
    /// A thread on which nothing may take long: before large items the pump [ends](Ended::Misplaced).
    Quick,
    /// A thread for large messages ([`crate::Workers::spawn_bulk`]); the pump ends likewise if none has arrived for a
    /// while.
    Bulk,
}

/// The outcome of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Continue: the first `consumed` bytes are done; the next item needs `wanted` bytes in all, as far as known (0:
    /// unknown).
    Continue { consumed: usize, wanted: usize },
    /// The same, but read nothing until everything queued has been sent: a peer that does not take its answers cannot
    /// request more. Unconsumed bytes are offered again then, if they are as many as wanted.
    Hold { consumed: usize, wanted: usize },
    /// The turn is over ([`crate::Budget`]): unconsumed bytes, even none, are offered again after the turns of the
    /// thread's other connections. Nothing is read before.
    Yield { consumed: usize },
    /// The same, but not before reading is resumed ([`Connection::resume_reading`]): an outcome is due, also for a peer
    /// that has closed its side.
    Await { consumed: usize },
    /// [`Outcome::Yield`], and the next item is too large for a [`Place::Quick`]; returned only there.
    Bulk { consumed: usize },
    /// Stop reading and return the unconsumed bytes: another reader continues.
    HandOver { consumed: usize },
    /// Stop reading; the protocol has queued its last message.
    Close,
}

impl Outcome {
    /// Continue, without knowing the length of the next item.
    pub fn consumed(consumed: usize) -> Self {
        let wanted = 0;
        Self::Continue { consumed, wanted }
    }
}

/// The reason why a pump stopped.
#[derive(Debug)]
pub enum Ended {
    /// The peer closed its side; `unconsumed` bytes of an item were left.
    ByPeer { unconsumed: usize },
    /// The protocol requested it.
    ByProtocol,
    /// The protocol hands the connection over with its unconsumed bytes.
    HandedOver { input: Vec<u8> },
    /// The connection moves to that thread: another pump with the same protocol, by
    /// [`Workers::spawn_moved`](crate::Workers::spawn_moved). No part of an item is pending.
    Moved { to: usize },
    /// The connection continues in the other place, with [`pump_in`].
    Misplaced(Box<Unread>),
    /// The socket failed.
    Failed(io::Error),
    /// TLS, or another stage, failed.
    StageFailed(StageError),
}

/// A large item is rarely the last: for this long after one the pump waits for the next in the same place.
const CALM_S: u32 = 2;

/// Reads from `connection` and feeds `protocol` until one of them ends. Needs a tokio context.
pub fn pump<'p, P: Protocol>(connection: &'p Arc<Connection>, protocol: &'p mut P) -> Pump<'p, P> {
    pump_in(Place::Any, Unread::default(), connection, protocol)
}

/// The same with two kinds of threads, from where the pump in the other place has ended.
pub fn pump_in<'p, P: Protocol>(
    place: Place,
    unread: Unread,
    connection: &'p Arc<Connection>,
    protocol: &'p mut P,
) -> Pump<'p, P> {
    Pump {
        connection,
        protocol,
        reading: Reading::new(place, unread),
    }
}

/// A [`Reading`] of a connection and a protocol that others own.
#[must_use = "it does nothing unless it is awaited"]
pub struct Pump<'p, P> {
    connection: &'p Arc<Connection>,
    protocol: &'p mut P,
    reading: Reading,
}

impl<P: Protocol> Future for Pump<'_, P> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let Self {
            connection,
            protocol,
            reading,
        } = &mut *self;
        reading.poll(connection, *protocol, cx)
    }
}

/// The state of a reader, in each connection's future. Polled by hand: an `async fn` would hold its arguments twice.
/// Tokio's future for readiness is a node of an intrusive list, which every idle connection would hold, and takes a
/// lock for each input.
pub struct Reading {
    /// From the first poll on.
    readable: Option<AsyncFd<readiness::Reader>>,
    unread: Unread,
    /// The time of the last large item, in the place for these.
    large_at_s: u32,
    /// Bytes may be there that readiness does not report.
    is_untold: bool,
    place: Place,
}

/// The continuation after a step of the pump.
enum Turn {
    /// The next step.
    GoOn,
    /// Other connections have their turns first.
    Over,
}

impl Reading {
    /// Reads from where the reading in the other place has ended.
    pub fn new(place: Place, unread: Unread) -> Self {
        Self {
            readable: None,
            unread,
            large_at_s: 0,
            is_untold: true,
            place,
        }
    }

    pub fn place(&self) -> Place {
        self.place
    }

    /// Reads what has arrived, and feeds the protocol, until one of them ends. Needs a tokio context, always of the same
    /// thread, and always the same connection.
    pub fn poll<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        cx: &mut Context<'_>,
    ) -> Poll<Ended> {
        let ended = ready!(self.poll_steps(connection, protocol, cx));
        let ended = self.unread.ended(ended);
        self.unread.end(connection);
        self.readable = None;
        Poll::Ready(ended)
    }

    fn poll_steps<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        cx: &mut Context<'_>,
    ) -> Poll<Ended> {
        if self.readable.is_none() {
            self.unread.heard = balance::request_number();
            self.large_at_s = clock::now_s();
            protocol.handle_place(self.place);
            match readiness::register_reader(connection) {
                Ok(readable) => self.readable = Some(readable),
                Err(e) => return Poll::Ready(Ended::Failed(e)),
            }
        }
        loop {
            self.unread.note_kept(connection);
            match ready!(self.poll_step(connection, protocol, cx)) {
                Ok(Turn::GoOn) => {}
                Ok(Turn::Over) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(ended) => return Poll::Ready(ended),
            }
        }
    }

    fn poll_step<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Turn, Ended>> {
        if self.unread.is_held {
            ready!(connection.poll_sent(cx));
            self.unread.resume(connection, protocol)?;
            return Poll::Ready(Ok(turn(self.unread.is_held)));
        }
        if connection.poll_reading(cx).is_pending() {
            if self.unread.is_awaiting {
                return Poll::Pending;
            }
            ready!(self.poll_end(cx))?;
        }
        if self.place != Place::Any && self.is_misplaced() {
            return Poll::Ready(Err(Ended::Misplaced(Box::default())));
        }
        if self.unread.is_yielded {
            self.unread.take_turn(connection, protocol)?;
            // It may be paused now, or held.
            return Poll::Ready(Ok(turn(self.unread.is_yielded)));
        }
        self.poll_read(connection, protocol, cx)
    }

    /// Waits for the end of a peer that may not be read: a peer that has closed its side sends nothing more to hold
    /// back, and its end must be seen behind the bytes that are still there.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let Some(readable) = &self.readable else {
            return Poll::Ready(Ok(()));
        };
        loop {
            match ready!(readable.poll_read_ready(cx)) {
                Ok(guard) if guard.ready().is_read_closed() => return Poll::Ready(Ok(())),
                Ok(mut guard) => guard.clear_ready(),
                Err(e) => return Poll::Ready(Err(Ended::Failed(e))),
            }
            // Readiness does not report again what is already there.
            self.is_untold = true;
        }
    }

    fn poll_read<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Turn, Ended>> {
        // The first read does not wait for readiness: a peer that connects has mostly sent by the time it is accepted,
        // which saves one turn of the reactor.
        let guard = match (&self.readable, mem::take(&mut self.is_untold)) {
            (None, _) | (_, true) => None,
            (Some(readable), false) => match ready!(readable.poll_read_ready(cx)) {
                Ok(guard) => Some(guard),
                Err(e) => return Poll::Ready(Err(Ended::Failed(e))),
            },
        };
        Poll::Ready(Ok(match self.unread.read(connection, protocol)? {
            // The registration is edge-triggered: a read that did not fill its buffer has emptied the socket, and
            // later bytes are a new edge.
            Read::Emptied => {
                guard.into_iter().for_each(|mut guard| guard.clear_ready());
                if !self.unread.is_yielded
                    && balance::request_number() != self.unread.heard
                    && let Some(to) = self.unread.answer(connection, protocol)
                {
                    return Poll::Ready(Err(Ended::Moved { to }));
                }
                turn(self.unread.is_yielded)
            }
            // One read a turn: a peer that sends without pause shares the thread with others.
            Read::MoreLikely => {
                self.is_untold = guard.is_none();
                Turn::Over
            }
        }))
    }

    /// Whether the next item belongs to the other place.
    fn is_misplaced(&mut self) -> bool {
        if self.unread.is_yielded {
            return self.unread.is_bulk;
        }
        let is_large = self.unread.is_large();
        if self.place == Place::Quick {
            return is_large;
        }
        let now_s = clock::now_s();
        if is_large {
            self.large_at_s = now_s;
        }
        now_s.saturating_sub(self.large_at_s) > CALM_S
    }
}

fn turn(is_over: bool) -> Turn {
    match is_over {
        true => Turn::Over,
        false => Turn::GoOn,
    }
}
