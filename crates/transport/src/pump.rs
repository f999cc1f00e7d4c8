//! The reader of a connection: from readiness to [`Protocol::handle_input`].

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};

use crate::queue::spare;
use crate::{Connection, StageError, clock, cork, readiness, workers};

/// What a connection's octets mean.
pub trait Protocol {
    /// Handles what is at the front of `input` and may change it in place (unmasking). What it
    /// does not consume it sees again, with more behind it.
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome;
}

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Go on: the first `consumed` octets are done with; the next item needs `wanted` octets in
    /// all, as far as is known (0: not known).
    Continue { consumed: usize, wanted: usize },
    /// Stop reading and return what was not consumed: somebody else reads from here on.
    HandOver { consumed: usize },
    /// Stop reading; the protocol has already said and queued what there was to say.
    Close,
}

/// Why a pump stopped.
#[derive(Debug)]
pub enum Ended {
    /// The peer closed its side; `unconsumed` octets of an item were left.
    ByPeer { unconsumed: usize },
    /// The protocol asked for it.
    ByProtocol,
    /// The protocol hands the connection over with octets that it did not consume.
    HandedOver { input: Vec<u8> },
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
    let mut input = Input::default();
    // Polled by hand: the future that tokio has for this is an intrusive list's node, which every
    // idle connection would hold, and takes a lock for each input.
    std::future::poll_fn(|cx| {
        loop {
            let mut guard = match ready!(readable.poll_read_ready(cx)) {
                Ok(guard) => guard,
                Err(e) => return Poll::Ready(Ended::Failed(e)),
            };
            match input.read(connection, protocol) {
                // The registration is edge-triggered: a read that did not fill its buffer has
                // emptied the socket, and what comes later is a new edge.
                Ok(Read::Emptied) => guard.clear_ready(),
                Ok(Read::MoreLikely) => {}
                Err(ended) => return Poll::Ready(ended),
            }
        }
    })
    .await
}

enum Read {
    Emptied,
    MoreLikely,
}

/// What was received and not yet consumed.
#[derive(Default)]
struct Input {
    kept: Vec<u8>,
    wanted: usize,
}

impl Input {
    fn read<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<Read, Ended> {
        let (received, room) = if self.wanted.max(self.kept.len() + READ_BYTES_MIN) > READ_BYTES {
            self.read_large(connection, protocol)?
        } else if connection.stage().is_some() {
            self.read_staged(connection, protocol)?
        } else {
            self.read_plain(connection, protocol)?
        };
        Ok(if received < room {
            Read::Emptied
        } else {
            Read::MoreLikely
        })
    }

    /// The usual way: into the thread's buffer, behind what was kept of the read before.
    fn read_plain<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(usize, usize), Ended> {
        READ.with_borrow_mut(|buffer| {
            let kept = self.kept.len();
            buffer[..kept].copy_from_slice(&self.kept);
            let room = buffer.len() - kept;
            let received = self.receive(connection, |socket| socket.recv(&mut buffer[kept..]))?;
            if received > 0 {
                let input = &mut buffer[..kept + received];
                let consumed = self.hand_in(connection, protocol, input)?;
                self.keep(&input[consumed..]);
            }
            Ok((received, room))
        })
    }

    /// An item larger than the thread's buffer: into a buffer of its own.
    fn read_large<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(usize, usize), Ended> {
        // Not all at once: a peer that only announces a large item must not make us hold it.
        let room = (self.wanted.saturating_sub(self.kept.len())).clamp(READ_BYTES, 16 * READ_BYTES);
        let mut kept = std::mem::take(&mut self.kept);
        let received = if connection.stage().is_some() {
            READ.with_borrow_mut(|buffer| {
                let received = self.receive(connection, |socket| socket.recv(buffer))?;
                unstage(connection, &buffer[..received], &mut kept)?;
                Ok(received)
            })?
        } else {
            kept.reserve(room);
            self.receive(connection, |socket| socket.recv_append(&mut kept))?
        };
        if kept.len() < self.wanted {
            self.kept = kept;
            return Ok((received, READ_BYTES));
        }
        let consumed = self.hand_in(connection, protocol, &mut kept)?;
        self.keep(&kept[consumed..]);
        Ok((received, READ_BYTES))
    }

    /// Through the connection's stage, which appends what it makes of the octets.
    fn read_staged<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
    ) -> Result<(usize, usize), Ended> {
        let mut input = std::mem::take(&mut self.kept);
        if input.capacity() == 0 {
            input = spare::take();
        }
        let received = READ.with_borrow_mut(|buffer| {
            let received = self.receive(connection, |socket| socket.recv(buffer))?;
            unstage(connection, &buffer[..received], &mut input)?;
            Ok(received)
        })?;
        if !input.is_empty() {
            let consumed = self.hand_in(connection, protocol, &mut input)?;
            self.keep(&input[consumed..]);
        }
        spare::put(input);
        // A stage may have something to say by itself.
        connection.flush();
        staged_end(connection, self.kept.len())?;
        Ok((received, READ_BYTES))
    }

    /// One receive; zero when there was nothing after all.
    fn receive(
        &self,
        connection: &Connection,
        receive: impl FnOnce(&crate::Socket) -> io::Result<usize>,
    ) -> Result<usize, Ended> {
        match receive(connection.socket()) {
            Ok(0) => Err(Ended::ByPeer {
                unconsumed: self.kept.len(),
            }),
            Ok(count) => {
                connection.note_received(clock::now_s());
                Ok(count)
            }
            Err(e) if is_transient(&e) => Ok(0),
            Err(e) => Err(Ended::Failed(e)),
        }
    }

    /// Lets the protocol handle `input`, then flushes what that touched, own replies first.
    fn hand_in<P: Protocol>(
        &mut self,
        connection: &Arc<Connection>,
        protocol: &mut P,
        input: &mut [u8],
    ) -> Result<usize, Ended> {
        let outcome = protocol.handle_input(input);
        connection.flush();
        cork::uncork();
        workers::note_activity();
        match outcome {
            Outcome::Continue { consumed, wanted } => {
                self.wanted = wanted;
                Ok(consumed)
            }
            Outcome::HandOver { consumed } => Err(Ended::HandedOver {
                input: input[consumed..].to_vec(),
            }),
            Outcome::Close => Err(Ended::ByProtocol),
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            // Most inputs end with an item; then an idle connection keeps no buffer.
            spare::put(std::mem::take(&mut self.kept));
            return;
        }
        self.kept.clear();
        self.kept.extend_from_slice(rest);
    }
}

/// The end of the stream inside a stage, which the socket does not show.
fn staged_end(connection: &Connection, unconsumed: usize) -> Result<(), Ended> {
    match connection.stage() {
        Some(stage) if stage.lock().is_ended() => Err(Ended::ByPeer { unconsumed }),
        _ => Ok(()),
    }
}

fn unstage(connection: &Connection, received: &[u8], out: &mut Vec<u8>) -> Result<(), Ended> {
    match connection.stage() {
        Some(stage) => stage
            .lock()
            .receive(received, out)
            .map_err(Ended::StageFailed),
        None => Ok(()),
    }
}

fn is_transient(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
