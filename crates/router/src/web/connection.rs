//! One connection that speaks HTTP: its requests, one after the other or, over HTTP/2, beside each other.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosstie_transport::{Connection, ConnectionStream, now_s};
use crosstie_web::http2;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, ORIGIN, STRICT_TRANSPORT_SECURITY, USER_AGENT};
use hyper::server::conn::{http1, http2 as h2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::mpsc;

use crate::counters::{Counter, counters};
use crate::listen::Listening;
use crate::origins::host_may_enter;
use crate::web::passing::Passing;
use crate::web::{Asked, Body, Site, answer};
use crate::{pages, report};

/// A connection that asks for nothing is closed after so long, where its listener says nothing else.
const IDLE_MAX: Duration = Duration::from_secs(75);
/// What a request's head may come to, and what is read of a body ahead of its service.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Header lines of a request.
const HEADERS_MAX: usize = 100;
/// Requests that a connection has open beside each other (RFC 9113 section 5.1.2).
const STREAMS_MAX: u32 = 100;
/// Streams that a client has given up before they were answered, at once: beyond, it is after our work
/// alone (CVE-2023-44487).
const RESETS_MAX: usize = 20;
/// How long those who have asked before their listener stopped are still answered.
const STOPPING_MAX: Duration = Duration::from_secs(2);

/// Answers the requests of one connection until it ends.
pub(super) async fn serve(
    site: Arc<Site>,
    listening: Arc<Listening>,
    connection: Arc<Connection>,
    input: Vec<u8>,
) {
    let idle_max = site.options.client_timeout.unwrap_or(IDLE_MAX);
    let is_http2 = !input.is_empty() && http2::may_begin(&input);
    let stream = match ConnectionStream::new(Arc::clone(&connection), input) {
        Ok(stream) => TokioIo::new(stream),
        Err(e) => return report::peer_fault(&connection, "http", &e.to_string()),
    };
    let activity = Arc::new(Activity::default());
    let (stays, mut left) = mpsc::channel(1);
    let stays = Stays(stays);
    let service = {
        let (listening, connection) = (Arc::clone(&listening), Arc::clone(&connection));
        let (site, activity) = (Arc::clone(&site), Arc::clone(&activity));
        service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(stays.clone());
            let site = Arc::clone(&site);
            let (listening, connection) = (Arc::clone(&listening), Arc::clone(&connection));
            let open = Open::of(&activity);
            async move {
                let response = respond(&site, listening, connection, request).await;
                // Over HTTP/2 a body may still be on its way when everything else is silent.
                Ok::<_, Infallible>(match is_http2 {
                    true => response.map(|body| Passing::body(body, open, None)),
                    false => response,
                })
            }
        })
    };
    // Whoever asked before is answered, and nothing else is taken.
    macro_rules! until_stopped {
        ($serving:expr, $ended:expr) => {{
            let mut serving = std::pin::pin!($serving);
            tokio::select! {
                served = serving.as_mut() => served,
                () = $ended => {
                    serving.as_mut().graceful_shutdown();
                    let rest = tokio::time::timeout(STOPPING_MAX, serving);
                    rest.await.unwrap_or(Ok(()))
                }
            }
        }};
    }
    let served = if is_http2 {
        let serving = http2_builder(idle_max).serve_connection(stream, service);
        let ended = async {
            tokio::select! {
                () = listening.until_stopped() => {}
                () = activity.until_idle(idle_max) => {}
            }
        };
        until_stopped!(serving, ended)
    } else {
        let serving = http1_builder(idle_max).serve_connection(stream, service);
        let serving = serving.with_upgrades();
        until_stopped!(serving, listening.until_stopped())
    };
    if let Err(e) = served {
        tracing::debug!("HTTP connection ended: {e}");
    }
    // Whoever goes on with the connection in another protocol.
    tokio::select! {
        _ = left.recv() => {}
        () = listening.until_stopped() => {}
    }
}

/// In each request's extensions: as long as somebody has it, the connection is not ended.
#[derive(Clone)]
pub(super) struct Stays(#[expect(dead_code, reason = "held, not used")] mpsc::Sender<Infallible>);

fn http1_builder(idle_max: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(idle_max)
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
}

fn http2_builder(idle_max: Duration) -> h2::Builder<TokioExecutor> {
    let mut builder = h2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(idle_max)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(BUFFER_BYTES_MAX as u32)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX);
    builder
}

/// Which requests are open, and when the last one was.
#[derive(Default)]
struct Activity {
    open: AtomicU32,
    last_s: AtomicU32,
}

/// A request that is not answered yet.
struct Open(Arc<Activity>);

impl Open {
    fn of(activity: &Arc<Activity>) -> Self {
        activity.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.last_s.store(now_s(), Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    /// Ends when nothing was asked for so long.
    async fn until_idle(&self, idle_max: Duration) {
        let idle_max_s = u32::try_from(idle_max.as_secs().max(1)).unwrap_or(u32::MAX);
        self.last_s.store(now_s(), Ordering::Relaxed);
        loop {
            let idle_s = now_s().saturating_sub(self.last_s.load(Ordering::Relaxed));
            let is_idle = self.open.load(Ordering::Relaxed) == 0;
            if is_idle && idle_s >= idle_max_s {
                return;
            }
            let left_s = idle_max_s.saturating_sub(idle_s).max(1);
            tokio::time::sleep(Duration::from_secs(left_s.into())).await;
        }
    }
}

async fn respond(
    site: &Site,
    listening: Arc<Listening>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    let line = site
        .options
        .access_log
        .then(|| Line::of(&connection, &request));
    let secure = listening.tls.is_some();
    let mut response = routed(site, Arc::clone(&listening), connection, request).await;
    if let (Some(age), true) = (site.options.hsts_max_age, secure) {
        let text = format!("max-age={}", age.as_secs());
        if let Ok(value) = HeaderValue::try_from(text) {
            response
                .headers_mut()
                .insert(STRICT_TRANSPORT_SECURITY, value);
        }
    }
    if let Some(line) = line {
        line.write(response.status());
    }
    response
}

/// Has the service answer that the request's path leads to.
async fn routed(
    site: &Site,
    listening: Arc<Listening>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    if pages::is_page(&listening, request.uri().path()) {
        let page = pages::respond(&listening, &request);
        return page.map(|page| page.map_err(|never| match never {}).boxed_unsync());
    }
    if let Err(reason) = may_enter(&listening, &request) {
        counters().count(Counter::PeerFaults);
        return answer::text(StatusCode::FORBIDDEN, reason);
    }
    let components = match crosstie_web::path::components(request.uri().path()) {
        Ok(components) => components,
        Err(e) => {
            counters().count(Counter::PeerFaults);
            return answer::text(StatusCode::BAD_REQUEST, e.to_string());
        }
    };
    let Some(found) = site.find(&components) else {
        return answer::not_found();
    };
    let mut base = String::new();
    for component in &components[..found.depth] {
        base.push('/');
        base.push_str(component);
    }
    let asked = Asked {
        request,
        listening: Arc::clone(&listening),
        connection,
        base,
        rest: components[found.depth..].to_vec(),
    };
    found.service.answer(asked).await
}

/// Every name by which a request says that it came must be one of the listener's: a page whose own name is led to
/// this machine asks by that (DNS rebinding). A request of HTTP/1.1 says exactly one (RFC 9112 section 3.2).
fn may_enter(listening: &Listening, request: &Request<Incoming>) -> Result<(), String> {
    let mut said = 0;
    if let Some(authority) = request.uri().authority() {
        said += usize::from(request.version() == Version::HTTP_2);
        host_may_enter(Some(authority.as_str()), &listening.allowed_hosts)?;
    }
    for host in request.headers().get_all(HOST) {
        said += 1;
        let host = host.to_str().unwrap_or("(not a name)");
        host_may_enter(Some(host), &listening.allowed_hosts)?;
    }
    match (request.version(), said) {
        (Version::HTTP_11, 0) => Err("a request of HTTP/1.1 names its host".to_owned()),
        (Version::HTTP_11, 2..) => Err("a request names one host".to_owned()),
        _ => Ok(()),
    }
}

/// A line of the log for each request.
struct Line {
    peer: String,
    request: String,
    origin: String,
    agent: String,
}

impl Line {
    fn of(connection: &Connection, request: &Request<Incoming>) -> Self {
        let header = |name| {
            let value = request.headers().get(name);
            let value = value.and_then(|value: &HeaderValue| value.to_str().ok());
            value.unwrap_or("-").to_owned()
        };
        let (method, uri) = (request.method(), request.uri());
        Self {
            peer: connection.peer().to_string(),
            request: format!("{method} {uri} {:?}", request.version()),
            origin: header(ORIGIN),
            agent: header(USER_AGENT),
        }
    }

    fn write(&self, status: StatusCode) {
        let Self {
            peer,
            request,
            origin,
            agent,
        } = self;
        let status = status.as_u16();
        tracing::info!(target: "crosstie::access", "{peer} {request:?} {status} {origin:?} {agent:?}");
    }
}
