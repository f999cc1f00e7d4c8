//! WAMP over HTTP long-poll: an ordinary session of its realm, whose client communicates in requests.
//!
//! ```text
//! POST open     ─▶ Transport: a mailbox for the realm's messages, a Talk for the client's
//! POST send     ─▶ Talk::handle ─▶ Session ─▶ realm          one at a time, in order of arrival
//! POST receive  ◀─ Transport::next ◀─ mailbox ◀─ realm       or empty, after a timeout
//! POST close    ─▶ Transport::end
//! ```
//!
//! Events that end a session on a stream end it here, too; and so does silence, as a client without a connection cannot
//! be seen to leave. An ended transport is remembered for a while: its client gets 410, and may still close it.

mod cross_origin;
mod delivery;
mod input;
mod table;
mod talk;
mod transport;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crosstie_config as model;
use crosstie_front::admission::Admitted;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::listen::Listening;
use crosstie_front::origins::{may_use_cookies, page_may_ask};
use crosstie_front::report;
use crosstie_realms::entrance::Entrance;
use crosstie_realms::live_methods::LiveMethods;
use crosstie_realms::realms::Realms;
use crosstie_transport::{ConnectionLimits, PeerAddress};
use crosstie_web::longpoll::{Operation, Protocol, TransportId};
use hyper::header::{ALLOW, CONTENT_ENCODING, HOST, HeaderValue, ORIGIN};
use hyper::{Method, Response, StatusCode};

use crate::{Answering, Asked, Body, Service, answer, body};

use cross_origin::CrossOrigin;
use table::{Found, Table};
use transport::Transport;

/// One service, with its transports.
pub(crate) struct LongPoll {
    shared: Arc<Shared>,
}

/// The state shared by all transports of a service.
struct Shared {
    options: model::LongPoll,
    auth: Arc<LiveMethods>,
    limits: Arc<ConnectionLimits>,
    table: Table,
}

/// The client that opens a transport.
struct Peer {
    address: PeerAddress,
    /// In DER.
    certificate: Option<Vec<u8>>,
}

/// The requested operation, and its transport.
enum Judged {
    Open,
    Send(Arc<Transport>),
    Receive(Arc<Transport>),
    Close(Arc<Transport>),
    /// No operation; only this answer.
    Answered(Box<Response<Body>>),
}

/// Maximum size of a request to open a transport.
const OPEN_BYTES_MAX: usize = 4096;
/// Clients' time to fetch their waiting messages, after a stopping listener no longer waits for open calls.
const STOPPING_MAX: Duration = Duration::from_secs(2);

impl LongPoll {
    pub(crate) fn new(
        options: &model::LongPoll,
        realms: &Arc<Realms>,
        directory: &Path,
    ) -> io::Result<Self> {
        let auth = &options.session.auth;
        let auth = LiveMethods::start(auth, directory, &realms.door, realms.revoking())?;
        let limits = &realms.bounds.limits;
        let limits = Arc::new(ConnectionLimits {
            queue_bytes_max: options.queue_bytes_max.min(limits.queue_bytes_max),
            account: Arc::clone(&limits.account),
            ..**limits
        });
        Ok(Self {
            shared: Arc::new(Shared {
                options: options.clone(),
                auth,
                limits,
                table: Table::default(),
            }),
        })
    }

    async fn answer_judged(&self, asked: Asked, judged: Judged) -> Response<Body> {
        match judged {
            Judged::Open => self.open(asked).await,
            Judged::Send(transport) => transport.send(asked.request).await,
            Judged::Receive(transport) => self.receive(transport).await,
            Judged::Close(transport) => {
                transport.end().await;
                answer::empty(StatusCode::NO_CONTENT)
            }
            Judged::Answered(answer) => {
                input::drain(asked.request.into_body()).await;
                *answer
            }
        }
    }

    async fn receive(&self, transport: Arc<Transport>) -> Response<Body> {
        let within = self.shared.options.request_timeout;
        transport.receive(within).await
    }

    /// Checks the request and its origin.
    fn judge(&self, asked: &Asked) -> Judged {
        let origin = header(asked, ORIGIN);
        if let Err(reason) = page_may_ask(origin, &asked.entrance.allowed_hosts) {
            counters().count(Counter::PeerFaults);
            return answer::text(StatusCode::FORBIDDEN, reason).into();
        }
        let Some(operation) = Operation::of(&asked.rest) else {
            return answer_other(asked).into();
        };
        match *asked.request.method() {
            Method::POST => {}
            Method::OPTIONS => return answer::empty(StatusCode::NO_CONTENT).into(),
            _ => return only_post().into(),
        }
        if header(asked, CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            let text = "expected a body that is not compressed";
            return answer::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into();
        }
        let (id, of): (_, fn(Arc<Transport>) -> Judged) = match operation {
            Operation::Open => return Judged::Open,
            Operation::Send(id) => (id, Judged::Send),
            Operation::Receive(id) => (id, Judged::Receive),
            Operation::Close(id) => (id, Judged::Close),
        };
        match (self.shared.table.find(id), operation) {
            (Found::Open(transport), _) => of(transport),
            // A client that learned of the end may still close the transport.
            (Found::Ended, Operation::Close(_)) => answer::empty(StatusCode::NO_CONTENT).into(),
            (found, _) => found.answer().into(),
        }
    }

    async fn open(&self, asked: Asked) -> Response<Body> {
        let entrance = Arc::clone(&asked.entrance);
        let listening = &entrance.listening;
        let peer = Peer::of(&asked);
        let connection = asked.connection;
        let within = listening.handshake_timeout;
        let body = body::collect(asked.request.into_body(), OPEN_BYTES_MAX, within).await;
        let body = match body {
            Ok(body) => body,
            Err(e) => return answer::text(e.status(), e.to_string()),
        };
        let spoken = &self.shared.options.session.serializers;
        let protocol = match Protocol::negotiate(&body, spoken) {
            Ok(protocol) => protocol,
            Err(e) => {
                report::peer_fault(&connection, "handshake", &e.to_string());
                return answer::text(StatusCode::BAD_REQUEST, e.to_string());
            }
        };
        if listening.is_stopping() {
            return answer::text(StatusCode::SERVICE_UNAVAILABLE, "shutting down");
        }
        let admitted = Admitted::admit_peer(listening, peer.address);
        if let Some(excess) = admitted.excess {
            let refused = report::Refused::new(excess.reason(), excess.text());
            report::session_refused(&connection, &refused);
            counters().count(Counter::ConnectionsRefused);
            return answer::text(StatusCode::SERVICE_UNAVAILABLE, excess.text());
        }
        match self.opened(&entrance, admitted, protocol, peer) {
            Some(said) => answer::typed(StatusCode::OK, "application/json; charset=utf-8", said),
            None => {
                let text = "the system has no randomness";
                answer::text(StatusCode::SERVICE_UNAVAILABLE, text)
            }
        }
    }

    /// Opens a transport. Returns the answer for its client.
    fn opened(
        &self,
        entrance: &Arc<Entrance>,
        admitted: Admitted,
        protocol: Protocol,
        peer: Peer,
    ) -> Option<String> {
        let mut chance = [0; 16];
        getrandom::fill(&mut chance).ok()?;
        let id = TransportId(u128::from_be_bytes(chance));
        counters().count(Counter::ConnectionsOpened);
        let listening = Arc::clone(&admitted.listening);
        let transport = Transport::open(&self.shared, entrance, admitted, protocol, peer);
        self.shared.table.add(id, Arc::clone(&transport));
        let shared = Arc::clone(&self.shared);
        tokio::spawn(look_after(shared, id, transport, listening));
        Some(protocol.opened(id))
    }
}

impl Service for LongPoll {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        let page = CrossOrigin::of(&asked.request);
        let judged = self.judge(&asked);
        if let Judged::Receive(transport) = judged {
            // A long wait must not hold its request in memory.
            drop(asked);
            return Box::pin(async move {
                let mut response = self.receive(transport).await;
                page.permit(response.headers_mut());
                response
            });
        }
        Box::pin(async move {
            let mut response = self.answer_judged(asked, judged).await;
            page.permit(response.headers_mut());
            response
        })
    }
}

impl From<Response<Body>> for Judged {
    fn from(answer: Response<Body>) -> Self {
        Self::Answered(Box::new(answer))
    }
}

/// Waits for the end of a transport, by close or by a stop of its listener, and removes it.
async fn look_after(
    shared: Arc<Shared>,
    id: TransportId,
    transport: Arc<Transport>,
    listening: Arc<Listening>,
) {
    tokio::select! {
        () = transport.connection.ended() => {}
        () = listening.until_stopped() => {
            let within = listening.bounds.shutdown_timeout + STOPPING_MAX;
            let goodbye = Box::pin(tokio::time::sleep(within));
            tokio::select! {
                () = transport.connection.ended() => {}
                () = goodbye => {}
            }
        }
    }
    transport.end().await;
    shared.table.end(id);
}

impl Peer {
    fn of(asked: &Asked) -> Self {
        let entrance = &asked.entrance;
        let host = header(asked, HOST).or_else(|| asked.request.uri().host());
        let (origin, host) = (header(asked, ORIGIN), host.unwrap_or_default());
        // Credentials that a browser presents for any page do not identify its user.
        let is_own = may_use_cookies(origin, host, &entrance.allowed_hosts);
        Self {
            address: asked.connection.peer(),
            certificate: asked.connection.peer_certificate().filter(|_| is_own),
        }
    }
}

fn header(asked: &Asked, name: hyper::header::HeaderName) -> Option<&str> {
    let value = asked.request.headers().get(name)?;
    Some(value.to_str().unwrap_or("(no text)"))
}

/// The answer at other paths, which explains the service to a person.
fn answer_other(asked: &Asked) -> Response<Body> {
    let is_base = matches!(&asked.rest[..], [] | [_]) && asked.rest.iter().all(String::is_empty);
    if is_base && matches!(*asked.request.method(), Method::GET | Method::HEAD) {
        let text = "WAMP is spoken here, in HTTP requests: a client opens a transport with a POST to \"open\".";
        return answer::page(StatusCode::OK, "WAMP over HTTP long-poll", text);
    }
    Found::Never.answer()
}

fn only_post() -> Response<Body> {
    let mut response = answer::text(StatusCode::METHOD_NOT_ALLOWED, "expected POST");
    let allowed = HeaderValue::from_static("POST, OPTIONS");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

fn empty(protocol: Protocol) -> Response<Body> {
    answer::typed(StatusCode::OK, protocol.content_type(), "")
}
