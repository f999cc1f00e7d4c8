//! Pages that the router serves itself: health, metrics, status.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosstie_config::Page;
use crosstie_fabric::State;
use crosstie_transport::{Connection, ConnectionStream};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AGE, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, UPGRADE, VARY};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::amqp::{self, Alarm, Ownership, Whose};
use crate::listen::Listening;
use crate::markup::escaped;
use crate::metrics::{Form, metrics};
use crate::origins::{host_may_enter, page_may_ask};
use crate::rendered::{Rendering, Shown};
use crate::router_state::RouterState;
use crate::sessions;
use crate::wamp::probes::{FAVICON, WEBSOCKET_STATUS};
use crate::wamp::realm::SharedRealm;
use crate::{report, rlink_table, worker_table};

/// Timeout of an idle connection.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Serves requests on one connection until it ends; only the first if the connection may not stay.
pub(crate) async fn serve(
    listening: Arc<Listening>,
    connection: &Connection,
    stream: ConnectionStream,
    may_stay: bool,
) {
    let answer = service_fn(|request| {
        let response = respond(&listening, connection, &request);
        async { Ok::<_, Infallible>(response) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_buf_size(listening.router.request_head_bytes_max)
        .keep_alive(may_stay)
        .serve_connection(TokioIo::new(stream), answer);
    let served = tokio::select! {
        served = serving => served,
        () = listening.until_stopped() => return,
    };
    if let Err(e) = served {
        tracing::debug!("HTTP connection ended: {e}");
    }
}

/// Every host name in a request must be one of the listener's, and the page that sends the request must be allowed to.
fn may_enter(listening: &Listening, request: &Request<Incoming>) -> Result<(), String> {
    let target = request.uri().host();
    let hosts = request.headers().get_all(HOST).iter();
    let hosts = hosts.map(|host| host.to_str().unwrap_or("(not a name)"));
    for host in target.into_iter().chain(hosts) {
        host_may_enter(Some(host), &listening.allowed_hosts)?;
    }
    let origin = request.headers().get(ORIGIN);
    let origin = origin.map(|origin| origin.to_str().unwrap_or("(no text)"));
    page_may_ask(origin, &listening.allowed_hosts)
}

/// Whether the listener has a page at that path.
pub(crate) fn is_page(listening: &Listening, path: &str) -> bool {
    page_at(path).is_some_and(|page| listening.pages.contains(&page))
}

fn page_at(path: &str) -> Option<Page> {
    match path {
        "/health" => Some(Page::Health),
        "/metrics" => Some(Page::Metrics),
        "/" => Some(Page::Status),
        _ => None,
    }
}

/// The answer to a request at a WebSocket's path that opens none.
fn websocket_status(listening: &Listening, is_shown: bool) -> Response<Full<Bytes>> {
    if is_shown && listening.router.is_stopping() {
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
pub(crate) fn respond(
    listening: &Listening,
    connection: &Connection,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    if let Err(reason) = may_enter(listening, request) {
        report::peer_fault(connection, "http", &reason);
        return text(StatusCode::FORBIDDEN, reason + "\n");
    }
    let path = request.uri().path();
    let page = page_at(path);
    let is_on = page.is_some_and(|page| listening.pages.contains(&page));
    if !is_on && let Some(endpoint) = listening.websocket_at(path) {
        let is_shown = endpoint.shows_status(request.method().as_str());
        return websocket_status(listening, is_shown);
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
        Page::Health if listening.router.is_stopping() => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "shutting down\n".to_owned(),
        ),
        Page::Health => {
            let (status, body) = health(&listening.routers.lock().clone());
            text(status, body)
        }
        Page::Metrics => {
            let accept = request.headers().get(ACCEPT);
            let form = Form::accepted(accept.and_then(|accept| accept.to_str().ok()));
            let what = match form {
                Form::OpenMetrics => Rendering::OpenMetrics,
                Form::Text => Rendering::TextMetrics,
            };
            let page = rendered(listening, what, |routers| metrics(routers, form));
            shown(form.content_type(), page)
        }
        Page::Status => {
            let page = rendered(listening, Rendering::Status, |_| status(listening));
            shown("text/html; charset=utf-8", page)
        }
        other => text(
            StatusCode::NOT_FOUND,
            format!("page {other:?} is not known here\n"),
        ),
    }
}

/// The rendered page, or its recent copy; the whole process renders one page at a time.
fn rendered(
    listening: &Listening,
    what: Rendering,
    render: impl FnOnce(&[Arc<RouterState>]) -> String,
) -> Shown {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let kept = listening.rendered.lock().kept(what, Instant::now());
    if let Some(page) = kept {
        return page;
    }
    let _turn = ONE_AT_A_TIME.lock();
    // Not under the lock, which the start of a worker needs.
    let routers = listening.routers.lock().clone();
    let began = processor_time();
    let text = Bytes::from(render(&routers));
    let took = processor_time().saturating_sub(began);
    let now = Instant::now();
    listening
        .rendered
        .lock()
        .keep(what, now, took, text.clone());
    Shown { text, age: None }
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

/// Whether the node is ready for clients: 503 if clients would be admitted and not served, because durable messages
/// cannot be stored, a vhost has no owner, or a realm refuses all sessions. Neither full memory nor a low disk takes a
/// node out of service: consumers are served, and free memory. Nor does a realm without its other nodes that serves its
/// own sessions.
fn health(routers: &[Arc<RouterState>]) -> (StatusCode, String) {
    let mut wrong = String::new();
    let mut is_ready = true;
    for (router, alarm) in amqp::alarms(routers) {
        is_ready &= !matches!(alarm, Alarm::StoreFailing { .. });
        let _ = writeln!(wrong, "AMQP of router '{router}': {alarm}");
    }
    for (router, vhost) in amqp::replicated_vhosts(routers) {
        let seen = vhost.seen();
        match vhost.ownership() {
            Ownership::Here(_) => is_ready &= !seen.is_log_refusing,
            Ownership::NotHere(Whose::Elsewhere { .. }) => {}
            Ownership::NotHere(Whose::Nobody { why }) => {
                is_ready = false;
                // An alarm has described this already.
                if seen.alarm.is_none() {
                    let name = &vhost.name;
                    let _ = writeln!(
                        wrong,
                        "AMQP of router '{router}': replicated vhost '{name}' is on no node that is known: {why}"
                    );
                }
            }
        }
    }
    for (router, realm) in realms(routers) {
        let Some(port) = &realm.port else {
            continue;
        };
        let (router, realm) = (&router.id, realm.name());
        let (is_open, all) = port.seen().judge(port.settings.is_refused_detached);
        is_ready &= is_open;
        for wrong_there in all {
            let _ = writeln!(wrong, "Realm '{realm}' of router '{router}': {wrong_there}");
        }
    }
    // The routers' clients are served nevertheless.
    let workers = routers.first().map(|router| router.overview.workers());
    wrong += &worker_table::troubles(&workers.unwrap_or_default());
    match is_ready {
        true => (StatusCode::OK, format!("ok\n{wrong}")),
        false => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("degraded\n{wrong}"),
        ),
    }
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

/// Every realm, with its router.
pub(crate) fn realms(
    routers: &[Arc<RouterState>],
) -> impl Iterator<Item = (&RouterState, Arc<SharedRealm>)> {
    let of_router = |router: &RouterState| router.realms().into_iter();
    routers
        .iter()
        .flat_map(move |router| of_router(router).map(move |realm| (&**router, realm)))
}

fn status(listening: &Listening) -> String {
    let routers = listening.routers.lock().clone();
    let mut realm_rows = String::new();
    for (router, realm) in realms(&routers) {
        let counts = realm.counts();
        let _ = write!(
            realm_rows,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            escaped(&router.id),
            escaped(realm.name()),
            counts.sessions,
            counts.subscriptions,
            counts.registrations,
            counts.calls
        );
    }
    let (addresses, workers) = (
        addresses(&routers),
        worker_table::table(&listening.router.overview.workers()),
    );
    let sessions = session_table(&routers);
    let (brokers, fabric) = (amqp_status(&routers), fabric_status(&routers));
    let links = routers.iter().flat_map(|router| {
        let links = router.rlinks.all().into_iter();
        links.map(|link| (&*router.id, link.status()))
    });
    let links = rlink_table::table(links);
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Crosstie</title>\
         <link rel=icon href=\"data:,\">\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <meta name=color-scheme content=\"light dark\"><style>{STYLE}</style>\
         <h1>Crosstie {}</h1><p>Up for {}; {} open connections, that of this page included.\
         {addresses}{workers}\
         <h2>WAMP</h2><div><table><tr><th>router<th>realm<th>sessions<th>subscriptions\
         <th>registrations<th>open calls{realm_rows}</table></div>{fabric}{links}{sessions}{brokers}\
         <p><a href=/health>health</a> · <a href=/metrics>metrics</a></html>\n",
        env!("CARGO_PKG_VERSION"),
        duration(listening.router.overview.uptime()),
        routers
            .iter()
            .map(|router| router.connections())
            .sum::<usize>(),
    )
}

/// The browser's own colours, light or dark; a wide table scrolls, not the page.
const STYLE: &str = ":root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui;margin:2em auto;max-width:60em;padding:0 1em}\
    div{overflow-x:auto}table{border-collapse:collapse}\
    td,th{padding:.2em 1em .2em 0;text-align:left;vertical-align:top}code{overflow-wrap:anywhere}";

/// The addresses for clients.
fn addresses(routers: &[Arc<RouterState>]) -> String {
    let mut rows = String::new();
    for router in routers {
        for (transport, urls) in &*router.addresses.lock() {
            let urls: Vec<_> = urls.iter().map(|url| escaped(url)).collect();
            let _ = write!(
                rows,
                "<tr><td>{}<td>{}<td><code>{}</code>",
                escaped(&router.id),
                escaped(transport),
                urls.join("</code><br><code>")
            );
        }
    }
    format!("<h2>Connect to</h2><div><table><tr><th>router<th>transport<th>URL{rows}</table></div>")
}

/// The two largest units that are not zero.
fn duration(duration: Duration) -> String {
    let s = duration.as_secs();
    let (days, hours, minutes) = (s / 86_400, s / 3_600 % 24, s / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{s} s"),
        (0, 0, _) => format!("{minutes} min {} s", s % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The first sessions of each router; `crosstie sessions` lists all.
fn session_table(routers: &[Arc<RouterState>]) -> String {
    let mut rows = String::new();
    let mut is_cut = false;
    for router in routers {
        let sessions = sessions::of_router(router, None, 0, SESSIONS_SHOWN + 1);
        is_cut |= sessions.len() > SESSIONS_SHOWN;
        for session in sessions.iter().take(SESSIONS_SHOWN) {
            let age = duration(session.since.elapsed().unwrap_or_default());
            let _ = write!(
                rows,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}, {}<td>{age}",
                escaped(&router.id),
                escaped(&session.realm),
                session.id,
                escaped(&session.authid),
                escaped(&session.authrole),
                escaped(&session.peer),
                session.framing,
                session.serializer,
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let more = match is_cut {
        true => "<p>There are more: <code>crosstie sessions</code> lists all.",
        false => "",
    };
    format!(
        "<h2>Sessions</h2><div><table><tr><th>router<th>realm<th>session<th>authid<th>role<th>peer\
         <th>transport<th>for{rows}</table></div>{more}"
    )
}

/// Maximum number of a router's sessions on the page.
const SESSIONS_SHOWN: usize = 50;

/// The realms that span several nodes.
fn fabric_status(routers: &[Arc<RouterState>]) -> String {
    let mut rows = String::new();
    for (router, realm) in realms(routers) {
        let Some(port) = &realm.port else {
            continue;
        };
        let (seen, counts) = (port.seen(), realm.counts());
        let state = match seen.state {
            State::Attached => format!("on NATS server {}", escaped(&seen.server)),
            State::Joining => format!("joining on NATS server {}", escaped(&seen.server)),
            State::Detached => format!(
                "<strong>no NATS server is reached</strong> {}",
                escaped(&seen.why)
            ),
        };
        let wrong = escaped(&seen.wrong().join("; "));
        let nodes: Vec<_> = seen.nodes.iter().map(|node| escaped(node)).collect();
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{state} <strong>{wrong}</strong><td>{}<td>{}<td>{}",
            escaped(&router.id),
            escaped(realm.name()),
            nodes.join("<br>"),
            counts.registrations_elsewhere,
            counts.calls_across
        );
    }
    match rows.is_empty() {
        true => rows,
        false => format!(
            "<h2>Other nodes</h2><div><table><tr><th>router<th>realm<th>state<th>nodes<th>their registrations<th>open calls{rows}</table></div>"
        ),
    }
}

/// The vhosts of routers with AMQP, and their alarms.
fn amqp_status(routers: &[Arc<RouterState>]) -> String {
    let mut rows = String::new();
    for (router, broker) in routers.iter().filter_map(|r| Some((r, r.amqp()?))) {
        for vhost in broker.vhosts() {
            let vhost = vhost.status();
            let _ = write!(
                rows,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
                escaped(&router.id),
                escaped(&vhost.name),
                vhost.connections,
                vhost.queues,
                vhost.consumers,
                vhost.messages_ready,
                vhost.messages_unacked
            );
        }
    }
    let replicated = amqp::replicated_page(routers);
    if rows.is_empty() && replicated.is_empty() {
        return rows;
    }
    let mut alarms = String::new();
    for (router, alarm) in amqp::alarms(routers) {
        let (router, alarm) = (escaped(router), escaped(&alarm.to_string()));
        let _ = write!(alarms, "<p><strong>Router '{router}': {alarm}</strong>");
    }
    format!(
        "<h2>AMQP</h2>{alarms}<div><table><tr><th>router<th>vhost<th>connections<th>queues\
         <th>consumers<th>ready<th>unacknowledged{rows}</table></div>{replicated}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (s, expected) in [
            (0, "0 s"),
            (61, "1 min 1 s"),
            (3_600, "1 h 0 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(Duration::from_secs(s)), expected);
        }
    }
}
