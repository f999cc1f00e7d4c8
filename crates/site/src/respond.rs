//! One request: access checks, the service at its path, and the access log.

use std::sync::Arc;

use crosstie_front::counters::{Counter, counters};
use crosstie_front::origins::host_may_enter;
use crosstie_front::report;
use crosstie_realms::entrance::Entrance;
use crosstie_transport::Connection;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, ORIGIN, STRICT_TRANSPORT_SECURITY, USER_AGENT};
use hyper::{Request, Response, StatusCode, Version};

use super::exchange::Takeover;
use super::held::Held;
use super::{Answering, Asked, Body, Site, answer, pages, ready};

/// Answers a request. Boxed, like the log line, as a long wait should not reserve memory for either.
pub(super) async fn respond(
    site: Arc<Site>,
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    request: Box<Request<Incoming>>,
    takeover: Option<Takeover>,
) -> Response<Body> {
    let line = site
        .options
        .access_log
        .then(|| Box::new(Line::of(&connection, &request)));
    let is_secure = entrance.listening.tls.is_some();
    let _head = Held::of(&connection, head_bytes(&request));
    let mut response = answering(&site, entrance, connection, *request, takeover).await;
    if let (Some(age), true) = (site.options.hsts_max_age, is_secure) {
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

/// The size of a request's head.
fn head_bytes(request: &Request<Incoming>) -> isize {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    (target + headers.sum::<usize>()) as isize
}

/// Calls the service at the request's path.
fn answering(
    site: &Site,
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
    takeover: Option<Takeover>,
) -> Answering<'_> {
    if !site.has_services() || site.pages.has(request.uri().path()) {
        let page = pages::respond(&site.pages, &entrance, &connection, &request);
        return ready(page.map(|page| page.map_err(|never| match never {}).boxed_unsync()));
    }
    if let Err(reason) = may_enter(&entrance, &request) {
        report::peer_fault(&connection, "http", &reason);
        return ready(answer::text(StatusCode::FORBIDDEN, reason));
    }
    if let Some(whole) = &site.whole {
        return whole.answer(Asked {
            request,
            entrance,
            connection,
            takeover,
            base: String::new(),
            rest: Vec::new(),
        });
    }
    let mut components = match crosstie_web::path::components(request.uri().path()) {
        Ok(components) => components,
        Err(e) => {
            counters().count(Counter::PeerFaults);
            return ready(answer::text(StatusCode::BAD_REQUEST, e.to_string()));
        }
    };
    let Some(found) = site.find(&components) else {
        return ready(answer::not_found());
    };
    let rest = components.split_off(found.depth);
    let mut base = String::new();
    for component in components {
        base.push('/');
        base.push_str(&component);
    }
    found.service.answer(Asked {
        request,
        entrance,
        connection,
        takeover,
        base,
        rest,
    })
}

/// Every host name in a request must be one of the listener's: otherwise a page whose own name resolves to this machine
/// could use it (DNS rebinding). An HTTP/1.1 request has exactly one Host (RFC 9112 section 3.2).
fn may_enter(entrance: &Entrance, request: &Request<Incoming>) -> Result<(), String> {
    let mut said = 0;
    if let Some(authority) = request.uri().authority() {
        said += usize::from(request.version() == Version::HTTP_2);
        host_may_enter(Some(authority.as_str()), &entrance.allowed_hosts)?;
    }
    for host in request.headers().get_all(HOST) {
        said += 1;
        let host = host.to_str().unwrap_or("(not a name)");
        host_may_enter(Some(host), &entrance.allowed_hosts)?;
    }
    match (request.version(), said) {
        (Version::HTTP_11, 0) => Err("expected a Host header, as HTTP/1.1 requires".to_owned()),
        (Version::HTTP_11, 2..) => Err("expected exactly one Host".to_owned()),
        _ => Ok(()),
    }
}

/// The access log line of a request.
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
