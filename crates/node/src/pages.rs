//! The pages a router answers itself: health, metrics, status.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosstie_config::Page;
use crosstie_transport::ConnectionStream;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::counters::{self, Totals};
use crate::listen::Listening;
use crate::router::Router;

/// A connection that asks for nothing is closed after so long.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Answers requests on one connection until it ends.
pub(crate) async fn serve(listening: Arc<Listening>, stream: ConnectionStream) {
    let answer = service_fn(|request| {
        let response = respond(&listening, &request);
        async { Ok::<_, Infallible>(response) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    let served = tokio::select! {
        served = serving => served,
        () = listening.router.until_stopped() => return,
    };
    if let Err(e) = served {
        tracing::debug!("HTTP connection ended: {e}");
    }
}

fn respond(listening: &Listening, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let page = match request.uri().path() {
        "/health" => Page::Health,
        "/metrics" => Page::Metrics,
        "/" => Page::Status,
        path => return text(StatusCode::NOT_FOUND, format!("no page at {path}\n")),
    };
    if !listening.pages.contains(&page) {
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
    let router = &listening.router;
    match page {
        Page::Health if router.is_stopping() => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "shutting down\n".to_owned(),
        ),
        Page::Health => text(StatusCode::OK, "ok\n".to_owned()),
        Page::Metrics => typed(StatusCode::OK, OPENMETRICS, metrics(&listening.routers)),
        Page::Status => typed(
            StatusCode::OK,
            "text/html; charset=utf-8",
            status(listening),
        ),
        other => text(
            StatusCode::NOT_FOUND,
            format!("page {other:?} is not known here\n"),
        ),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    headers.insert(
        CACHE_CONTROL,
        hyper::header::HeaderValue::from_static("no-store"),
    );
    response
}

/// What Prometheus asks for first; every version of it understands the text form.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn metrics(routers: &[Arc<Router>]) -> String {
    let mut registry = Registry::with_prefix("crosstie");
    let totals = counters::totals();
    register_totals(&mut registry, &totals);
    register_realms(&mut registry, routers);
    let mut gauge = |name: &str, help: &str, value: usize| {
        registry.register(name, help, ConstGauge::new(value as i64));
    };
    let connections = routers.iter().map(|router| router.connections()).sum();
    gauge("connections", "Open connections", connections);
    gauge(
        "queued_bytes",
        "Octets waiting for receivers that do not read",
        routers
            .iter()
            .map(|router| router.limits.budget.used_bytes())
            .sum(),
    );
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut out, &registry);
    out
}

fn register_totals(registry: &mut Registry, totals: &Totals) {
    type ByType =
        Family<[(&'static str, &'static str); 1], prometheus_client::metrics::counter::Counter>;
    for (name, help, by_type) in [
        (
            "messages_received",
            "WAMP messages received, by type",
            &totals.received,
        ),
        (
            "messages_sent",
            "WAMP messages queued for sending, by type",
            &totals.sent,
        ),
    ] {
        let family = ByType::default();
        for (kind, count) in by_type.iter().filter(|(_, count)| *count > 0) {
            family
                .get_or_create(&[("type", kind.name())])
                .inc_by(*count);
        }
        registry.register(name, help, family);
    }
    for (name, help, value) in [
        ("reads", "Reads that brought octets", totals.reads),
        (
            "received_bytes",
            "Octets handed to the protocol",
            totals.received_bytes,
        ),
        (
            "connections_opened",
            "Connections accepted",
            totals.connections_opened,
        ),
        (
            "connections_closed",
            "Connections ended",
            totals.connections_closed,
        ),
        (
            "connections_refused",
            "Connections turned away",
            totals.connections_refused,
        ),
        (
            "sessions_joined",
            "Sessions that joined a realm",
            totals.sessions_joined,
        ),
        (
            "sessions_left",
            "Sessions that left their realm",
            totals.sessions_left,
        ),
        (
            "events_dropped_full",
            "Events dropped at a full queue",
            totals.events_dropped_full,
        ),
        (
            "events_dropped_unrepresentable",
            "Events a receiver's serializer cannot hold",
            totals.events_dropped_unrepresentable,
        ),
        (
            "events_dropped_other",
            "Events dropped because the receiver was gone or takes no such length",
            totals.events_dropped_other,
        ),
        (
            "messages_refused",
            "Other messages a receiver's queue refused",
            totals.messages_refused,
        ),
        (
            "sessions_closed_for_refusal",
            "Sessions closed because an answer to them was refused",
            totals.closed_for_refusal,
        ),
        (
            "connections_closed_for_silence",
            "Connections closed because a ping was not answered",
            totals.closed_for_silence,
        ),
        (
            "connections_closed_for_stall",
            "Connections closed because they took nothing of what waited for them",
            totals.closed_for_stall,
        ),
        (
            "peer_faults",
            "Connections ended for a fault of the peer",
            totals.peer_faults,
        ),
    ] {
        registry.register(name, help, ConstCounter::new(value));
    }
}

fn register_realms(registry: &mut Registry, routers: &[Arc<Router>]) {
    type ByRealm = Family<[(&'static str, String); 1], prometheus_client::metrics::gauge::Gauge>;
    let (sessions, subscriptions) = (ByRealm::default(), ByRealm::default());
    let (registrations, calls) = (ByRealm::default(), ByRealm::default());
    for realm in routers.iter().flat_map(|router| router.realms()) {
        let counts = realm.counts();
        let set = |family: &ByRealm, value: usize| {
            family
                .get_or_create(&[("realm", realm.name().to_owned())])
                .set(value as i64);
        };
        set(&sessions, counts.sessions);
        set(&subscriptions, counts.subscriptions);
        set(&registrations, counts.registrations);
        set(&calls, counts.calls);
    }
    registry.register("realm_sessions", "Sessions in the realm", sessions);
    registry.register(
        "realm_subscriptions",
        "Subscriptions in the realm",
        subscriptions,
    );
    registry.register(
        "realm_registrations",
        "Registrations in the realm",
        registrations,
    );
    registry.register(
        "realm_calls_open",
        "Calls that wait for their result",
        calls,
    );
}

fn status(listening: &Listening) -> String {
    let mut rows = String::new();
    for realm in listening.routers.iter().flat_map(|router| router.realms()) {
        let counts = realm.counts();
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}",
            escaped(realm.name()),
            counts.sessions,
            counts.subscriptions,
            counts.registrations,
            counts.calls
        );
    }
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Crosstie</title>\
         <style>body{{font:16px/1.5 system-ui;margin:3em auto;max-width:44em;padding:0 1em}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em 1em .2em 0;text-align:left}}</style>\
         <h1>Crosstie {}</h1><p>A WAMP router is listening here: {} open connections.\
         <table><tr><th>realm<th>sessions<th>subscriptions<th>registrations<th>open calls{rows}</table>\
         <p><a href=/health>health</a> · <a href=/metrics>metrics</a></html>\n",
        env!("CARGO_PKG_VERSION"),
        listening
            .routers
            .iter()
            .map(|router| router.connections())
            .sum::<usize>(),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
