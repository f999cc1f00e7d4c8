//! Writes bytes into the stream, in as few writes as possible.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, AsyncWriteExt, WriteHalf};

use crate::dial::Stream;

/// Bytes on their way into the stream; a write that has begun survives a dropped future.
pub(crate) struct Writer {
    stream: WriteHalf<Box<dyn Stream>>,
    bytes: Vec<u8>,
    written: usize,
    flushed: bool,
}

/// Maximum buffer that is kept after a large write.
const WRITE_BYTES_KEPT: usize = 64 << 10;

impl Writer {
    pub(crate) fn new(stream: WriteHalf<Box<dyn Stream>>) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
            written: 0,
            flushed: true,
        }
    }

    /// Whether all bytes taken have been sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.bytes.is_empty() && self.flushed
    }

    /// Calls `take` for the next bytes; the previous ones must be sent.
    pub(crate) fn take(&mut self, take: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.shrink_to(WRITE_BYTES_KEPT);
        take(&mut self.bytes);
        self.flushed = false;
    }

    /// Sends the bytes taken.
    pub(crate) async fn write_out(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_write_out(context)).await
    }

    /// Sends the bytes taken, then `farewell`, and ends the stream.
    pub(crate) async fn finish(&mut self, farewell: &[u8]) -> io::Result<()> {
        if !self.is_idle() {
            self.write_out().await?;
        }
        self.stream.write_all(farewell).await?;
        self.stream.shutdown().await
    }

    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write(context, &self.bytes[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.bytes.clear();
        self.written = 0;
        // TLS keeps records of its own until it is flushed.
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }
}
