//! A connection as a tokio stream, for uses off the data path (HTTP pages).

use std::cell::RefCell;
use std::future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;
use tokio::time::{Sleep, sleep};

use crate::pump::is_transient;
use crate::readiness::{self, Reader};
use crate::{Connection, Refused, cork};

/// Reads pass the connection's stage, writes its queue. A peer that takes nothing for too long is dropped here, because
/// no sweep watches connections that are served this way.
#[derive(Debug)]
pub struct ConnectionStream {
    readable: AsyncFd<Reader>,
    connection: Arc<Connection>,
    /// Bytes received before and not yet read.
    input: Vec<u8>,
    /// The next check whether the peer has stalled; only while something waits to be sent.
    look: Option<Pin<Box<Sleep>>>,
    unsent_bytes_max: usize,
    /// The socket's option is set.
    is_bounded: bool,
}

/// The outcome of a system call.
enum Received {
    /// Nothing, and nothing will come.
    End,
    /// Less than there was room for: the reactor reports later bytes.
    All,
    Some,
}

thread_local! {
    /// The buffer of each receipt: clearing one for each read would take longer than many reads.
    static BYTES: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// The interval of checks on a peer that does not take its bytes.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of one receipt.
const READ_BYTES: usize = 4096;
/// Default bound on written bytes that wait behind a full socket; a writer can keep the rest until there is room.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// The bytes of one step of a task's turn, of which tokio allows 128.
const STEP_BYTES: usize = 4096;
/// Bytes of one write: less than a turn.
const WRITE_BYTES: usize = 64 * 1024;

impl ConnectionStream {
    /// Takes over from a pump, with its unconsumed bytes. Needs a tokio context with timers.
    pub fn new(connection: Arc<Connection>, input: Vec<u8>) -> io::Result<Self> {
        let readable = readiness::register_reader(&connection)?;
        Ok(Self {
            readable,
            connection,
            input,
            look: None,
            unsent_bytes_max: UNSENT_BYTES_MAX,
            is_bounded: false,
        })
    }

    /// Bounds the bytes that wait here for a peer that does not read, and the unsent ones in the system to about as
    /// many. Without the second bound a socket takes some MiB, and copying them there takes a thread milliseconds.
    pub fn with_unsent_bytes_max(mut self, bytes_max: usize) -> Self {
        self.set_unsent_bytes_max(bytes_max);
        self
    }

    /// The same from now on.
    pub fn set_unsent_bytes_max(&mut self, bytes_max: usize) {
        if bytes_max == self.unsent_bytes_max && self.is_bounded {
            return;
        }
        (self.unsent_bytes_max, self.is_bounded) = (bytes_max, true);
        let bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX);
        // A Unix socket has no such bound, and needs none: it takes some 200 KiB.
        let socket = self.connection.socket();
        let _ = socket.map(|socket| SockRef::from(socket).set_tcp_notsent_lowat(bytes_max));
    }

    /// Puts bytes back, to be read first by the next read.
    pub fn unread(&mut self, bytes: &[u8]) {
        self.input.splice(..0, bytes.iter().copied());
    }

    /// Waits until there may be something to read, and keeps no buffer meanwhile.
    pub async fn readable(&mut self) -> io::Result<()> {
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        let is_there = !self.input.is_empty() || self.is_ended();
        future::poll_fn(|cx| match is_there {
            true => Poll::Ready(Ok(())),
            false => self.readable.poll_read_ready(cx).map_ok(drop),
        })
        .await
    }

    /// Queues written bytes as far as there is room; returns their number.
    fn queue(&self, slices: &[IoSlice<'_>]) -> Result<usize, Refused<()>> {
        let queued = self.connection.queued_bytes();
        let room = self.unsent_bytes_max.saturating_sub(queued);
        let room = room.min(WRITE_BYTES);
        let mut left = room;
        let wanted: usize = slices.iter().map(|slice| slice.len()).sum();
        self.connection.append_below(self.unsent_bytes_max, |out| {
            if wanted >= WRITE_BYTES / 4 {
                // Reserves exactly: a vector's growth would take twice as much.
                out.reserve_exact(wanted.min(room));
            }
            for slice in slices {
                let part = &slice[..slice.len().min(left)];
                out.extend_from_slice(part);
                left -= part.len();
            }
            Ok(())
        })?;
        Ok(room - left)
    }

    /// Whether the stream ended inside its stage, which the socket does not show.
    fn is_ended(&self) -> bool {
        self.connection
            .stage()
            .is_some_and(|stage| stage.lock().is_ended())
    }

    /// Ready when everything was sent.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.flush();
        cork::uncork();
        while self.connection.poll_sent(cx).is_pending() {
            let look = self
                .look
                .get_or_insert_with(|| Box::pin(sleep(LOOK_INTERVAL)));
            ready!(look.as_mut().poll(cx));
            self.look = None;
            if self.connection.is_stalled() {
                self.connection.close();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.look = None;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if !this.input.is_empty() {
                let count = this.input.len().min(buffer.remaining());
                buffer.put_slice(&this.input[..count]);
                this.input.drain(..count);
                return Poll::Ready(Ok(()));
            }
            if this.is_ended() {
                return Poll::Ready(Ok(()));
            }
            let mut ready = ready!(this.readable.poll_read_ready(cx))?;
            match receive(&this.connection, &mut this.input, buffer) {
                Ok(Received::End) => return Poll::Ready(Ok(())),
                Ok(Received::All) => ready.clear_ready(),
                Ok(Received::Some) => {}
                Err(e) if is_transient(&e) => ready.clear_ready(),
                Err(e) => return Poll::Ready(Err(e)),
            }
            if buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        if bytes == 0 {
            return Poll::Ready(Ok(0));
        }
        // A peer that reads as fast as it is written to still leaves others their turns.
        for _ in 0..=bytes.min(WRITE_BYTES) / STEP_BYTES {
            ready!(coop::poll_proceed(cx)).made_progress();
        }
        loop {
            match self.queue(slices) {
                Ok(written) if written > 0 => return Poll::Ready(Ok(written)),
                Ok(_) | Err(Refused::Full) => ready!(self.poll_sent(cx))?,
                Err(Refused::Gone | Refused::Writer(())) => {
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.finish();
        self.poll_sent(cx)
    }
}

/// Receives once: as much as wanted into `buffer`, and a stage's result into `input`.
fn receive(
    connection: &Arc<Connection>,
    input: &mut Vec<u8>,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<Received> {
    BYTES.with_borrow_mut(|bytes| receive_by(bytes, connection, input, buffer))
}

/// The same by way of `bytes`.
fn receive_by(
    bytes: &mut [u8; READ_BYTES],
    connection: &Arc<Connection>,
    input: &mut Vec<u8>,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<Received> {
    let socket = connection.socket()?;
    let stage = connection.stage();
    let wanted = match stage {
        None => READ_BYTES.min(buffer.remaining()),
        Some(_) => READ_BYTES,
    };
    let count = socket.recv(&mut bytes[..wanted])?;
    let received = match count {
        0 => return Ok(Received::End),
        _ if count == wanted => Received::Some,
        _ => Received::All,
    };
    let Some(stage) = stage else {
        buffer.put_slice(&bytes[..count]);
        return Ok(received);
    };
    let taken = stage.lock().receive(&bytes[..count], input);
    // A stage may have bytes of its own to send, most of all after a failure.
    connection.flush();
    taken.map_err(io::Error::other)?;
    Ok(received)
}
