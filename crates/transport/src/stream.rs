//! A connection as a tokio stream, for what is not on the data path (HTTP pages).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::pump::is_transient;
use crate::readiness::{self, Reader};
use crate::{Connection, Refused, cork};

/// Reads go through the connection's stage, writes through its queue. A peer that takes nothing
/// for too long is given up: nobody else looks after a connection that is served this way.
#[derive(Debug)]
pub struct ConnectionStream {
    readable: AsyncFd<Reader>,
    connection: Arc<Connection>,
    /// Bytes received before and not yet read.
    input: Vec<u8>,
    /// When to look whether the peer has stalled; only while something waits to be sent.
    look: Option<Pin<Box<Sleep>>>,
}

/// Between looks at a peer that does not take what is sent to it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl ConnectionStream {
    /// Takes over from a pump, with the bytes that it had received. Needs a tokio context with
    /// timers.
    pub fn new(connection: Arc<Connection>, input: Vec<u8>) -> io::Result<Self> {
        let readable = readiness::register_reader(&connection)?;
        Ok(Self {
            readable,
            connection,
            input,
            look: None,
        })
    }

    /// Receives once; zero is the end of the stream.
    fn receive(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 4096];
        let received = self.connection.socket()?.recv(&mut buffer)?;
        let Some(stage) = self.connection.stage() else {
            self.input.extend_from_slice(&buffer[..received]);
            return Ok(received);
        };
        let taken = stage
            .lock()
            .receive(&buffer[..received], &mut self.input)
            .map_err(io::Error::other);
        // A stage may have something to say by itself, most of all when it failed.
        self.connection.flush();
        taken.map(|()| received)
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
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if !self.input.is_empty() {
                let count = self.input.len().min(buffer.remaining());
                buffer.put_slice(&self.input[..count]);
                self.input.drain(..count);
                return Poll::Ready(Ok(()));
            }
            if self.is_ended() {
                return Poll::Ready(Ok(()));
            }
            // The guard borrows the registration, so readiness is cleared in a second look.
            drop(ready!(self.readable.poll_read_ready(cx))?);
            match self.receive() {
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(_) => {}
                Err(e) if is_transient(&e) => {
                    ready!(self.readable.poll_read_ready(cx))?.clear_ready();
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let appended = self.connection.append(|out| {
                out.extend_from_slice(bytes);
                Ok::<(), ()>(())
            });
            match appended {
                Ok(()) => return Poll::Ready(Ok(bytes.len())),
                Err(Refused::Full) => ready!(self.poll_sent(cx))?,
                Err(Refused::Gone | Refused::Writer(())) => {
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.finish();
        self.poll_sent(cx)
    }
}
