//! A connection as a tokio stream, for what is not on the data path (HTTP pages).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::readiness::{self, Reader};
use crate::{Connection, Refused};

/// Reads go through the connection's stage, writes through its queue. A writer that would
/// overfill the queue gets an error: what is served this way has a small, known size.
#[derive(Debug)]
pub struct ConnectionStream {
    readable: AsyncFd<Reader>,
    connection: Arc<Connection>,
    /// Octets received before and not yet read.
    input: Vec<u8>,
}

impl ConnectionStream {
    /// Takes over from a pump, with the octets that it had received. Needs a tokio context.
    pub fn new(connection: Arc<Connection>, input: Vec<u8>) -> io::Result<Self> {
        let readable = readiness::register_reader(&connection)?;
        Ok(Self {
            readable,
            connection,
            input,
        })
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 4096];
        let received = self.connection.socket().recv(&mut buffer)?;
        match self.connection.stage() {
            Some(stage) => {
                stage
                    .lock()
                    .receive(&buffer[..received], &mut self.input)
                    .map_err(io::Error::other)?;
                self.connection.flush();
            }
            None => self.input.extend_from_slice(&buffer[..received]),
        }
        Ok(received)
    }

    /// Whether the stream ended inside its stage, which the socket does not show.
    fn is_ended(&self) -> bool {
        self.connection
            .stage()
            .is_some_and(|stage| stage.lock().is_ended())
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
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.readable.poll_read_ready(cx))?.clear_ready();
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let appended = self.connection.append(|out| {
            out.extend_from_slice(octets);
            Ok::<(), ()>(())
        });
        Poll::Ready(match appended {
            Ok(()) => Ok(octets.len()),
            Err(Refused::Gone) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(Refused::Full | Refused::Writer(())) => Err(io::ErrorKind::OutOfMemory.into()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.finish();
        Poll::Ready(Ok(()))
    }
}
