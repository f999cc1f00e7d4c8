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

/// What a connection's bytes mean.
pub trait Protocol {
    /// Handles what is at the front of `input` and may change it in place (unmasking). What it
    /// does not consume it sees again, with more behind it.
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome;

    /// Whether its connection may go on on another thread ([`Ended::Moved`]).
    fn may_move(&self) -> bool {
        false
    }

    /// [Handles](Protocol::handle_input) an input that has a buffer of its own, as long ones have. A protocol
    /// that consumes all of it may keep the buffer and leave another.
    fn handle_buffer(&mut self, input: &mut Vec<u8>) -> Outcome {
        self.handle_input(input)
    }

    /// Is told where it is pumped, before its first input there.
    fn handle_place(&mut self, _place: Place) {}
}

/// On what kind of thread a connection is pumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There is one kind only.
    Any,
    /// Where nobody may take long: for what is large the pump [ends](Ended::Misplaced).
    Quick,
    /// Where large messages are handled ([`crate::Workers::spawn_bulk`]); the pump ends likewise when
    /// none has come for a while.
    Bulk,
}

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Go on: the first `consumed` bytes are done with; the next item needs `wanted` bytes in
    /// all, as far as is known (0: not known).
    Continue { consumed: usize, wanted: usize },
    /// As before, but read nothing more until all that is queued has been sent: this is how a
    /// peer that does not take its answers is kept from asking for more. What was not consumed
    /// is offered again then, if it is as much as is wanted.
    Hold { consumed: usize, wanted: usize },
    /// The turn is over ([`crate::Budget`]): what was not consumed is offered again, even if it is
    /// nothing, once the thread's other connections have had their turns. Nothing is read before.
    Yield { consumed: usize },
    /// As before, and what comes next is too large for a [`Place::Quick`], where alone this is said.
    Bulk { consumed: usize },
    /// Stop reading and return what was not consumed: somebody else reads from here on.
    HandOver { consumed: usize },
    /// Stop reading; the protocol has already said and queued what there was to say.
    Close,
}

/// Why a pump stopped.
#[derive(Debug)]
pub enum Ended {
    /// The peer closed its side; `unconsumed` bytes of an item were left.
    ByPeer { unconsumed: usize },
    /// The protocol asked for it.
    ByProtocol,
    /// The protocol hands the connection over with bytes that it did not consume.
    HandedOver { input: Vec<u8> },
    /// It goes on on that thread: another pump with the same protocol, by
    /// [`Workers::spawn_moved`](crate::Workers::spawn_moved). Nothing of an item has come.
    Moved { to: usize },
    /// It is to go on in the other place, with [`pump_in`].
    Misplaced(Box<Unread>),
    /// The socket failed.
    Failed(io::Error),
    /// TLS, or another stage, failed.
    StageFailed(StageError),
}

/// A large item is rarely the last: so long after one the next is waited for in the same place.
const CALM_S: u32 = 2;

/// Reads from `connection` and feeds `protocol` until one of them ends. Needs a tokio context.
pub fn pump<'p, P: Protocol>(connection: &'p Arc<Connection>, protocol: &'p mut P) -> Pump<'p, P> {
    pump_in(Place::Any, Unread::default(), connection, protocol)
}

/// The same where there are two kinds of threads, from where the pump in the other place has ended.
pub fn pump_in<'p, P: Protocol>(
    place: Place,
    mut unread: Unread,
    connection: &'p Arc<Connection>,
    protocol: &'p mut P,
) -> Pump<'p, P> {
    unread.heard = balance::request_number();
    protocol.handle_place(place);
    Pump {
        connection,
        protocol,
        readable: None,
        unread,
        is_untold: true,
        place,
        large_at_s: clock::now_s(),
    }
}

/// The state of a reader. A future by hand: as an `async fn` it would hold what it is given twice, and
/// the future that tokio has for readiness is an intrusive list's node, which every idle connection would
/// hold, and takes a lock for each input.
#[must_use = "it does nothing unless it is awaited"]
pub struct Pump<'p, P> {
    connection: &'p Arc<Connection>,
    protocol: &'p mut P,
    /// From the first poll on.
    readable: Option<AsyncFd<readiness::Reader>>,
    unread: Unread,
    /// Something may be there that readiness does not tell of.
    is_untold: bool,
    place: Place,
    /// When something large came last, in the place for that.
    large_at_s: u32,
}

impl<P: Protocol> Future for Pump<'_, P> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let ended = ready!(self.poll_steps(cx));
        let ended = self.unread.ended(ended);
        let connection = self.connection;
        self.unread.end(connection);
        self.readable = None;
        Poll::Ready(ended)
    }
}

/// What a step of the pump leaves.
enum Turn {
    /// The next step.
    GoOn,
    /// Others' turns, before this one goes on.
    Over,
}

impl<P: Protocol> Pump<'_, P> {
    fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if self.readable.is_none() {
            match readiness::register_reader(self.connection) {
                Ok(readable) => self.readable = Some(readable),
                Err(e) => return Poll::Ready(Ended::Failed(e)),
            }
        }
        loop {
            self.unread.note_kept(self.connection);
            match ready!(self.poll_step(cx)) {
                Ok(Turn::GoOn) => {}
                Ok(Turn::Over) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(ended) => return Poll::Ready(ended),
            }
        }
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, Ended>> {
        if self.unread.is_held {
            ready!(self.connection.poll_sent(cx));
            self.unread.resume(self.connection, self.protocol)?;
            return Poll::Ready(Ok(turn(self.unread.is_held)));
        }
        if self.connection.poll_reading(cx).is_pending() {
            ready!(self.poll_end(cx))?;
        }
        if self.place != Place::Any && self.is_misplaced() {
            return Poll::Ready(Err(Ended::Misplaced(Box::default())));
        }
        if self.unread.is_yielded {
            self.unread.take_turn(self.connection, self.protocol)?;
            // It may be paused now, or held.
            return Poll::Ready(Ok(turn(self.unread.is_yielded)));
        }
        self.poll_read(cx)
    }

    /// Waits for the end of a peer that may not be read: who has closed its side sends nothing more to be
    /// held back for, and its end is to be seen behind what is still there.
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
            // What is there is not told of again.
            self.is_untold = true;
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Turn, Ended>> {
        // The first look is without being told: a peer that connects has mostly sent by the
        // time it is accepted, and a turn of the reactor less is what that costs.
        let guard = match (&self.readable, mem::take(&mut self.is_untold)) {
            (None, _) | (_, true) => None,
            (Some(readable), false) => match ready!(readable.poll_read_ready(cx)) {
                Ok(guard) => Some(guard),
                Err(e) => return Poll::Ready(Err(Ended::Failed(e))),
            },
        };
        Poll::Ready(Ok(
            match self.unread.read(self.connection, self.protocol)? {
                // The registration is edge-triggered: a read that did not fill its buffer has
                // emptied the socket, and what comes later is a new edge.
                Read::Emptied => {
                    guard.into_iter().for_each(|mut guard| guard.clear_ready());
                    if !self.unread.is_yielded
                        && balance::request_number() != self.unread.heard
                        && let Some(to) = self.unread.answer(self.connection, self.protocol)
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
            },
        ))
    }

    /// Whether the other place is the right one for what comes next.
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
