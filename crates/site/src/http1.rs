//! HTTP/1.1 on one connection: served by hyper while it is active, and parked without hyper while its client waits.
//!
//! hyper has two buffers of 8 KiB for each connection, and more while one writes. A client that waits for an answer, or
//! keeps its connection for further requests, occupies the connection for seconds and minutes. After [`LINGER`] without
//! activity the connection is therefore taken from hyper: only the stream and the pending answer, if any, remain.
//!
//! ```text
//!            ┌──── requests, answers ────┐      nothing for LINGER
//!  stream ──▶│ hyper ◀── Exchange ◀── services │ ──────────────────────────▶ stream, Exchange
//!            └───────────────────────────┘ ◀──────────────────────────
//!                                  bytes have arrived, or the answer is ready
//! ```
//!
//! A new hyper instance does not know the request of the pending answer. It gets the shortest request with the same
//! kind of answer ([`AGAIN`]), and answers it with the pending answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosstie_front::counters::{Counter, counters};
use crosstie_front::listen::Listening;
use crosstie_realms::entrance::Entrance;
use crosstie_transport::{Connection, ConnectionStream};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, sleep_until};

use super::Site;
use super::connection::{HEADERS_MAX, idle_max, stopping_max};
use super::exchange::{Answer, Exchange, InFlight, Sending, Successor, Wire};
use super::held::Held;
use super::respond::respond;

/// A connection without activity for this long, or at most twice as long, keeps no buffers.
const LINGER: Duration = Duration::from_millis(250);
/// Memory of hyper for a connection, and of a parked connection.
const BUFFERS_BYTES: isize = 20 * 1024;
const STATE_BYTES: isize = 2 * 1024;
/// Factor by which more of an answer may wait while its client may be unable to read before it has sent its request.
const AHEAD: usize = 16;
/// Stands for an earlier request that contained nothing that would change the form of its answer.
const AGAIN: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Answers the requests of a connection.
struct Requests {
    site: Arc<Site>,
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    exchange: Arc<Exchange>,
}

type Serving = http1::Connection<TokioIo<Wire>, Requests>;

/// The reason why hyper returned.
enum Served {
    /// The end of the connection, or of HTTP on it.
    Over(hyper::Result<()>),
    /// No activity, and nothing requires hyper.
    Quiet,
}

/// Serves the requests of one connection until it ends.
pub(super) async fn serve(
    site: Arc<Site>,
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    mut stream: ConnectionStream,
    may_stay: bool,
) {
    let idle_max = idle_max(&site);
    let rest_max = stopping_max(&site, &entrance);
    let listening = &*entrance.listening;
    let exchange = Arc::new(Exchange::new(site.options.unsent_bytes_max));
    let builder = builder(idle_max, listening.bounds.request_head_bytes_max, may_stay);
    let _state = Held::of(&connection, STATE_BYTES);
    loop {
        // Hyper's state lives no longer than its turn: even an empty part of a buffer keeps the whole buffer.
        let (served, has_begun) = {
            let _buffers = Held::of(&connection, BUFFERS_BYTES);
            let requests = Requests {
                site: Arc::clone(&site),
                entrance: Arc::clone(&entrance),
                connection: Arc::clone(&connection),
                exchange: Arc::clone(&exchange),
            };
            let wire = TokioIo::new(Wire::new(stream, &exchange, &connection));
            let mut serving = Box::new(builder.serve_connection(wire, requests));
            let served = converse(&mut serving, &exchange, listening, rest_max).await;
            let parts = serving.into_parts();
            stream = parts.io.into_inner().into_stream();
            stream.unread(&parts.read_buf);
            (served, !parts.read_buf.is_empty())
        };
        if let Served::Over(served) = served {
            return end(stream, served, exchange.successor(), listening).await;
        }
        if has_begun {
            exchange.stay();
        } else {
            counters().count(Counter::HttpConnectionsRested);
            if !wait(&mut stream, &exchange, listening, idle_max).await {
                return;
            }
        }
        if exchange.is_answering() {
            stream.unread(AGAIN);
        }
    }
}

/// The buffer holds a complete head within its limit; the same amount of a body is read ahead of its service.
fn builder(idle_max: Duration, head_bytes_max: usize, may_stay: bool) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(idle_max)
        .max_buf_size(head_bytes_max)
        .keep_alive(may_stay)
        .max_headers(HEADERS_MAX);
    builder
}

/// Lets hyper serve a connection until it becomes idle. After the listener has stopped, open requests are answered and
/// no further ones accepted.
async fn converse(
    serving: &mut Serving,
    exchange: &Exchange,
    listening: &Listening,
    rest_max: Duration,
) -> Served {
    let mut look = std::pin::pin!(sleep(LINGER));
    let mut seen = exchange.beats();
    let mut stopped = std::pin::pin!(listening.until_stopped());
    loop {
        tokio::select! {
            biased;
            served = &mut *serving => return Served::Over(served),
            () = &mut stopped => break,
            () = &mut look => {}
        }
        let beats = exchange.beats();
        if beats == seen && exchange.is_quiet() {
            return Served::Quiet;
        }
        seen = beats;
        look.as_mut().reset(Instant::now() + LINGER);
    }
    Pin::new(&mut *serving).graceful_shutdown();
    let rest = tokio::time::timeout(rest_max, serving);
    Served::Over(rest.await.unwrap_or(Ok(())))
}

/// Waits for activity. Returns false after the idle timeout.
async fn wait(
    stream: &mut ConnectionStream,
    exchange: &Exchange,
    listening: &Listening,
    idle_max: Duration,
) -> bool {
    let is_answering = exchange.is_answering();
    let until = exchange.idle_since() + idle_max;
    tokio::select! {
        readable = stream.readable() => readable.is_ok(),
        () = exchange.answered(), if is_answering => true,
        () = listening.until_stopped() => is_answering,
        () = sleep_until(until), if !is_answering => false,
    }
}

/// Closes the connection, or passes it to its successor in another protocol.
async fn end(
    mut stream: ConnectionStream,
    served: hyper::Result<()>,
    successor: Option<Successor>,
    listening: &Listening,
) {
    match (served, successor) {
        (Err(e), _) => tracing::debug!("HTTP connection ended: {e}"),
        (Ok(()), Some(successor)) => tokio::select! {
            () = successor(stream) => {}
            () = listening.until_stopped() => {}
        },
        (Ok(()), None) => drop(stream.shutdown().await),
    }
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Sending>;
    type Error = Infallible;
    type Future = InFlight;

    fn call(&self, request: Request<Incoming>) -> InFlight {
        self.exchange.answer(|| {
            let ahead = if is_still_sending(&request) { AHEAD } else { 1 };
            let bytes_max = self.site.options.unsent_bytes_max.saturating_mul(ahead);
            self.exchange.set_unsent_bytes_max(bytes_max);
            Answer {
                may_wait: may_wait(&request),
                coming: Box::pin(respond(
                    Arc::clone(&self.site),
                    Arc::clone(&self.entrance),
                    Arc::clone(&self.connection),
                    Box::new(request),
                    Some(self.exchange.takeover()),
                )),
            }
        })
    }
}

/// Whether a client may still be sending a body, and read nothing before its end. Services with long answers to such
/// requests limit their number.
fn is_still_sending(request: &Request<Incoming>) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD) && !request.body().is_end_stream()
}

/// Whether [`AGAIN`] has the same form of answer as this request.
fn may_wait(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
    request.version() == Version::HTTP_11
        && matches!(*request.method(), Method::GET | Method::POST)
        && request.body().is_end_stream()
        && headers.get_all(CONNECTION).iter().all(is_plain)
        && !headers.contains_key(UPGRADE)
}
