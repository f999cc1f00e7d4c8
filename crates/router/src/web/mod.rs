//! Web services: a listener's HTTP requests, each answered by the service that its path leads to.
//!
//! ```text
//! connection ──▶ Site::find(path) ──▶ Service::answer(Asked) ──▶ Response<Body>
//! ```
//!
//! HTTP itself is hyper's. Connections are served on threads of their own, which have timers: neither a long
//! answer nor a request's decoding makes a WAMP message late. Whatever a service needs to know of a request is
//! in [`Asked`]; what it does wrong never reaches further than its own answer. A listener knows its services as
//! [`Http`](crate::listen::Http) alone, and `start.rs` is where the two meet: services need realms, sessions and
//! listeners, and none of these needs them.

pub(crate) mod answer;
mod archive;
mod backend;
pub(crate) mod body;
mod bridge;
mod cgi;
mod connection;
mod content;
mod exchange;
mod files;
mod fixed;
mod held;
mod http1;
mod longpoll;
mod media_type;
mod node_info;
mod package;
mod passing;
mod places;
mod python;
mod respond;
mod reverse_proxy;
pub(crate) mod services;
mod site;
mod upgrades;
mod websocket_proxy;

use std::pin::Pin;
use std::sync::Arc;

use crosstie_transport::Connection;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};

use crate::listen::{Http, Listening};

pub(crate) use answer::Body;
use exchange::Takeover;
use site::Site;

/// What is found at a path.
pub(crate) trait Service: Send + Sync {
    /// Answers one request.
    fn answer(&self, asked: Asked) -> Answering<'_>;

    /// Whether requests for WebSockets are its own to answer, which else the listener opens.
    fn takes_websockets(&self) -> bool {
        false
    }
}

/// An answer on its way.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// One request, and with whom it came.
pub(crate) struct Asked {
    pub(crate) request: Request<Incoming>,
    pub(crate) listening: Arc<Listening>,
    pub(crate) connection: Arc<Connection>,
    /// Who goes on with the connection in another protocol is told here; nothing where nobody can.
    takeover: Option<Takeover>,
    /// Where the service stands: `/files`; empty for the service at `/`.
    pub(crate) base: String,
    /// The components of the path below it, decoded; the last is empty where the path ends with a slash.
    pub(crate) rest: Vec<String>,
}

impl Asked {
    /// Whether it came over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.listening.tls.is_some()
    }

    /// The host and port that were asked for.
    pub(crate) fn server(&self) -> (&str, u16) {
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

    /// What a service that only shows something says to who wants anything else; `None` for who may see it.
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

/// An answer that is there at once.
pub(crate) fn ready(response: Response<Body>) -> Answering<'static> {
    Box::pin(std::future::ready(response))
}

impl Http for Site {
    fn takes_websocket(&self, path: &str) -> bool {
        let components = crosstie_web::path::components(path).unwrap_or_default();
        let found = self.find(&components);
        found.is_some_and(|found| found.service.takes_websockets())
    }

    fn serve(
        self: Arc<Self>,
        listening: Arc<Listening>,
        connection: Arc<Connection>,
        input: Vec<u8>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        connection::serve(self, listening, connection, input)
    }
}
