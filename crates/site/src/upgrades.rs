//! WebSocket connections forwarded to another server. The client's opening handshake is forwarded with its key and
//! offers, and so is the server's answer. Afterwards bytes are relayed unchanged: client and server have negotiated
//! subprotocols, compression and pings among themselves.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crosstie_front::http_client::connector;
use crosstie_realms::probes::WEBSOCKET_STATUS;
use crosstie_transport::{Connection, ConnectionStream};
use crosstie_web::forward::remove_hop_by_hop;
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service as _;

use super::exchange::Takeover;
use super::held::Held;
use super::passage::Passing;
use super::places::PASSING_BYTES;
use super::{Body, answer};
use crate::request_counts::{Counted, Outcome, RequestCounts};

/// Maximum time that one side continues after the other has ended.
const LAST_WORDS_MAX: Duration = Duration::from_secs(10);

/// A WebSocket server.
pub(super) struct Upgrades {
    connector: HttpsConnector<HttpConnector>,
    /// The server's URL, with an HTTP scheme.
    url: Uri,
    places: Arc<Semaphore>,
    timeout: Duration,
    counts: Arc<RequestCounts>,
}

/// A client's handshake, in the form for the server.
pub(super) struct Opening<'a> {
    pub(super) headers: HeaderMap,
    /// Path and query.
    pub(super) target: &'a str,
    pub(super) connection: &'a Arc<Connection>,
    pub(super) takeover: Option<Takeover>,
}

impl Upgrades {
    pub(super) fn new(
        url: Uri,
        (ca_certificates, server_name): (&[PathBuf], Option<&str>),
        connections_max: usize,
        timeout: Duration,
        counts: Arc<RequestCounts>,
    ) -> io::Result<Self> {
        Ok(Self {
            connector: connector(ca_certificates, server_name)?,
            url,
            places: Arc::new(Semaphore::new(connections_max)),
            timeout,
            counts,
        })
    }

    pub(super) fn begin(&self) -> Counted {
        self.counts.begin()
    }

    /// Opens a WebSocket at the server, then relays its bytes.
    pub(super) async fn pass_on(&self, opening: Opening<'_>, counted: Counted) -> Response<Body> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            counted.end(Outcome::Full);
            let text =
                "the maximum number of connections is being forwarded: try again in a moment";
            return answer::text(StatusCode::SERVICE_UNAVAILABLE, text);
        };
        let Opening {
            mut headers,
            target,
            connection,
            takeover,
        } = opening;
        ask_for_upgrade(&mut headers);
        let Ok(mut request) = Request::get(target).body(Empty::new()) else {
            counted.end(Outcome::Refused);
            return answer::text(StatusCode::BAD_REQUEST, "this request cannot be forwarded");
        };
        *request.headers_mut() = headers;
        match tokio::time::timeout(self.timeout, self.ask(request)).await {
            Ok(Ok(answered)) => {
                let held = Held::of(connection, PASSING_BYTES);
                self.answered(takeover, answered, (place, held), counted)
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
            let text = "the server behind this one switched to another protocol";
            return answer::text(StatusCode::BAD_GATEWAY, text);
        }
        let mut head = Response::new(()).into_parts().0;
        head.status = answered.status();
        head.headers = answered.headers().clone();
        remove_hop_by_hop(&mut head.headers);
        if !is_open {
            counted.end(Outcome::Unexpected);
            // The client gets the backend's answer unchanged.
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
            // The connection was open until now.
            counted.end(Outcome::Answered);
            drop(place);
        });
        Response::from_parts(head, answer::full(""))
    }
}

/// Whether a request opens a WebSocket (RFC 6455 section 4.2.1), except for checks left to the server.
pub(super) fn is_handshake(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && names(headers, &UPGRADE, "websocket")
        && names(headers, &CONNECTION, "upgrade")
        && headers.contains_key(SEC_WEBSOCKET_KEY)
        && headers.contains_key(SEC_WEBSOCKET_VERSION)
}

/// Whether a comma-separated header contains a word.
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

/// The answer to a request at a WebSocket's path that opens none.
pub(super) fn no_upgrade(request: &Request<Incoming>, shows_status: bool) -> Response<Body> {
    let is_probe = !names(request.headers(), &UPGRADE, "websocket");
    match *request.method() {
        Method::GET | Method::HEAD if shows_status && is_probe => {
            answer::text(StatusCode::OK, WEBSOCKET_STATUS)
        }
        _ => upgrade_required(),
    }
}

fn upgrade_required() -> Response<Body> {
    let text = "expected an upgrade to WebSocket";
    let mut response = answer::text(StatusCode::UPGRADE_REQUIRED, text);
    let websocket = HeaderValue::from_static("websocket");
    response.headers_mut().insert(UPGRADE, websocket);
    response
}

/// Relays bytes in both directions until one side has ended.
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
        tracing::debug!("one side of a WebSocket has ended, the other did not in time");
    }
}

/// Relays bytes in one direction; reads on only once the receiver has taken them.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let copied = tokio::io::copy(&mut from, &mut to).await;
    if let Err(e) = copied {
        tracing::debug!("a WebSocket connection was lost: {e}");
    }
    let _ = to.shutdown().await;
}
