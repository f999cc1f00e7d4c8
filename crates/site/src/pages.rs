//! The pages of a router about itself: health, metrics, status.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosstie_config::Page;
use crosstie_front::admission::Admitted;
use crosstie_front::origins::{host_may_enter, page_may_ask};
use crosstie_front::report;
use crosstie_realms::entrance::Entrance;
use crosstie_realms::probes::{FAVICON, WEBSOCKET_STATUS};
use crosstie_transport::Connection;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AGE, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, UPGRADE, VARY};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::rendered::{Rendered, Rendering, Shown};

/// The figures that pages show.
pub trait Figures: Send + Sync {
    /// Whether the node is ready for clients, and a text that says what is wrong.
    fn health(&self) -> (bool, String);

    /// All metrics.
    fn metrics(&self, form: Form) -> String;

    /// The status page.
    fn status(&self) -> String;
}

/// The pages of one listener.
pub struct Pages {
    /// Those that are switched on.
    shown: Vec<Page>,
    figures: Arc<dyn Figures>,
    /// Cache of pages that are costly to render.
    rendered: Mutex<Rendered>,
    /// Connections for pages alone.
    connections: AtomicUsize,
    connections_max: usize,
}

impl Pages {
    pub fn new(shown: &[Page], figures: Arc<dyn Figures>, connections_max: usize) -> Self {
        Self {
            shown: shown.to_vec(),
            figures,
            rendered: Mutex::default(),
            connections: AtomicUsize::new(0),
            connections_max,
        }
    }

    /// Whether one of these pages is at that path.
    pub(super) fn has(&self, path: &str) -> bool {
        page_at(path).is_some_and(|page| self.shown.contains(&page))
    }

    /// A page that `render` makes, or that it made a moment ago; the whole process renders one page at a time.
    fn rendered(&self, what: Rendering, render: impl FnOnce(&dyn Figures) -> String) -> Shown {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let kept = self.rendered.lock().kept(what, Instant::now());
        if let Some(page) = kept {
            return page;
        }
        let _turn = ONE_AT_A_TIME.lock();
        let began = processor_time();
        let text = Bytes::from(render(&*self.figures));
        let took = processor_time().saturating_sub(began);
        let now = Instant::now();
        self.rendered.lock().keep(what, now, took, text.clone());
        Shown { text, age: None }
    }

    /// Takes a place for a connection that asks for pages alone, if there is one. Only half of them are for
    /// connections that stay, so that no client waits for one that has stopped asking.
    pub(super) fn take_place<P: AsRef<Self>>(
        owner: &Arc<P>,
        admitted: &Admitted,
    ) -> Option<PagePlace<P>> {
        let pages = (**owner).as_ref();
        let before = pages.connections.fetch_add(1, Ordering::Relaxed);
        let place = PagePlace {
            owner: Arc::clone(owner),
            may_stay: before < pages.connections_max.div_ceil(2) && admitted.excess.is_none(),
        };
        (before < pages.connections_max).then_some(place)
    }
}

/// A connection that pages are served to, for as long as this lives.
pub(super) struct PagePlace<P: AsRef<Pages>> {
    owner: Arc<P>,
    /// The connection may wait for another request.
    pub(super) may_stay: bool,
}

impl<P: AsRef<Pages>> Drop for PagePlace<P> {
    fn drop(&mut self) {
        let pages = (*self.owner).as_ref();
        pages.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The two formats of Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    OpenMetrics,
    /// Prometheus' own text format, version 0.0.4, which every reader of metrics accepts.
    Text,
}

impl Form {
    /// The format for a request's `Accept`: the newer one if it is named.
    pub fn accepted(accept: Option<&str>) -> Self {
        let ranges = accept.unwrap_or_default().split(',');
        let is_open_metrics = |range: &str| {
            let mut parts = range.split(';').map(str::trim);
            let is_named = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
            is_named && !parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0"))
        };
        match ranges.map(str::trim).any(is_open_metrics) {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }

    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Every host name in a request must be one of the listener's, and the page that sends the request must be allowed to.
fn may_enter(entrance: &Entrance, request: &Request<Incoming>) -> Result<(), String> {
    let target = request.uri().host();
    let hosts = request.headers().get_all(HOST).iter();
    let hosts = hosts.map(|host| host.to_str().unwrap_or("(not a name)"));
    for host in target.into_iter().chain(hosts) {
        host_may_enter(Some(host), &entrance.allowed_hosts)?;
    }
    let origin = request.headers().get(ORIGIN);
    let origin = origin.map(|origin| origin.to_str().unwrap_or("(no text)"));
    page_may_ask(origin, &entrance.allowed_hosts)
}

/// Like `/health`, but a drain makes it answer 503 at once.
const READY: &str = "/ready";

/// 200 as long as the node answers: for supervisors that restart nodes.
const LIVE: &str = "/live";

fn page_at(path: &str) -> Option<Page> {
    match path {
        "/health" | READY | LIVE => Some(Page::Health),
        "/metrics" => Some(Page::Metrics),
        "/" => Some(Page::Status),
        _ => None,
    }
}

/// The answer to a request at a WebSocket's path that opens none.
fn websocket_status(entrance: &Entrance, is_shown: bool) -> Response<Full<Bytes>> {
    if is_shown && entrance.listening.bounds.is_stopping() {
        return text(
            StatusCode::SERVICE_UNAVAILABLE,
            "shutting down\n".to_owned(),
        );
    }
    if is_shown {
        return text(StatusCode::OK, format!("{WEBSOCKET_STATUS}\n"));
    }
    let mut response = text(
        StatusCode::UPGRADE_REQUIRED,
        "expected an upgrade to WebSocket\n".to_owned(),
    );
    let websocket = hyper::header::HeaderValue::from_static("websocket");
    response.headers_mut().insert(UPGRADE, websocket);
    response
}

/// Answers one request.
pub(super) fn respond(
    pages: &Pages,
    entrance: &Entrance,
    connection: &Connection,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    if let Err(reason) = may_enter(entrance, request) {
        report::peer_fault(connection, "http", &reason);
        return text(StatusCode::FORBIDDEN, reason + "\n");
    }
    let path = request.uri().path();
    let page = page_at(path);
    let is_on = page.is_some_and(|page| pages.shown.contains(&page));
    if !is_on && let Some(endpoint) = entrance.websocket_at(path) {
        let is_shown = endpoint.shows_status(request.method().as_str());
        return websocket_status(entrance, is_shown);
    }
    let Some(page) = page else {
        return match path {
            // Browsers request it beside every page.
            FAVICON => text(StatusCode::NO_CONTENT, String::new()),
            _ => text(StatusCode::NOT_FOUND, format!("no page at {path}\n")),
        };
    };
    if !is_on {
        return text(
            StatusCode::NOT_FOUND,
            "this page is switched off here\n".to_owned(),
        );
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "expected GET or HEAD\n".to_owned(),
        );
    }
    match page {
        Page::Health if path == LIVE => text(StatusCode::OK, "ok\n".to_owned()),
        Page::Health => health(pages, entrance, path == READY),
        Page::Metrics => {
            let accept = request.headers().get(ACCEPT);
            let form = Form::accepted(accept.and_then(|accept| accept.to_str().ok()));
            let what = match form {
                Form::OpenMetrics => Rendering::OpenMetrics,
                Form::Text => Rendering::TextMetrics,
            };
            let page = pages.rendered(what, |figures| figures.metrics(form));
            shown(form.content_type(), page)
        }
        Page::Status => {
            let page = pages.rendered(Rendering::Status, |figures| figures.status());
            shown("text/html; charset=utf-8", page)
        }
        other => text(
            StatusCode::NOT_FOUND,
            format!("page {other:?} is not known here\n"),
        ),
    }
}

/// The answer to `/health`, or to `/ready`.
fn health(pages: &Pages, entrance: &Entrance, is_ready_asked: bool) -> Response<Full<Bytes>> {
    let bounds = &entrance.listening.bounds;
    let (is_ready, body) = match () {
        () if bounds.is_stopping() => (false, "shutting down\n".to_owned()),
        () if is_ready_asked && bounds.is_draining() => (false, "draining\n".to_owned()),
        () => pages.figures.health(),
    };
    let status = match is_ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    text(status, body)
}

/// A rendered page; a copy states its age in whole seconds.
fn shown(kind: &'static str, page: Shown) -> Response<Full<Bytes>> {
    let mut response = typed(StatusCode::OK, kind, page.text);
    if let Some(age) = page.age {
        response.headers_mut().insert(AGE, age.as_secs().into());
    }
    response
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    headers.insert(
        CACHE_CONTROL,
        hyper::header::HeaderValue::from_static("no-store"),
    );
    headers.insert(VARY, hyper::header::HeaderValue::from_static("accept"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_format_needs_its_name_in_accept() {
        for (accept, expected) in [
            (None, Form::Text),
            (Some("*/*"), Form::Text),
            (Some("text/plain"), Form::Text),
            (Some("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"), Form::Text),
            (Some("application/openmetrics-text"), Form::OpenMetrics),
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                Form::OpenMetrics,
            ),
            (
                Some("text/plain, Application/OpenMetrics-Text; version=0.0.1"),
                Form::OpenMetrics,
            ),
            (
                Some("application/openmetrics-text;q=0,text/plain"),
                Form::Text,
            ),
        ] {
            assert_eq!(Form::accepted(accept), expected, "{accept:?}");
        }
    }
}
