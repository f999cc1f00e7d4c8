//! The pages a router answers itself: health, metrics, status.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosstie_config::Page;
use crosstie_transport::ConnectionStream;
use crosstie_wamp::MessageType;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter as Count};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::amqp::{self, Alarm};
use crate::counters::{self, Counter, Direction};
use crate::hub::Hub;
use crate::listen::Listening;
use crate::realm::SharedRealm;

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
        () = listening.until_stopped() => return,
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
        path if listening.is_websocket(path) => {
            let text_of = "expected an upgrade to WebSocket\n".to_owned();
            let mut response = text(StatusCode::UPGRADE_REQUIRED, text_of);
            let websocket = hyper::header::HeaderValue::from_static("websocket");
            response.headers_mut().insert(UPGRADE, websocket);
            return response;
        }
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
    match page {
        Page::Health if listening.router.is_stopping() => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "shutting down\n".to_owned(),
        ),
        Page::Health => health(&listening.routers.lock()),
        Page::Metrics => typed(
            StatusCode::OK,
            OPENMETRICS,
            metrics(&listening.routers.lock()),
        ),
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

/// Full memory is no reason to take a node out of service: consumers are served, and make room.
fn health(routers: &[Arc<Hub>]) -> Response<Full<Bytes>> {
    let alarms = amqp::alarms(routers);
    let is_degraded = alarms
        .iter()
        .any(|(_, alarm)| matches!(alarm, Alarm::StoreFailing { .. }));
    let (status, mut body) = match is_degraded {
        true => (StatusCode::SERVICE_UNAVAILABLE, "degraded\n".to_owned()),
        false => (StatusCode::OK, "ok\n".to_owned()),
    };
    for (router, alarm) in alarms {
        let _ = writeln!(body, "AMQP of router '{router}': {alarm}");
    }
    text(status, body)
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

fn metrics(routers: &[Arc<Hub>]) -> String {
    let mut registry = Registry::with_prefix("crosstie");
    registry.register(
        "build",
        "What answers here",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    register_totals(&mut registry);
    register_realms(&mut registry, routers);
    register_testees(&mut registry, routers);
    amqp::register_metrics(&mut registry, routers);
    let mut gauge = |name: &str, help: &str, value: usize| {
        registry.register(name, help, ConstGauge::new(value as i64));
    };
    let connections = routers.iter().map(|router| router.connections()).sum();
    gauge("connections", "Open connections", connections);
    gauge(
        "queued_bytes",
        "Octets owed to receivers that do not read, shared ones counted for each",
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

fn register_totals(registry: &mut Registry) {
    type ByType = Family<[(&'static str, &'static str); 1], Count>;
    for (name, help, direction) in [
        (
            "messages_received",
            "WAMP messages received, by type",
            Direction::Received,
        ),
        (
            "messages_sent",
            "WAMP messages queued for sending, by type",
            Direction::Sent,
        ),
    ] {
        let family = ByType::default();
        for kind in MessageType::ALL {
            let count = counters::total_messages(direction, kind);
            if count > 0 {
                family.get_or_create(&[("type", kind.name())]).inc_by(count);
            }
        }
        registry.register(name, help, family);
    }
    for (counter, name, help) in Counter::ALL {
        registry.register(name, help, ConstCounter::new(counters::total(counter)));
    }
}

fn register_realms(registry: &mut Registry, routers: &[Arc<Hub>]) {
    // Routers are isolated from one another: two may have a realm of the same name.
    type ByRealm = Family<[(&'static str, String); 2], Gauge>;
    let (sessions, subscriptions) = (ByRealm::default(), ByRealm::default());
    let (registrations, calls) = (ByRealm::default(), ByRealm::default());
    for (router, realm) in realms(routers) {
        let counts = realm.counts();
        let labels = [
            ("worker", router.id.clone()),
            ("realm", realm.name().to_owned()),
        ];
        let set = |family: &ByRealm, value: usize| {
            family.get_or_create(&labels).set(value as i64);
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

fn register_testees(registry: &mut Registry, routers: &[Arc<Hub>]) {
    type Labels = [(&'static str, String); 2];
    let connections: Family<Labels, Gauge> = Family::default();
    let counted: [(&str, &str, Family<Labels, Count>); 5] = [
        ("handshakes", "Opening handshakes that testees completed"),
        ("messages", "Messages that testees echoed"),
        ("bytes", "Octets that testees echoed"),
        ("received_bytes", "Octets that testees received"),
        ("sent_bytes", "Octets that testees sent"),
    ]
    .map(|(name, help)| (name, help, Family::default()));
    for router in routers {
        for testee in &*router.testees() {
            let labels = [
                ("worker", router.id.clone()),
                ("transport", testee.id.clone()),
            ];
            let open = testee.connections() as i64;
            connections.get_or_create(&labels).set(open);
            let totals = testee.statistics.totals();
            let totals = [
                totals.handshakes,
                totals.messages,
                totals.octets,
                totals.wire_in,
                totals.wire_out,
            ];
            for ((_, _, family), total) in counted.iter().zip(totals) {
                family.get_or_create(&labels).inc_by(total);
            }
        }
    }
    registry.register("testee_connections", "Connections of testees", connections);
    for (name, help, family) in counted {
        registry.register(format!("testee_{name}"), help, family);
    }
}

fn realms(routers: &[Arc<Hub>]) -> impl Iterator<Item = (&Hub, Arc<SharedRealm>)> {
    let of_router = |router: &Hub| router.realms().into_iter();
    routers
        .iter()
        .flat_map(move |router| of_router(router).map(move |realm| (&**router, realm)))
}

fn status(listening: &Listening) -> String {
    let mut rows = String::new();
    let routers = listening.routers.lock();
    for (router, realm) in realms(&routers) {
        let counts = realm.counts();
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            escaped(&router.id),
            escaped(realm.name()),
            counts.sessions,
            counts.subscriptions,
            counts.registrations,
            counts.calls
        );
    }
    let brokers = amqp_status(&routers);
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Crosstie</title>\
         <style>body{{font:16px/1.5 system-ui;margin:3em auto;max-width:44em;padding:0 1em}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em 1em .2em 0;text-align:left}}</style>\
         <h1>Crosstie {}</h1><p>{} open connections, that of this page included.\
         <h2>WAMP</h2><table><tr><th>router<th>realm<th>sessions<th>subscriptions<th>registrations<th>open calls{rows}</table>{brokers}\
         <p><a href=/health>health</a> · <a href=/metrics>metrics</a></html>\n",
        env!("CARGO_PKG_VERSION"),
        routers
            .iter()
            .map(|router| router.connections())
            .sum::<usize>(),
    )
}

/// The vhosts of the routers that speak AMQP, and what is wrong there.
fn amqp_status(routers: &[Arc<Hub>]) -> String {
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
    if rows.is_empty() {
        return rows;
    }
    let mut alarms = String::new();
    for (router, alarm) in amqp::alarms(routers) {
        let (router, alarm) = (escaped(router), escaped(&alarm.to_string()));
        let _ = write!(alarms, "<p><strong>Router '{router}': {alarm}</strong>");
    }
    format!(
        "<h2>AMQP</h2>{alarms}<table><tr><th>router<th>vhost<th>connections<th>queues<th>consumers\
         <th>ready<th>unacknowledged{rows}</table>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
