//! Another HTTP server to which requests are forwarded, over TCP or a Unix socket.
//!
//! Bodies stream in both directions: a side that does not read pauses reading from the other. Both messages are framed
//! anew, so that the two servers cannot read a message differently.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crosstie_transport as transport;
use crosstie_web::forward::remove_hop_by_hop;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{COOKIE, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tower_service::Service;

use super::answer::{self, Body};
use super::passage::{Passing, Progress, Sent};
use super::places::Places;
use crate::request_counts::{Counted, Outcome, RequestCounts};

/// The server's address.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// The limits of requests to one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of concurrent requests; as many more wait.
    pub requests_max: usize,
    /// Maximum silence of the server, and of the client in its body.
    pub timeout: Duration,
    /// Maximum size of a request's body.
    pub body_bytes_max: u64,
}

/// Maximum number of idle connections, and how long one is kept: shorter than most servers keep theirs.
const IDLE_CONNECTIONS_MAX: usize = 16;
const IDLE_MAX: Duration = Duration::from_secs(15);
/// Maximum size of an answer's header.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The server.
pub(crate) struct Backend {
    client: Client<Connector, Body>,
    name: String,
    bounds: Bounds,
    places: Places,
    counts: Arc<RequestCounts>,
    /// The last request could not connect; logged once, and again when the server is back.
    is_gone: AtomicBool,
}

impl Backend {
    /// `name` identifies the server in the log.
    pub(crate) fn new(
        address: Address,
        name: String,
        bounds: Bounds,
        counts: Arc<RequestCounts>,
    ) -> Self {
        let connector = Connector {
            address,
            timeout: bounds.timeout,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            // The request's own Host header is kept.
            .set_host(false)
            .build(connector);
        Self {
            client,
            name,
            bounds,
            places: Places::new(bounds.requests_max),
            counts,
            is_gone: AtomicBool::new(false),
        }
    }

    /// Forwards a request to `target`, a path and a query. The request's header is the one for the server; `connection`
    /// is that of the client.
    pub(crate) async fn ask(
        &self,
        request: Request<Incoming>,
        target: &str,
        connection: &Arc<transport::Connection>,
    ) -> Response<Body> {
        let counted = self.counts.begin();
        if request.body().size_hint().lower() > self.bounds.body_bytes_max {
            counted.end(Outcome::Refused);
            let text = "The body of this request exceeds the maximum size.";
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return answer::page(status, "413 Content Too Large", text);
        }
        let place = match self.places.enter(connection, self.bounds.timeout).await {
            Ok(place) => place,
            Err(full) => {
                counted.end(Outcome::Full);
                return full;
            }
        };
        let progress = Progress::new();
        let Some(request) = self.outgoing(request, target, &progress) else {
            counted.end(Outcome::Refused);
            let text = "This address cannot be forwarded to the server behind this one.";
            return answer::page(StatusCode::BAD_REQUEST, "400 Bad Request", text);
        };
        let answered = tokio::select! {
            answered = self.client.request(request) => answered,
            () = progress.until_silent(self.bounds.timeout) => return self.silent(counted),
        };
        match answered {
            // No upgrade was requested.
            Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                self.bad("it speaks another protocol", counted)
            }
            Ok(answer) => {
                if self.is_gone.swap(false, Ordering::Relaxed) {
                    tracing::info!("{} answers again", self.name);
                }
                let (mut head, body) = answer.into_parts();
                head.version = Version::HTTP_11;
                head.extensions.clear();
                remove_hop_by_hop(&mut head.headers);
                let body = Passing::body(body, place, Some(self.bounds.timeout));
                counted.end(Outcome::Answered);
                Response::from_parts(head, body)
            }
            Err(e) => self.failed(&e, counted),
        }
    }

    fn outgoing(
        &self,
        request: Request<Incoming>,
        target: &str,
        progress: &Progress,
    ) -> Option<Request<Body>> {
        let (mut head, body) = request.into_parts();
        head.uri = format!("http://server{target}").parse::<Uri>().ok()?;
        if head.version == Version::HTTP_2 {
            join_cookies(&mut head.headers);
        }
        head.version = Version::HTTP_11;
        head.extensions.clear();
        let body = Sent::new(body, progress.clone(), self.bounds.body_bytes_max);
        Some(Request::from_parts(head, body.boxed_unsync()))
    }

    fn failed(&self, error: &Error, counted: Counted) -> Response<Body> {
        let mut why: &dyn std::error::Error = error;
        while let Some(source) = why.source() {
            why = source;
        }
        let io = why.downcast_ref::<io::Error>();
        if io.is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return self.silent(counted);
        }
        self.bad(&why.to_string(), counted)
    }

    fn bad(&self, why: &str, counted: Counted) -> Response<Body> {
        counted.end(Outcome::Unavailable);
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            tracing::warn!("{} does not answer: {why}", self.name);
        }
        let text = "The server behind this one did not answer as it should.";
        answer::page(StatusCode::BAD_GATEWAY, "502 Bad Gateway", text)
    }

    fn silent(&self, counted: Counted) -> Response<Body> {
        counted.end(Outcome::TimedOut);
        let seconds = self.bounds.timeout.as_secs();
        tracing::debug!("{} said nothing for {seconds} s", self.name);
        let text = "The server behind this one did not answer in time.";
        answer::page(StatusCode::GATEWAY_TIMEOUT, "504 Gateway Timeout", text)
    }
}

/// Over HTTP/2 a browser may send each cookie in its own header; HTTP/1.1 has one line (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut hyper::HeaderMap) {
    let all: Vec<_> = headers.get_all(COOKIE).iter().collect();
    if all.len() < 2 {
        return;
    }
    let joined = all
        .iter()
        .map(|value| value.as_bytes())
        .collect::<Vec<_>>()
        .join(&b"; "[..]);
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(COOKIE, value);
    }
}

/// Connects every request to one server, whatever its URL says.
#[derive(Clone)]
struct Connector {
    address: Address,
    timeout: Duration,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { address, timeout } = self.clone();
        Box::pin(async move {
            let connected = tokio::time::timeout(timeout, connect(&address)).await;
            connected
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                .map(TokioIo::new)
        })
    }
}

async fn connect(address: &Address) -> io::Result<Stream> {
    Ok(match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Stream::Tcp(stream)
        }
        Address::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
    })
}

/// A connection of either kind.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Sockets buffer nothing here.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
