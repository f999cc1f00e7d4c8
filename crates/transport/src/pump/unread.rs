//! A connection's received bytes, on their way to the protocol.

use std::cell::RefCell;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::{io, mem};

use parking_lot::Mutex;

use super::{Ended, Outcome, Protocol};
use crate::queue::spare;
use crate::{Connection, Socket, Stage, account, balance, clock, cork, waiting};

/// Maximum number of bytes of one read; also the largest message that is not copied.
const READ_BYTES: usize = 64 * 1024;

/// The buffer of a longer item grows by this, or by a quarter. A read fills the room there is, which takes 0.1 to 1 ms.
/// Growth copies what has arrived, so most large items need only one.
const LARGE_READ_BYTES: usize = 1024 * 1024;

/// A read with less room than this is not worth its system call.
const READ_BYTES_MIN: usize = 4096;

thread_local! {
    /// All connections of a thread read into the same buffer, so an idle connection holds none.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

pub(super) enum Read {
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

/// Received bytes that are not yet consumed.
#[derive(Debug, Default)]
pub struct Unread {
    kept: Vec<u8>,
    /// The protocol needs at least this many bytes, or more than this can say.
    wanted: u32,
    /// The protocol gets no input before everything is sent.
    pub(super) is_held: bool,
    /// The protocol has had its turn and is not done.
    pub(super) is_yielded: bool,
    /// The next turn begins once reading is resumed.
    pub(super) is_awaiting: bool,
    /// The protocol has announced an item for a [`super::Place::Bulk`].
    pub(super) is_bulk: bool,
    /// The protocol has consumed something: the kept bytes belong to a new message.
    is_another: bool,
    /// The last request to the thread's connections that this one has answered.
    pub(super) heard: u8,
    /// The part of `kept` that is on the account.
    noted_kib: u32,
}

impl Unread {
    /// Bytes that were read before; they are offered first.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self {
            is_yielded: !bytes.is_empty(),
            kept: bytes,
            ..Self::default()
        }
    }

    pub(super) fn read<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        if let Some(stage) = connection.stage() {
            self.read_staged(connection, stage, protocol)
        } else if self.is_large() {
            self.read_large(connection, protocol)
        } else {
            self.read_plain(connection, protocol)
        }
    }

    /// Whether an item is arriving that is too long to be handled without a copy.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.wanted().max(self.kept.len() + READ_BYTES_MIN) > READ_BYTES
    }

    #[inline]
    fn wanted(&self) -> usize {
        self.wanted as usize
    }

    #[inline]
    fn want(&mut self, bytes: usize) {
        self.wanted = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Answers the request to the thread's connections: the thread to move to, if any.
    #[cold]
    pub(super) fn answer<P: Protocol>(
        &mut self,
        connection: &Connection,
        protocol: &P,
    ) -> Option<usize> {
        let is_between = self.kept.is_empty() && !self.is_held && !connection.is_reading_paused();
        // Asked again after the next input.
        if !is_between {
            return None;
        }
        let (heard, to) = balance::answer();
        self.heard = heard;
        to.filter(|_| protocol.may_move())
    }

    /// Ends reading here.
    pub(super) fn end(&mut self, connection: &Arc<Connection>) {
        self.kept = Vec::new();
        self.note_kept(connection);
    }

    /// Puts the kept bytes on the account; less than a KiB counts as an idle connection's state.
    #[inline]
    pub(super) fn note_kept(&mut self, connection: &Arc<Connection>) {
        let is_another = mem::take(&mut self.is_another);
        // Of a large buffer the system has provided only the written part.
        let bytes = match self.kept.capacity() {
            small @ ..=READ_BYTES => small,
            _ => self.kept.len(),
        };
        let kib = bytes / 1024;
        if kib != self.noted_kib as usize || (is_another && kib > 0) {
            self.note_kept_kib(connection, kib, is_another);
        }
    }

    #[cold]
    fn note_kept_kib(&mut self, connection: &Arc<Connection>, kib: usize, is_another: bool) {
        self.noted_kib = u32::try_from(kib).unwrap_or(u32::MAX);
        connection.note_input(kib * 1024, is_another);
        account::choose_if_crossed();
    }

    /// Offers held-back bytes again.
    pub(super) fn resume<P: Protocol>(
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

    /// Offers the rest in this connection's next turn.
    #[cold]
    pub(super) fn take_turn<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(), Ended> {
        self.is_yielded = false;
        self.is_awaiting = false;
        if connection.is_ended() {
            // A connection that was closed meanwhile has no more turns, whatever it has sent.
            return Err(Ended::Failed(io::ErrorKind::ConnectionAborted.into()));
        }
        self.offer_kept(connection, protocol)?;
        if let Some(stage) = connection.stage() {
            self.look_for_end(stage)?;
        }
        Ok(())
    }

    /// The usual path: reads into the thread's buffer, behind the bytes kept from the read before.
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
            if received == 0 || input.len() < self.wanted() {
                // Kept bytes are not copied for nothing, however slowly an item arrives.
                self.kept.extend_from_slice(&input[kept..]);
            } else {
                input[..kept].copy_from_slice(&self.kept);
                let consumed = self.hand_in(connection, protocol, input)?;
                self.keep(&input[consumed..]);
            }
            Ok(Read::of(received, room))
        })
    }

    /// An item larger than the thread's buffer: reads into a buffer of its own, which ends with the item, so that the
    /// protocol can keep the buffer.
    fn read_large<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        let before = self.kept.len();
        let missing = self.wanted().saturating_sub(before);
        let least = match missing {
            0 => READ_BYTES_MIN,
            _ => READ_BYTES_MIN.min(missing),
        };
        if self.kept.capacity() - before < least {
            // Not all at once: a peer that only announces a large item must not occupy its memory. Nor twice the
            // present size, because a read takes as much as there is room for. A protocol that wants a little more
            // mostly does not know how much is coming.
            let more = match missing {
                ..READ_BYTES => READ_BYTES,
                _ => LARGE_READ_BYTES.max(before / 4).min(missing),
            };
            self.kept.reserve_exact(more);
        }
        let room = self.kept.capacity() - before;
        let received = receive(connection, |socket| socket.recv_append(&mut self.kept))?;
        self.hand_in_kept(before, connection, protocol)?;
        Ok(Read::of(received, room))
    }

    /// Reads through the connection's stage, which appends the transformed bytes.
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
        // A stage may have bytes of its own to send, most of all after a failure.
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

    /// Passes the kept bytes to the protocol, if they are more than `before` and as many as it wants; returns whether
    /// it did.
    fn hand_in_kept<P: Protocol>(
        &mut self,
        before: usize,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<bool, Ended> {
        if self.kept.len() == before || self.kept.len() < self.wanted() {
            if self.kept.is_empty() {
                spare::put(mem::take(&mut self.kept));
            }
            return Ok(false);
        }
        self.offer_kept(connection, protocol)?;
        Ok(true)
    }

    /// Passes the kept bytes to the protocol.
    fn offer_kept<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(), Ended> {
        let mut input = mem::take(&mut self.kept);
        let outcome = protocol.handle_buffer(&mut input);
        let consumed = self.note_outcome(outcome, connection, &input)?;
        // Copying a large rest each time would be quadratic; keeping a large buffer for a small rest would let a slow
        // peer hold it.
        if consumed == 0 && input.len() >= input.capacity() / 2 {
            self.kept = input;
        } else {
            // Nothing is left of a buffer that the protocol has taken.
            self.keep(input.get(consumed..).unwrap_or_default());
            spare::put(input);
        }
        Ok(())
    }

    /// Passes `input` to the protocol, then flushes the touched connections, its own replies first.
    fn hand_in<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        input: &mut [u8],
    ) -> Result<usize, Ended> {
        let outcome = protocol.handle_input(input);
        self.note_outcome(outcome, connection, input)
    }

    /// Flushes the connections that an input has touched; returns how much of it was consumed.
    #[inline]
    fn note_outcome(
        &mut self,
        outcome: Outcome,
        connection: &Arc<Connection>,
        input: &[u8],
    ) -> Result<usize, Ended> {
        self.is_another = !matches!(
            outcome,
            Outcome::Continue { consumed: 0, .. } | Outcome::Hold { consumed: 0, .. }
        );
        connection.flush();
        cork::uncork();
        match outcome {
            Outcome::Continue { consumed, wanted } => {
                self.want(wanted);
                Ok(consumed)
            }
            Outcome::Hold { consumed, wanted } => {
                self.want(wanted);
                self.is_held = true;
                Ok(consumed)
            }
            Outcome::Yield { consumed } => {
                self.wanted = 0;
                self.is_yielded = true;
                Ok(consumed)
            }
            Outcome::Await { consumed } => {
                self.wanted = 0;
                self.is_yielded = true;
                self.is_awaiting = true;
                Ok(consumed)
            }
            Outcome::Bulk { consumed } => {
                self.wanted = 0;
                self.is_yielded = true;
                self.is_bulk = true;
                Ok(consumed)
            }
            Outcome::HandOver { consumed } => Err(Ended::HandedOver {
                input: input[consumed..].to_vec(),
            }),
            Outcome::Close => Err(Ended::ByProtocol),
        }
    }

    /// The end, with the number of bytes left.
    pub(super) fn ended(&mut self, ended: Ended) -> Ended {
        match ended {
            Ended::ByPeer { .. } => Ended::ByPeer {
                unconsumed: self.kept.len(),
            },
            Ended::Misplaced(mut unread) => {
                *unread = mem::take(self);
                unread.is_bulk = false;
                Ended::Misplaced(unread)
            }
            other => other,
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Most inputs end with an item; an idle connection keeps no buffer.
            spare::put(mem::take(&mut self.kept));
            return;
        }
        self.kept.clear();
        self.kept.extend_from_slice(rest);
    }
}

/// One receive; zero if there was nothing after all.
fn receive(
    connection: &Connection,
    receive: impl FnOnce(&Socket) -> io::Result<usize>,
) -> Result<usize, Ended> {
    let received = connection.socket().and_then(|socket| {
        let received = receive(socket);
        if matches!(received, Ok(1..)) {
            waiting::note_input(socket.as_raw_fd());
        }
        received
    });
    match received {
        Ok(0) => Err(Ended::ByPeer { unconsumed: 0 }),
        Ok(count) => {
            connection.note_received(clock::now_s());
            if let Some(meter) = connection.meter() {
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
