//! The state of an HTTP/1.1 connection, shared by both sides of hyper: the service that answers, and the task that
//! holds the connection while hyper does not.

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
    /// Counts events.
    beats: AtomicU32,
    /// Hyper has written bytes that are not sent yet, or wants to write more.
    is_writing: AtomicBool,
    /// Maximum unsent bytes of an answer.
    unsent_bytes_max: AtomicUsize,
    /// Bytes read since the last request was complete.
    unparsed_bytes: AtomicUsize,
    /// The connection stays with hyper until another request has arrived.
    stays: AtomicBool,
    idle_since: Mutex<Instant>,
}

#[derive(Default)]
enum Doing {
    /// Waits for the next request.
    #[default]
    Nothing,
    Answering(Answer),
    /// The answer is complete; hyper has not taken it.
    Answered(Response<Body>),
    /// Hyper has it.
    Sending,
}

/// An answer in progress.
pub(super) struct Answer {
    pub(super) coming: Pin<Box<dyn Future<Output = Response<Body>> + Send>>,
    /// The answer is equal for any request without distinguishing headers.
    pub(super) may_wait: bool,
}

/// Continues a connection in another protocol.
pub(super) type Successor =
    Box<dyn FnOnce(ConnectionStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The handle for a connection's successor, which continues after the pending answer. It does not own the exchange, as
/// the exchange owns the answer that holds this handle.
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

    /// Answers a request: with `answer`, or with the pending answer from before the connection was taken from hyper.
    pub(super) fn answer(self: &Arc<Self>, answer: impl FnOnce() -> Answer) -> InFlight {
        self.beat();
        self.unparsed_bytes.store(0, Ordering::Relaxed);
        if !self.is_answering() {
            *self.doing.lock() = Doing::Answering(answer());
            self.stays.store(false, Ordering::Relaxed);
        }
        InFlight(Arc::clone(self))
    }

    /// Limits the unsent bytes of an answer.
    pub(super) fn set_unsent_bytes_max(&self, bytes_max: usize) {
        self.unsent_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Waits for the answer to the pending request.
    pub(super) async fn answered(&self) {
        future::poll_fn(|cx| self.poll_answered(cx)).await;
    }

    fn poll_answered(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Not polled under the lock, since the future may do anything.
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

    /// Keeps the connection with hyper until another request has arrived.
    pub(super) fn stay(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    pub(super) fn takeover(&self) -> Takeover {
        Takeover(Arc::clone(&self.successor))
    }

    /// Takes the successor of the connection, if any.
    pub(super) fn successor(&self) -> Option<Successor> {
        self.successor.lock().take()
    }

    /// Whether an answer is pending for hyper.
    pub(super) fn is_answering(&self) -> bool {
        let doing = self.doing.lock();
        matches!(*doing, Doing::Answering(_) | Doing::Answered(_))
    }

    /// Whether hyper holds no data that would be lost.
    pub(super) fn is_quiet(&self) -> bool {
        let is_held = self.stays.load(Ordering::Relaxed) || self.is_writing.load(Ordering::Relaxed);
        !is_held
            && match &*self.doing.lock() {
                Doing::Nothing => true,
                Doing::Answering(answer) => answer.may_wait,
                Doing::Answered(_) | Doing::Sending => false,
            }
    }

    /// The time since which no request is open.
    pub(super) fn idle_since(&self) -> Instant {
        *self.idle_since.lock()
    }

    /// Number of events so far.
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
            // A future is not polled after it was ready.
            return Poll::Pending;
        };
        self.0.beat();
        let exchange = Arc::clone(&self.0);
        Poll::Ready(Ok(response.map(|body| Sending { body, exchange })))
    }
}

/// The body of an answer. Once hyper has dropped it, the next request is awaited.
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

/// The stream as handed to hyper.
pub(super) struct Wire {
    stream: ConnectionStream,
    exchange: Arc<Exchange>,
    connection: Arc<Connection>,
    /// Growth of hyper's buffer for a long head, in bytes.
    grown: Option<(usize, Held)>,
}

/// Initial size of hyper's input buffer, which grows in steps.
const INPUT_BYTES: usize = 8 * 1024;
/// Maximum size of a head that a configuration allows.
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

    /// Charges the bytes that enlarged hyper's buffer to the connection's account.
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

    /// Hyper flushes after it has written everything.
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
