//! What happens on a connection of HTTP/1.1, known to both sides of hyper: to the service that it asks, and to whoever
//! has the connection when hyper has not.

use std::convert::Infallible;
use std::future;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use crosstie_transport::{Connection, ConnectionStream};
use hyper::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::Body;
use super::held::Held;

/// The state of a connection's requests.
pub(super) struct Exchange {
    doing: Mutex<Doing>,
    successor: Arc<Mutex<Option<Successor>>>,
    /// Counts what happens.
    beats: AtomicU32,
    /// Hyper has written what is not sent yet, or would write more.
    is_writing: AtomicBool,
    /// What may wait of an answer behind a full socket.
    unsent_bytes_max: AtomicUsize,
    /// Read since the last request was there as a whole.
    unparsed_bytes: AtomicUsize,
    /// It stays with hyper until another request has come.
    stays: AtomicBool,
    idle_since: Mutex<Instant>,
}

#[derive(Default)]
enum Doing {
    /// The next request is waited for.
    #[default]
    Nothing,
    Answering(Answer),
    /// The answer is there; hyper has not taken it.
    Answered(Response<Body>),
    /// Hyper has it.
    Sending,
}

/// An answer on its way.
pub(super) struct Answer {
    pub(super) coming: Pin<Box<dyn Future<Output = Response<Body>> + Send>>,
    /// It is the same to any request that has nothing to say of it.
    pub(super) may_wait: bool,
}

/// Goes on with a connection in another protocol.
pub(super) type Successor =
    Box<dyn FnOnce(ConnectionStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Whom a connection is left to, once what was asked there is answered. Not the exchange: that has the answer that
/// has this.
pub(crate) struct Takeover(Arc<Mutex<Option<Successor>>>);

impl Takeover {
    pub(super) fn leave_to<F>(self, successor: impl FnOnce(ConnectionStream) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        *self.0.lock() = Some(Box::new(|stream| Box::pin(successor(stream))));
    }
}

impl Exchange {
    pub(super) fn new(unsent_bytes_max: usize) -> Self {
        Self {
            doing: Mutex::default(),
            successor: Arc::default(),
            beats: AtomicU32::new(0),
            is_writing: AtomicBool::new(false),
            unsent_bytes_max: AtomicUsize::new(unsent_bytes_max),
            unparsed_bytes: AtomicUsize::new(0),
            stays: AtomicBool::new(false),
            idle_since: Mutex::new(Instant::now()),
        }
    }

    /// Answers a request: with `answer`, or with what was being answered when the connection was taken from hyper.
    pub(super) fn answer(self: &Arc<Self>, answer: impl FnOnce() -> Answer) -> InFlight {
        self.beat();
        self.unparsed_bytes.store(0, Ordering::Relaxed);
        if !self.is_answering() {
            *self.doing.lock() = Doing::Answering(answer());
            self.stays.store(false, Ordering::Relaxed);
        }
        InFlight(Arc::clone(self))
    }

    /// Bounds what waits of an answer.
    pub(super) fn set_unsent_bytes_max(&self, bytes_max: usize) {
        self.unsent_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Waits for the answer to what was asked.
    pub(super) async fn answered(&self) {
        future::poll_fn(|cx| self.poll_answered(cx)).await;
    }

    fn poll_answered(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Not polled under the lock: what is answered may be anything.
        let doing = mem::take(&mut *self.doing.lock());
        let (doing, polled) = match doing {
            Doing::Answering(mut answer) => match answer.coming.as_mut().poll(cx) {
                Poll::Ready(response) => (Doing::Answered(response), Poll::Ready(())),
                Poll::Pending => (Doing::Answering(answer), Poll::Pending),
            },
            other => (other, Poll::Ready(())),
        };
        *self.doing.lock() = doing;
        polled
    }

    /// Has the connection stay with hyper until another request has come.
    pub(super) fn stay(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    pub(super) fn takeover(&self) -> Takeover {
        Takeover(Arc::clone(&self.successor))
    }

    /// Who goes on with the connection.
    pub(super) fn successor(&self) -> Option<Successor> {
        self.successor.lock().take()
    }

    /// Whether an answer is still to be given to hyper.
    pub(super) fn is_answering(&self) -> bool {
        let doing = self.doing.lock();
        matches!(*doing, Doing::Answering(_) | Doing::Answered(_))
    }

    /// Whether hyper has nothing that would be lost.
    pub(super) fn is_quiet(&self) -> bool {
        let is_held = self.stays.load(Ordering::Relaxed) || self.is_writing.load(Ordering::Relaxed);
        !is_held
            && match &*self.doing.lock() {
                Doing::Nothing => true,
                Doing::Answering(answer) => answer.may_wait,
                Doing::Answered(_) | Doing::Sending => false,
            }
    }

    /// Since when no request is answered.
    pub(super) fn idle_since(&self) -> Instant {
        *self.idle_since.lock()
    }

    /// How often something has happened, up to now.
    pub(super) fn beats(&self) -> u32 {
        self.beats.load(Ordering::Relaxed)
    }

    fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }
}

/// An answer that hyper waits for.
pub(super) struct InFlight(Arc<Exchange>);

impl Future for InFlight {
    type Output = Result<Response<Sending>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.0.poll_answered(cx).is_pending() {
            return Poll::Pending;
        }
        let doing = mem::replace(&mut *self.0.doing.lock(), Doing::Sending);
        let Doing::Answered(response) = doing else {
            // It is polled no more once it is ready.
            return Poll::Pending;
        };
        self.0.beat();
        let exchange = Arc::clone(&self.0);
        Poll::Ready(Ok(response.map(|body| Sending { body, exchange })))
    }
}

/// The body of an answer: when hyper has let go of it the next request is waited for.
pub(super) struct Sending {
    body: Body,
    exchange: Arc<Exchange>,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        {
            let mut doing = self.exchange.doing.lock();
            if matches!(*doing, Doing::Sending) {
                *doing = Doing::Nothing;
            }
        }
        *self.exchange.idle_since.lock() = Instant::now();
        self.exchange.beat();
    }
}

/// A stream as hyper has it, for as long as it has it.
pub(super) struct Wire {
    stream: ConnectionStream,
    exchange: Arc<Exchange>,
    connection: Arc<Connection>,
    /// The bytes that hyper's buffer has grown by for a long head.
    grown: Option<(usize, Held)>,
}

/// Of its buffer for input hyper has so much from the beginning, and lets it grow in steps.
const INPUT_BYTES: usize = 8 * 1024;
/// The longest head that a configuration lets in.
const INPUT_BYTES_MAX: usize = 64 * 1024;

impl Wire {
    pub(super) fn new(
        stream: ConnectionStream,
        exchange: &Arc<Exchange>,
        connection: &Arc<Connection>,
    ) -> Self {
        Self {
            stream,
            exchange: Arc::clone(exchange),
            connection: Arc::clone(connection),
            grown: None,
        }
    }

    /// Puts what has been read on the account, as far as hyper had to make room for it.
    fn note_read(&mut self, bytes: usize) {
        let before = self
            .exchange
            .unparsed_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        let steps = (before + bytes).min(INPUT_BYTES_MAX) / INPUT_BYTES;
        let grown = steps * INPUT_BYTES;
        if self.grown.as_ref().map_or(0, |(bytes, _)| *bytes) < grown {
            let held = Held::of(&self.connection, grown as isize);
            self.grown = Some((grown, held));
        }
    }

    pub(super) fn into_stream(self) -> ConnectionStream {
        self.stream
    }

    fn write<T>(
        &mut self,
        write: impl FnOnce(Pin<&mut ConnectionStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.exchange.beat();
        self.exchange.is_writing.store(true, Ordering::Relaxed);
        let bytes_max = self.exchange.unsent_bytes_max.load(Ordering::Relaxed);
        self.stream.set_unsent_bytes_max(bytes_max);
        write(Pin::new(&mut self.stream))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.exchange.beat();
            self.note_read(buffer.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(|stream| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Hyper flushes once it has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        let is_writing = flushed.is_pending();
        self.exchange
            .is_writing
            .store(is_writing, Ordering::Relaxed);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
