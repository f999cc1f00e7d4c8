//! The reader of a connection: from readiness to [`Protocol::handle_input`].

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::{io, mem};

use parking_lot::Mutex;

use crate::queue::spare;
use crate::{
    Connection, Socket, Stage, StageError, account, balance, clock, cork, readiness, workers,
};

/// What a connection's bytes mean.
pub trait Protocol {
    /// Handles what is at the front of `input` and may change it in place (unmasking). What it
    /// does not consume it sees again, with more behind it.
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome;

    /// Whether its connection may go on on another thread ([`Ended::Moved`]).
    fn may_move(&self) -> bool {
        false
    }
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
    /// The socket failed.
    Failed(io::Error),
    /// TLS, or another stage, failed.
    StageFailed(StageError),
}

/// One read takes at most this much; also the largest message that is not copied.
const READ_BYTES: usize = 64 * 1024;

/// A read with less room than this is not worth its system call.
const READ_BYTES_MIN: usize = 4096;

thread_local! {
    /// Every connection of a thread reads into the same buffer: an idle connection holds none.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Reads from `connection` and feeds `protocol` until one of them ends. Needs a tokio context.
pub async fn pump<P: Protocol>(connection: &Arc<Connection>, protocol: &mut P) -> Ended {
    let readable = match readiness::register_reader(connection) {
        Ok(readable) => readable,
        Err(e) => return Ended::Failed(e),
    };
    let mut input = Input {
        heard: balance::request_number(),
        ..Input::default()
    };
    // Something may be there that readiness does not tell of.
    let mut is_untold = true;
    // Polled by hand: the future that tokio has for this is an intrusive list's node, which every
    // idle connection would hold, and takes a lock for each input.
    let ended = std::future::poll_fn(|cx| {
        loop {
            input.note_kept(connection);
            if input.is_held {
                ready!(connection.poll_sent(cx));
                match input.resume(connection, protocol) {
                    Ok(()) if input.is_held => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    Ok(()) => {}
                    Err(ended) => return Poll::Ready(input.ended(ended)),
                }
            }
            if connection.poll_reading(cx).is_pending() {
                // Who has closed its side sends nothing more to be held back for: its end is to
                // be seen, behind what is still there.
                loop {
                    match ready!(readable.poll_read_ready(cx)) {
                        Ok(guard) if guard.ready().is_read_closed() => break,
                        Ok(mut guard) => guard.clear_ready(),
                        Err(e) => return Poll::Ready(Ended::Failed(e)),
                    }
                    // What is there is not told of again.
                    is_untold = true;
                }
            }
            if input.is_yielded {
                match input.take_turn(connection, protocol) {
                    Ok(()) if input.is_yielded => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    // It may be paused now, or held.
                    Ok(()) => continue,
                    Err(ended) => return Poll::Ready(input.ended(ended)),
                }
            }
            // The first look is without being told: a peer that connects has mostly sent by the
            // time it is accepted, and a turn of the reactor less is what that costs.
            let guard = match mem::take(&mut is_untold) {
                true => None,
                false => match ready!(readable.poll_read_ready(cx)) {
                    Ok(guard) => Some(guard),
                    Err(e) => return Poll::Ready(Ended::Failed(e)),
                },
            };
            match input.read(connection, protocol) {
                // The registration is edge-triggered: a read that did not fill its buffer has
                // emptied the socket, and what comes later is a new edge.
                Ok(Read::Emptied) => {
                    guard.into_iter().for_each(|mut guard| guard.clear_ready());
                    if input.is_yielded {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    if balance::request_number() != input.heard
                        && let Some(to) = input.answer(connection, protocol)
                    {
                        return Poll::Ready(Ended::Moved { to });
                    }
                }
                // One read a turn: a peer that sends without pause shares the thread with others.
                Ok(Read::MoreLikely) => {
                    is_untold = guard.is_none();
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(ended) => return Poll::Ready(input.ended(ended)),
            }
        }
    })
    .await;
    input.kept = Vec::new();
    input.note_kept(connection);
    ended
}

enum Read {
    Emptied,
    MoreLikely,
}

impl Read {
    fn of(received: usize, room: usize) -> Self {
        if received < room {
            Self::Emptied
        } else {
            Self::MoreLikely
        }
    }
}

/// What was received and not yet consumed.
#[derive(Default)]
struct Input {
    kept: Vec<u8>,
    /// The protocol wants to see no less than this.
    wanted: usize,
    /// The protocol wants to see nothing before all is sent.
    is_held: bool,
    /// The protocol has had its turn and is not done.
    is_yielded: bool,
    /// The protocol has consumed something: what is kept is of another message than before.
    is_another: bool,
    /// The last request to the thread's connections that this one has answered.
    heard: u8,
    /// What of `kept` is on the account.
    noted_kib: u32,
}

impl Input {
    fn read<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        if let Some(stage) = connection.stage() {
            self.read_staged(connection, stage, protocol)
        } else if self.wanted.max(self.kept.len() + READ_BYTES_MIN) > READ_BYTES {
            self.read_large(connection, protocol)
        } else {
            self.read_plain(connection, protocol)
        }
    }

    /// Puts what is kept on the account; less than a KiB is as an idle connection's state.
    #[inline]
    fn note_kept(&mut self, connection: &Arc<Connection>) {
        let is_another = mem::take(&mut self.is_another);
        // Of a large buffer the system has given what was written to only.
        let bytes = match self.kept.capacity() {
            small @ ..=READ_BYTES => small,
            _ => self.kept.len(),
        };
        let kib = bytes / 1024;
        if kib != self.noted_kib as usize || (is_another && kib > 0) {
            self.note_kept_kib(connection, kib, is_another);
        }
    }

    /// Answers the request to the thread's connections: the thread that this one is to go to, if any.
    #[cold]
    fn answer<P: Protocol>(&mut self, connection: &Connection, protocol: &P) -> Option<usize> {
        let is_between = self.kept.is_empty() && !self.is_held && !connection.is_reading_paused();
        // Asked again after the next input.
        if !is_between {
            return None;
        }
        let (heard, to) = balance::answer();
        self.heard = heard;
        to.filter(|_| protocol.may_move())
    }

    #[cold]
    fn note_kept_kib(&mut self, connection: &Arc<Connection>, kib: usize, is_another: bool) {
        self.noted_kib = u32::try_from(kib).unwrap_or(u32::MAX);
        connection.note_input(kib * 1024, is_another);
        account::choose_if_crossed();
    }

    /// Offers again what was held back.
    fn resume<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(), Ended> {
        self.is_held = false;
        self.hand_in_kept(0, connection, protocol)?;
        if let Some(stage) = connection.stage() {
            self.look_for_end(stage)?;
        }
        Ok(())
    }

    /// Offers what is left when it is this connection's turn again.
    #[cold]
    fn take_turn<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(), Ended> {
        self.is_yielded = false;
        if connection.is_ended() {
            // Whoever was closed meanwhile has no more turns, whatever it has sent.
            return Err(Ended::Failed(io::ErrorKind::ConnectionAborted.into()));
        }
        self.offer_kept(connection, protocol)?;
        if let Some(stage) = connection.stage() {
            self.look_for_end(stage)?;
        }
        Ok(())
    }

    /// The usual way: into the thread's buffer, behind what was kept of the read before.
    fn read_plain<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        READ.with_borrow_mut(|buffer| {
            let kept = self.kept.len();
            let room = buffer.len() - kept;
            let received = receive(connection, |socket| socket.recv(&mut buffer[kept..]))?;
            let input = &mut buffer[..kept + received];
            if received == 0 || input.len() < self.wanted {
                // What was kept before is not copied for nothing, however slowly an item comes.
                self.kept.extend_from_slice(&input[kept..]);
            } else {
                input[..kept].copy_from_slice(&self.kept);
                let consumed = self.hand_in(connection, protocol, input)?;
                self.keep(&input[consumed..]);
            }
            Ok(Read::of(received, room))
        })
    }

    /// An item larger than the thread's buffer: into a buffer of its own.
    fn read_large<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        // Not all at once: a peer that only announces a large item must not make us hold it.
        let missing = self.wanted.saturating_sub(self.kept.len());
        self.kept
            .reserve(missing.clamp(READ_BYTES, 16 * READ_BYTES));
        let before = self.kept.len();
        let received = receive(connection, |socket| socket.recv_append(&mut self.kept))?;
        self.hand_in_kept(before, connection, protocol)?;
        Ok(Read::of(received, READ_BYTES))
    }

    /// Through the connection's stage, which appends what it makes of the bytes.
    fn read_staged<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        stage: &Mutex<dyn Stage>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        let before = self.kept.len();
        let received = READ.with_borrow_mut(|buffer| {
            let received = receive(connection, |socket| socket.recv(buffer))?;
            if self.kept.capacity() == 0 {
                self.kept = spare::take();
            }
            let taken = stage.lock().receive(&buffer[..received], &mut self.kept);
            taken.map_err(Ended::StageFailed)?;
            Ok(received)
        });
        // A stage may have something to say by itself, most of all when it failed.
        if received.is_err() {
            connection.flush();
        }
        let received = received?;
        if !self.hand_in_kept(before, connection, protocol)? {
            connection.flush();
        }
        self.look_for_end(stage)?;
        Ok(Read::of(received, READ_BYTES))
    }

    /// Looks for the end of the stream inside the stage, which the socket does not show.
    fn look_for_end(&self, stage: &Mutex<dyn Stage>) -> Result<(), Ended> {
        let is_ended = stage.lock().is_ended();
        match is_ended && !self.is_held && !self.is_yielded {
            true => Err(Ended::ByPeer { unconsumed: 0 }),
            false => Ok(()),
        }
    }

    /// Lets the protocol handle what is kept, if that is more than `before` and as much as it
    /// wants; whether it did.
    fn hand_in_kept<P: Protocol>(
        &mut self,
        before: usize,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<bool, Ended> {
        if self.kept.len() == before || self.kept.len() < self.wanted {
            if self.kept.is_empty() {
                spare::put(mem::take(&mut self.kept));
            }
            return Ok(false);
        }
        self.offer_kept(connection, protocol)?;
        Ok(true)
    }

    /// Has the protocol handle what is kept.
    fn offer_kept<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(), Ended> {
        let mut input = mem::take(&mut self.kept);
        let consumed = self.hand_in(connection, protocol, &mut input)?;
        // Copying a large rest each time would be quadratic; keeping a large buffer for a small
        // rest would let a slow peer hold it.
        if consumed == 0 && input.len() >= input.capacity() / 2 {
            self.kept = input;
        } else {
            self.keep(&input[consumed..]);
            spare::put(input);
        }
        Ok(())
    }

    /// Lets the protocol handle `input`, then flushes what that touched, own replies first.
    fn hand_in<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        input: &mut [u8],
    ) -> Result<usize, Ended> {
        let outcome = protocol.handle_input(input);
        self.is_another = !matches!(
            outcome,
            Outcome::Continue { consumed: 0, .. } | Outcome::Hold { consumed: 0, .. }
        );
        connection.flush();
        cork::uncork();
        workers::note_activity();
        match outcome {
            Outcome::Continue { consumed, wanted } => {
                self.wanted = wanted;
                Ok(consumed)
            }
            Outcome::Hold { consumed, wanted } => {
                self.wanted = wanted;
                self.is_held = true;
                Ok(consumed)
            }
            Outcome::Yield { consumed } => {
                self.wanted = 0;
                self.is_yielded = true;
                Ok(consumed)
            }
            Outcome::HandOver { consumed } => Err(Ended::HandedOver {
                input: input[consumed..].to_vec(),
            }),
            Outcome::Close => Err(Ended::ByProtocol),
        }
    }

    /// The end, with what was left when it came.
    fn ended(&self, ended: Ended) -> Ended {
        match ended {
            Ended::ByPeer { .. } => Ended::ByPeer {
                unconsumed: self.kept.len(),
            },
            other => other,
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Most inputs end with an item; then an idle connection keeps no buffer.
            spare::put(mem::take(&mut self.kept));
            return;
        }
        self.kept.clear();
        self.kept.extend_from_slice(rest);
    }
}

/// One receive; zero when there was nothing after all.
fn receive(
    connection: &Connection,
    receive: impl FnOnce(&Socket) -> io::Result<usize>,
) -> Result<usize, Ended> {
    match receive(connection.socket()) {
        Ok(0) => Err(Ended::ByPeer { unconsumed: 0 }),
        Ok(count) => {
            connection.note_received(clock::now_s());
            if let Some(meter) = &connection.meter {
                meter.add_received(count);
            }
            Ok(count)
        }
        Err(e) if is_transient(&e) => Ok(0),
        Err(e) => {
            connection.note_failure(&e);
            Err(Ended::Failed(e))
        }
    }
}

pub(crate) fn is_transient(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
