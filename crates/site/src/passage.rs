//! Bodies in transit: keep their resources until the last byte, and end after a silence.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

use super::answer::Body;

/// The body of a forwarded answer, with the resources that it needs.
pub(crate) struct Passing<B, H> {
    inner: B,
    /// Dropped with the body, however that ends.
    _held: H,
    silence_max: Option<Duration>,
    /// Only while the next piece is awaited.
    silence: Option<Pin<Box<Sleep>>>,
}

impl<B, H> Passing<B, H>
where
    B: HttpBody<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    H: Unpin + Send + 'static,
{
    /// `held` lives as long as the body. `silence_max` limits the time between two pieces, if set.
    pub(crate) fn body(inner: B, held: H, silence_max: Option<Duration>) -> Body {
        let passing = Self {
            inner,
            _held: held,
            silence_max,
            silence: None,
        };
        passing.boxed_unsync()
    }
}

impl<B, H> HttpBody for Passing<B, H>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    H: Unpin,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        loop {
            let polled = Pin::new(&mut this.inner).poll_frame(cx);
            if let Poll::Ready(next) = polled {
                this.silence = None;
                match next {
                    // Trailers are meant for the next hop only, which is this router (RFC 9110 section 6.5.1).
                    Some(Ok(frame)) if frame.is_trailers() => continue,
                    Some(next) => return Poll::Ready(Some(next.map_err(io::Error::other))),
                    None => return Poll::Ready(None),
                }
            }
            let Some(max) = this.silence_max else {
                return Poll::Pending;
            };
            let silence = this
                .silence
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(max)));
            return silence.as_mut().poll(cx).map(|()| {
                let text = "no more bytes arrived in time";
                Some(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The time of the last progress of a request's body.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Mutex<Instant>>);

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn note(&self) {
        *self.0.lock() = Instant::now();
    }

    /// Returns after that time without progress.
    pub(crate) async fn until_silent(&self, silence_max: Duration) {
        loop {
            let last = *self.0.lock();
            if last.elapsed() >= silence_max {
                return;
            }
            tokio::time::sleep_until(last + silence_max).await;
        }
    }
}

/// The body of a request, within its size limit, which notes its progress.
pub(crate) struct Sent<B> {
    inner: B,
    progress: Progress,
    left: u64,
}

impl<B> Sent<B> {
    pub(crate) fn new(inner: B, progress: Progress, bytes_max: u64) -> Self {
        Self {
            inner,
            progress,
            left: bytes_max,
        }
    }
}

impl<B> HttpBody for Sent<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        loop {
            let polled = Pin::new(&mut this.inner).poll_frame(cx);
            let Poll::Ready(next) = polled else {
                return Poll::Pending;
            };
            this.progress.note();
            return Poll::Ready(match next {
                Some(Ok(frame)) if frame.is_trailers() => continue,
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                    match this.left.checked_sub(bytes) {
                        Some(left) => {
                            this.left = left;
                            Some(Ok(frame))
                        }
                        None => Some(Err(io::Error::other("the body exceeds the maximum size"))),
                    }
                }
                Some(Err(e)) => Some(Err(io::Error::other(e))),
                None => None,
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
