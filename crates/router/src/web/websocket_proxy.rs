//! WebSocket connections that another server has.
//!
//! The client's opening handshake is passed on, with its key and what it offers, and so is the server's answer. From
//! then on bytes pass as they are: subprotocols, compression and pings are what the two have agreed on.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crosstie_config::{WebSocketOptions, WebSocketReverseProxy as Model};
use crosstie_transport::{ConnectionStream, PeerAddress};
use crosstie_web::forward::{Client, forward, remove_hop_by_hop};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service as _;

use super::upgrades::{Opening, Upgrades, is_handshake, no_upgrade};
use super::{Answering, Asked, Body, Service, answer};
use crate::origins::origin_may_connect;
use crate::outgoing::connector;
use crate::request_counts::{Counted, Outcome, RequestCounts};
use crate::router_state::RouterState;

/// How long one side may go on when the other has ended.
const LAST_WORDS_MAX: Duration = Duration::from_secs(10);

/// A service that passes WebSocket connections on.
pub(crate) struct WebSocketProxy {
    connector: HttpsConnector<HttpConnector>,
    /// The server, as a URL of HTTP.
    url: Uri,
    host: HeaderValue,
    /// Whose pages may connect.
    options: WebSocketOptions,
    places: Arc<Semaphore>,
    timeout: Duration,
    counts: Arc<RequestCounts>,
}

impl WebSocketProxy {
    pub(crate) fn new(model: &Model, directory: &Path, router: &RouterState) -> io::Result<Self> {
        // `ws` is to `wss` as `http` is to `https`.
        let url = model.url.replacen("ws", "http", 1);
        let url: Uri = url.parse().map_err(io::Error::other)?;
        let authority = url.authority().map(ToString::to_string).unwrap_or_default();
        let files = model.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        Ok(Self {
            connector: connector(&files, model.server_name.as_deref())?,
            url,
            counts: router.counts_of("websocket-reverseproxy", &authority),
            host: HeaderValue::try_from(authority).map_err(io::Error::other)?,
            options: model.frontend.options.clone(),
            places: Arc::new(Semaphore::new(model.connections_max)),
            timeout: model.timeout,
        })
    }

    async fn pass(&self, asked: Asked) -> Response<Body> {
        let counted = self.counts.begin();
        if !is_handshake(&asked.request) {
            counted.end(Outcome::Refused);
            return upgrade_required();
        }
        let origin = asked.request.headers().get(ORIGIN);
        let origin = origin.map(|origin| origin.to_str().unwrap_or("(no text)"));
        if let Err(reason) = origin_may_connect(origin, &self.options) {
            counted.end(Outcome::Refused);
            return answer::text(StatusCode::FORBIDDEN, reason);
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            counted.end(Outcome::Full);
            let text = "as many connections are passed on as may be: come again in a moment";
            return answer::text(StatusCode::SERVICE_UNAVAILABLE, text);
        };
        let Some(request) = self.outgoing(&asked) else {
            counted.end(Outcome::Refused);
            return answer::text(StatusCode::BAD_REQUEST, "this cannot be passed on");
        };
        match tokio::time::timeout(self.timeout, self.ask(request)).await {
            Ok(Ok(answered)) => {
                let held = Held::of(&asked.connection, PASSING_BYTES);
                self.answered(asked.takeover, answered, (place, held), counted)
            }
            Ok(Err(why)) => {
                counted.end(Outcome::Unavailable);
                tracing::warn!("no WebSocket at {}: {why}", self.url);
                let text = "the server behind this one does not answer";
                answer::text(StatusCode::BAD_GATEWAY, text)
            }
            Err(_) => {
                counted.end(Outcome::TimedOut);
                let text = "the server behind this one did not answer in time";
                answer::text(StatusCode::GATEWAY_TIMEOUT, text)
            }
        }
    }

    /// The client's handshake, as the server sees it.
    fn outgoing(&self, asked: &Asked) -> Option<Request<Empty<Bytes>>> {
        let mut headers = asked.request.headers().clone();
        let (_, port) = asked.server();
        let client = Client {
            address: match asked.connection.peer() {
                PeerAddress::Tcp(address) => Some(address.ip()),
                PeerAddress::Unix(_) => None,
            },
            port,
            proto: if asked.is_secure() { "https" } else { "http" },
        };
        forward(&mut headers, &self.host, client);
        ask_for_upgrade(&mut headers);
        let target = self.url.path_and_query()?.as_str();
        let mut request = Request::get(target).body(Empty::new()).ok()?;
        *request.headers_mut() = headers;
        Some(request)
    }

    async fn ask(&self, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, String> {
        debug_assert!(request.headers().contains_key(HOST));
        let mut connector = self.connector.clone();
        let stream = connector.call(self.url.clone()).await;
        let stream = stream.map_err(|e| e.to_string())?;
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection.with_upgrades());
        sender
            .send_request(request)
            .await
            .map_err(|e| e.to_string())
    }

    fn answered(
        &self,
        takeover: Option<Takeover>,
        answered: Response<Incoming>,
        place: (OwnedSemaphorePermit, Held),
        counted: Counted,
    ) -> Response<Body> {
        let is_open = answered.status() == StatusCode::SWITCHING_PROTOCOLS;
        if is_open && !names(answered.headers(), &UPGRADE, "websocket") {
            counted.end(Outcome::Unavailable);
            let text = "the server behind this one speaks something else";
            return answer::text(StatusCode::BAD_GATEWAY, text);
        }
        let mut head = Response::new(()).into_parts().0;
        head.status = answered.status();
        head.headers = answered.headers().clone();
        remove_hop_by_hop(&mut head.headers);
        if !is_open {
            counted.end(Outcome::Unexpected);
            // What it says instead is the client's to read.
            let body = Passing::body(answered.into_body(), place, Some(self.timeout));
            return Response::from_parts(head, body);
        }
        ask_for_upgrade(&mut head.headers);
        let Some(takeover) = takeover else {
            counted.end(Outcome::Refused);
            return upgrade_required();
        };
        let server = hyper::upgrade::on(answered);
        takeover.leave_to(|client| async move {
            relay(client, server).await;
            // It was open until now.
            counted.end(Outcome::Answered);
            drop(place);
        });
        Response::from_parts(head, answer::full(""))
    }
}

impl Service for WebSocketProxy {
    fn takes_websockets(&self) -> bool {
        true
    }

    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.pass(asked))
    }
}

/// Whether a request opens a WebSocket (RFC 6455 section 4.2.1), as far as the server does not look itself.
fn is_handshake(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && names(headers, &UPGRADE, "websocket")
        && names(headers, &CONNECTION, "upgrade")
        && headers.contains_key(SEC_WEBSOCKET_KEY)
        && headers.contains_key(SEC_WEBSOCKET_VERSION)
}

/// Whether a list of words has one.
fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter();
    let mut words = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words.any(|one| one.trim().eq_ignore_ascii_case(word))
}

fn ask_for_upgrade(headers: &mut HeaderMap) {
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
}

fn upgrade_required() -> Response<Body> {
    let text = "expected an upgrade to WebSocket";
    let mut response = answer::text(StatusCode::UPGRADE_REQUIRED, text);
    let websocket = HeaderValue::from_static("websocket");
    response.headers_mut().insert(UPGRADE, websocket);
    response
}

/// Passes bytes both ways until one side has ended.
async fn relay(client: ConnectionStream, server: OnUpgrade) {
    let server: Upgraded = match server.await {
        Ok(server) => server,
        Err(e) => return tracing::debug!("a WebSocket was not opened: {e}"),
    };
    let (client_read, client_write) = tokio::io::split(client);
    let (server_read, server_write) = tokio::io::split(TokioIo::new(server));
    let mut up = std::pin::pin!(pass(client_read, server_write));
    let mut down = std::pin::pin!(pass(server_read, client_write));
    let rest = tokio::select! {
        () = &mut up => tokio::time::timeout(LAST_WORDS_MAX, down).await,
        () = &mut down => tokio::time::timeout(LAST_WORDS_MAX, up).await,
    };
    if rest.is_err() {
        tracing::debug!("one side of a WebSocket had ended, and the other did not");
    }
}

/// One way: what comes is waited for until it is taken.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let copied = tokio::io::copy(&mut from, &mut to).await;
    if let Err(e) = copied {
        tracing::debug!("a WebSocket broke off: {e}");
    }
    let _ = to.shutdown().await;
}
