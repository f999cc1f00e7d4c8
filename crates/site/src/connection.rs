//! One HTTP connection: serves its requests in turn or, over HTTP/2, concurrently.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosstie_front::listen::Listening;
use crosstie_front::report;
use crosstie_realms::entrance::Entrance;
use crosstie_transport::{Connection, ConnectionStream, now_s};
use crosstie_web::http2;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2 as h2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::passage::Passing;
use super::respond::respond;
use super::{Site, http1};

/// Timeout of an idle connection, unless its listener configures another.
const IDLE_MAX: Duration = Duration::from_secs(75);
/// Maximum number of header lines in a request.
pub(super) const HEADERS_MAX: usize = 100;
/// Maximum number of concurrent requests on a connection (RFC 9113 section 5.1.2).
const STREAMS_MAX: u32 = 100;
/// Maximum number of streams that a client may have reset before their answers; more indicate an attack
/// (CVE-2023-44487).
const RESETS_MAX: usize = 20;
/// A client's time to read an answer.
const REST_MAX: Duration = Duration::from_secs(2);

/// Maximum time for open requests after their listener has stopped: an answer may wait for a call.
pub(super) fn stopping_max(site: &Site, entrance: &Entrance) -> Duration {
    match site.has_services() {
        true => entrance.listening.bounds.shutdown_timeout + REST_MAX,
        false => Duration::ZERO,
    }
}

/// Maximum time without a request.
pub(super) fn idle_max(site: &Site) -> Duration {
    site.options.client_timeout.unwrap_or(IDLE_MAX)
}

/// Serves the requests of one connection until it ends; only the first, unless it may stay.
pub(super) fn serve(
    site: Arc<Site>,
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    input: Vec<u8>,
    may_stay: bool,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let idle_max = idle_max(&site);
    let is_http2 = !input.is_empty() && http2::may_begin(&input);
    Box::pin(async move {
        let stream = match ConnectionStream::new(Arc::clone(&connection), input) {
            Ok(stream) => stream.with_unsent_bytes_max(site.options.unsent_bytes_max),
            Err(e) => return report::peer_fault(&connection, "http", &e.to_string()),
        };
        // Each is boxed, so that neither reserves memory for the other.
        match is_http2 {
            true => Box::pin(serve_http2(site, entrance, connection, stream, idle_max)).await,
            false => Box::pin(http1::serve(site, entrance, connection, stream, may_stay)).await,
        }
    })
}

async fn serve_http2(
    site: Arc<Site>,
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    stream: ConnectionStream,
    idle_max: Duration,
) {
    let activity = Arc::new(Activity::default());
    let service = {
        let (site, entrance) = (Arc::clone(&site), Arc::clone(&entrance));
        let activity = Arc::clone(&activity);
        service_fn(move |request: Request<Incoming>| {
            let (site, entrance) = (Arc::clone(&site), Arc::clone(&entrance));
            let connection = Arc::clone(&connection);
            let open = Open::of(&activity);
            async move {
                let response = respond(site, entrance, connection, Box::new(request), None).await;
                // A body may still be in transit when everything else is idle.
                Ok::<_, Infallible>(response.map(|body| Passing::body(body, open, None)))
            }
        })
    };
    let builder = http2_builder(idle_max, entrance.listening.bounds.request_head_bytes_max);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = until_over(&entrance.listening, &activity, idle_max) => {
            // Open requests are answered, and no further ones accepted.
            serving.as_mut().graceful_shutdown();
            let rest = tokio::time::timeout(stopping_max(&site, &entrance), serving);
            rest.await.unwrap_or(Ok(()))
        }
    };
    if let Err(e) = served {
        tracing::debug!("HTTP connection ended: {e}");
    }
}

async fn until_over(listening: &Listening, activity: &Activity, idle_max: Duration) {
    tokio::select! {
        () = listening.until_stopped() => {}
        () = activity.until_idle(idle_max) => {}
    }
}

fn http2_builder(idle_max: Duration, head_bytes_max: usize) -> h2::Builder<TokioExecutor> {
    let mut builder = h2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(idle_max)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(head_bytes_max as u32)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX);
    builder
}

/// The number of open requests, and the time of the last one.
#[derive(Default)]
struct Activity {
    open: AtomicU32,
    last_s: AtomicU32,
}

/// A request without a complete answer.
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
    /// Returns after that time without requests.
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
