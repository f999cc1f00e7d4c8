//! One service: its requests, from head to answer.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use crosstie_config::{HttpBridge, Webhook};
use crosstie_front::counters::{Counter, counters};
use crosstie_realms::realms::Realms;
use crosstie_realms::resident::{Manner, Place};
use crosstie_routing::Identity;
use crosstie_transport::{Connection, PeerAddress};
use crosstie_wamp::Serializer;
use crosstie_web::bridge::replay::{Taken, Verdict};
use crosstie_web::bridge::{self, Purpose, Refusal, Rules, answer, cors};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response, StatusCode};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::effect::{self, Kind, Said};
use crate::answer::full;
use crate::body::{self, NoBody};
use crate::request_counts::{Outcome, RequestCounts};
use crate::services::Grounds;
use crate::{Answering, Asked, Body, Service};

/// Calls, publications or events of one topic, over HTTP.
pub(crate) struct Bridge {
    kind: Kind,
    rules: Rules,
    /// Accepted signed requests, each of which is accepted only once.
    taken: Option<Mutex<Taken>>,
    realms: Arc<Realms>,
    realm: String,
    identity: Identity,
    counts: Arc<RequestCounts>,
    /// Created by the first request, on whose thread the realm's answers are read.
    place: OnceLock<Place>,
}

/// Maximum size of a call's result.
const ANSWER_BYTES_MAX: usize = 1 << 24;

/// Bytes of a request that are held until it is answered.
struct Held<'c> {
    connection: &'c Arc<Connection>,
    bytes: isize,
}

impl<'c> Held<'c> {
    fn new(connection: &'c Arc<Connection>, bytes: usize) -> Self {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        connection.hold(bytes);
        Self { connection, bytes }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.connection.hold(-self.bytes);
    }
}

impl Bridge {
    pub(crate) fn caller(model: &HttpBridge, grounds: &Grounds) -> Self {
        Self::new(
            model,
            grounds,
            Kind::Caller,
            Purpose::Call,
            "crosstie.caller",
        )
    }

    pub(crate) fn publisher(model: &HttpBridge, grounds: &Grounds) -> Self {
        let authid = "crosstie.publisher";
        Self::new(
            model,
            grounds,
            Kind::Publisher,
            Purpose::Publication,
            authid,
        )
    }

    pub(crate) fn webhook(model: &Webhook, grounds: &Grounds) -> Self {
        let kind = Kind::Webhook {
            topic: model.topic.clone(),
            success_response: model.success_response.clone().into(),
            error_response: model.error_response.clone().into(),
        };
        let authid = "crosstie.webhook";
        let mut bridge = Self::new(&model.bridge, grounds, kind, Purpose::Hook, authid);
        bridge.rules.github_secret.clone_from(&model.github_secret);
        bridge
    }

    fn new(
        model: &HttpBridge,
        grounds: &Grounds,
        kind: Kind,
        purpose: Purpose,
        authid: &str,
    ) -> Self {
        let options = &model.options;
        let key = options.signature.as_ref();
        let delta = options.timestamp_delta_max.unwrap_or_default();
        let taken = || Mutex::new(Taken::new(delta, options.replays_max));
        let kind_name = kind.name();
        Self {
            kind,
            rules: Rules {
                purpose,
                key: key.map(|key| (key.key.clone(), key.secret.clone())),
                require_tls: options.require_tls,
                require_ip: options.require_ip.clone(),
                body_bytes_max: options.body_bytes_max,
                timestamp_delta_max: options.timestamp_delta_max,
                github_secret: None,
            },
            taken: options.refuse_replay.then(taken),
            realms: Arc::clone(&grounds.realms),
            realm: model.realm.clone(),
            counts: grounds.requests.of(kind_name, &model.realm),
            identity: Identity::new(authid, model.role.as_str(), "internal", "static"),
            place: OnceLock::new(),
        }
    }

    fn place(&self) -> &Place {
        self.place.get_or_init(|| {
            let manner = Manner {
                identity: self.identity.clone(),
                is_shown: true,
                serializer: Serializer::Json,
                message_bytes_max: ANSWER_BYTES_MAX,
                is_judged: true,
                runtime: Handle::current(),
            };
            let rooms = Arc::clone(&self.realms);
            Place::new(rooms, &self.realm, manner)
        })
    }

    async fn respond(&self, asked: Asked) -> Response<Body> {
        let is_tls = asked.is_secure();
        let connection = &asked.connection;
        let (head, body) = asked.request.into_parts();
        let mut headers = cors::headers(&head.headers);
        let counted = self.counts.begin();
        let answered = match self.read(&head, body, connection, is_tls).await {
            Ok(Some(body)) => {
                let _held = Held::new(connection, body.len());
                let limits = &self.realms.decoding;
                effect::say(&self.kind, self.place(), limits, &head.headers, &body).await
            }
            Ok(None) => {
                cors::add_methods(&mut headers);
                Ok(Said::answered(StatusCode::OK, Bytes::new()))
            }
            Err(NotTaken::Refused(refusal)) => Err(refusal),
            Err(NotTaken::NoBody(status)) => Ok(Said {
                status,
                body: Bytes::new(),
                outcome: Outcome::Refused,
            }),
        };
        let said = answered.unwrap_or_else(|refusal| refused(connection, &refusal));
        counted.end(said.outcome);
        response(said, headers)
    }

    /// Reads a request; `None` as its body for a preflight request.
    async fn read(
        &self,
        head: &Parts,
        body: Incoming,
        connection: &Arc<Connection>,
        is_tls: bool,
    ) -> Result<Option<Bytes>, NotTaken> {
        let asked = bridge::Asked {
            method: &head.method,
            headers: &head.headers,
            query: head.uri.query().unwrap_or_default(),
            peer: address(connection),
            is_tls,
            now: now(),
        };
        if !self.rules.admit(&asked)? {
            return Ok(None);
        }
        let within = self.realms.bounds.limits.message_max;
        let body = body::collect(body, self.rules.body_bytes_max, within).await;
        let body = body.map_err(|e| match e {
            NoBody::TooLong { bytes } => self.rules.too_long(bytes).into(),
            other => NotTaken::NoBody(other.status()),
        })?;
        // Its transfer may have taken long; one time is used to judge and to remember it.
        let asked = bridge::Asked {
            now: now(),
            ..asked
        };
        let signature = self.rules.check(&asked, &body)?;
        if let (Some(taken), Some(signature)) = (&self.taken, signature) {
            let verdict = taken.lock().take(asked.now, &signature);
            match verdict {
                Verdict::New => {}
                Verdict::Again => return Err(Refusal::Replay.into()),
                Verdict::Full => return Err(Refusal::ReplaysFull.into()),
            }
        }
        Ok(Some(body))
    }
}

impl Service for Bridge {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.respond(asked))
    }
}

/// Why a request is rejected.
enum NotTaken {
    Refused(Refusal),
    NoBody(StatusCode),
}

impl From<Refusal> for NotTaken {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn refused(connection: &Connection, refusal: &Refusal) -> Said {
    counters().count(Counter::PeerFaults);
    tracing::debug!(peer = %connection.peer(), "request refused: {refusal}");
    Said {
        status: refusal.status(),
        body: answer::refusal(refusal).into(),
        outcome: Outcome::Refused,
    }
}

fn response(said: Said, headers: HeaderMap) -> Response<Body> {
    let mut response = Response::new(full(said.body));
    *response.status_mut() = said.status;
    *response.headers_mut() = headers;
    response
}

fn address(connection: &Connection) -> Option<IpAddr> {
    match connection.peer() {
        PeerAddress::Tcp(address) => Some(address.ip()),
        _ => None,
    }
}

/// Since 1970.
fn now() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}
