//! Web services: each HTTP request of a listener is answered by the service at its path.
//!
//! ```text
//! connection ──▶ Site::find(path) ──▶ Service::answer(Asked) ──▶ Response<Body>
//! ```
//!
//! hyper implements HTTP itself. Connections are served on separate threads with timers: neither a long answer nor the
//! decoding of a request delays WAMP messages. [`Asked`] has everything that a service needs to know of a request; a
//! service's fault affects only its own answer. An entrance to the realms knows its
//! services as [`Http`] alone: services need realms, sessions and listeners, and none of these needs them.

pub mod answer;
mod archive;
mod backend;
pub mod body;
mod bridge;
mod cgi;
mod connection;
mod console;
mod content;
mod exchange;
mod files;
mod fixed;
pub mod gzip;
mod held;
mod http1;
mod longpoll;
mod media_type;
mod node_info;
pub mod overview;
mod package;
pub mod pages;
mod passage;
mod places;
pub mod programs;
mod python;
mod rendered;
pub mod request_counts;
mod respond;
mod reverse_proxy;
pub mod services;
pub mod site;
mod upgrades;
mod websocket_proxy;

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use crosstie_front::admission::Excess;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::serve::HandedOver;
use crosstie_realms::entrance::Entrance;
use crosstie_realms::http::Http;
use crosstie_transport::Connection;
use crosstie_wamp::framing::websocket::closing_response;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};

pub use answer::Body;
use exchange::Takeover;
use pages::Pages;
use site::Site;

/// A service at a path.
pub trait Service: Send + Sync {
    /// Answers one request.
    fn answer(&self, asked: Asked) -> Answering<'_>;

    /// Whether the service itself answers requests for WebSockets, instead of the listener.
    fn takes_websockets(&self) -> bool {
        false
    }
}

/// An answer in progress.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// One request, with its connection and listener.
pub struct Asked {
    pub request: Request<Incoming>,
    pub entrance: Arc<Entrance>,
    pub connection: Arc<Connection>,
    /// For a successor that continues the connection in another protocol; `None` if that is impossible.
    takeover: Option<Takeover>,
    /// The service's path, such as `/files`; empty for the service at `/`.
    pub base: String,
    /// The decoded components of the path below it; the last is empty if the path ends with a slash.
    pub rest: Vec<String>,
}

impl Asked {
    /// Whether the request came over TLS.
    pub fn is_secure(&self) -> bool {
        self.entrance.listening.tls.is_some()
    }

    /// The requested host and port.
    pub fn server(&self) -> (&str, u16) {
        let authority = self.request.uri().authority().map(Authority::as_str);
        let host = self.request.headers().get(HOST);
        let host = authority.or_else(|| host.and_then(|host| host.to_str().ok()));
        let host = host.unwrap_or_default();
        let otherwise = if self.is_secure() { 443 } else { 80 };
        match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().unwrap_or(otherwise)),
            _ => (host, otherwise),
        }
    }

    /// For a read-only service: the refusal of other methods than GET and HEAD.
    pub(crate) fn refused_method(&self) -> Option<Response<Body>> {
        if matches!(*self.request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let mut response = answer::text(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD");
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        Some(response)
    }
}

/// An answer that is ready at once.
pub fn ready(response: Response<Body>) -> Answering<'static> {
    Box::pin(std::future::ready(response))
}

impl Http for Site {
    fn speaks_http2(&self) -> bool {
        self.has_services()
    }

    fn takes_websocket(&self, path: &str) -> bool {
        let components = crosstie_web::path::components(path).unwrap_or_default();
        let found = self.find(&components);
        found.is_some_and(|found| found.service.takes_websockets())
    }

    /// Web services require a connection within the limits; pages do not, so that operators can find out why a limit is
    /// reached.
    fn takes(&self, excess: Option<Excess>) -> bool {
        excess.is_none() || !self.has_services()
    }

    fn serve(self: Arc<Self>, entrance: Arc<Entrance>, handed: HandedOver<'_>) {
        let kept = Arc::clone(&handed.connection);
        let started = match self.has_services() {
            true => serve_services(self, entrance, handed),
            false => serve_pages(self, entrance, handed),
        };
        if let Err(e) = started {
            tracing::error!("cannot start a thread for HTTP: {e}");
            kept.close();
        }
    }
}

/// Serves a connection among those of all web services.
fn serve_services(
    site: Arc<Site>,
    entrance: Arc<Entrance>,
    handed: HandedOver<'_>,
) -> io::Result<()> {
    let HandedOver {
        admitted,
        connection,
        input,
        workers,
    } = handed;
    let serving = connection::serve(site, entrance, Arc::clone(&connection), input, true);
    workers.spawn_web(async move {
        serving.await;
        connection.finish_and_close();
        drop(admitted);
    })
}

/// Serves a connection that asks for pages alone, on the thread of pages: rendering takes time.
fn serve_pages(site: Arc<Site>, entrance: Arc<Entrance>, handed: HandedOver<'_>) -> io::Result<()> {
    let HandedOver {
        admitted,
        connection,
        input,
        workers,
    } = handed;
    let Some(place) = Pages::take_place(&site, &admitted) else {
        refuse_pages(&connection);
        return Ok(());
    };
    let may_stay = place.may_stay;
    let serving = connection::serve(site, entrance, Arc::clone(&connection), input, may_stay);
    let started = workers.spawn_pages(async move {
        serving.await;
        connection.close();
        drop((place, admitted));
    });
    started.map(drop)
}

/// Tells a peer that requests a page to retry.
fn refuse_pages(connection: &Arc<Connection>) {
    counters().count(Counter::PageConnectionsRefused);
    let text = "the maximum number of connections for pages is reached: try again in a moment";
    let response = closing_response(503, text, &[("Retry-After", "1")]);
    // A new connection has room; one that is gone needs no answer.
    let _ = connection.append(|out| {
        out.extend_from_slice(&response);
        Ok::<(), ()>(())
    });
    connection.finish();
    crosstie_transport::uncork();
    connection.close();
}
