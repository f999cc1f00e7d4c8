//! RabbitMQ's management API on a transport: HTTP in, the API's answers out.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crosstie_broker::Operators;
use crosstie_config as model;
use crosstie_front::certificate::Certificate;
use crosstie_mgmt::{
    Answer, Api, Begun, Body, Cors, Head, Headers, Listener, NotTransferred, Rows, Surroundings,
    Transfer, Transferred,
};
use crosstie_realms::http::Http;
use crosstie_site::gzip::Gzip;
use crosstie_site::pages::Pages;
use crosstie_site::site::Site;
use crosstie_site::{Answering, Asked, Service, answer, body};
use crosstie_transport::Connection;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use crate::registry::Registry;
use crate::router::Router;
use crate::status_page::Told;

/// Maximum time for a body to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(60);

/// The API as a service.
struct Management {
    api: Arc<Api>,
    cors: Cors,
}

impl Router {
    /// Reads from the management API as its administrator; see [`Api::read`]. `done` gets the status and the body. `None`
    /// without AMQP.
    pub fn read_management(
        &self,
        target: String,
        first: usize,
        count_max: usize,
        done: impl FnOnce(u16, Vec<u8>) + Send + 'static,
    ) -> Option<()> {
        let api = self.api()?;
        let rows = Rows { first, count_max };
        self.workers.spawn_keeper(async move {
            let (status, body) = api.read(&target, rows).await;
            done(status, body);
        });
        Some(())
    }

    /// Sends a request of the operator with a body to the management API; see [`Api::operate`].
    pub fn operate_management(
        &self,
        method: String,
        target: String,
        body: Vec<u8>,
        done: impl FnOnce(u16, Vec<u8>) + Send + 'static,
    ) -> Option<()> {
        let api = self.api()?;
        self.workers.spawn_keeper(async move {
            let (status, body) = api.operate(&method, &target, &body).await;
            done(status, body);
        });
        Some(())
    }

    /// Moves messages of a queue to another one. `None` without AMQP.
    pub fn transfer_messages(
        &self,
        order: Transfer,
        done: impl FnOnce(Result<Transferred, NotTransferred>) + Send + 'static,
    ) -> Option<()> {
        let api = self.api()?;
        self.workers
            .spawn_keeper(async move { done(api.transfer(&order).await) });
        Some(())
    }

    /// The node's name in that API.
    pub fn management_name(&self) -> String {
        crosstie_mgmt::name_of(self.state.node())
    }

    fn api(&self) -> Option<Arc<Api>> {
        self.state.api(|| {
            let broker = self.state.amqp()?;
            let operators = Operators::new(broker, self.workers.keeper_handle());
            let around = Around(Arc::downgrade(&self.state));
            Some(Api::new(operators, Arc::new(around)))
        })
    }

    /// The HTTP server of a management transport.
    pub(crate) fn management_http(
        &self,
        options: &model::AmqpManagement,
    ) -> io::Result<Arc<dyn Http>> {
        let api = self.broker_api()?;
        let cors = match &options.cors {
            Some(cors) => Cors::new(cors.allow_origins.clone(), cors.max_age),
            None => Cors::default(),
        };
        Ok(self.site_of(Box::new(Management { api, cors })))
    }

    /// The API of the worker's broker, which all of these transports share.
    pub(crate) fn broker_api(&self) -> io::Result<Arc<Api>> {
        let no_broker = || io::Error::other("the worker's AMQP has not been started");
        self.api().ok_or_else(no_broker)
    }

    /// An HTTP server with that service at every path.
    pub(crate) fn site_of(&self, service: Box<dyn Service>) -> Arc<dyn Http> {
        let told = Told::new(&self.state, Vec::new());
        let pages = Pages::new(&[], told, self.state.page_connections_max);
        Arc::new(Site::of_service(service, pages))
    }
}

impl Service for Management {
    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(respond(self, asked))
    }
}

async fn respond(management: &Management, asked: Asked) -> Response<answer::Body> {
    let Management { api, cors } = management;
    let (parts, incoming) = asked.request.into_parts();
    let gzip = Gzip::of(&parts.method, &parts.headers, &asked.connection);
    let respond = |answer| response(answer, gzip.as_ref());
    let head = Head {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: headers(&parts.headers),
    };
    let admitted = match api.begin(head, cors, &asked.connection).await {
        Begun::Answered(answer) => return respond(answer),
        Begun::Admitted(admitted) => admitted,
    };
    let body = match body::collect(incoming, admitted.body_bytes_max(), BODY_WITHIN).await {
        Ok(body) => body,
        Err(body::NoBody::TooLong { .. }) => return respond(Answer::body_too_long()),
        Err(refused) => return answer::text(refused.status(), refused.to_string()),
    };
    let _held = Held::of(&asked.connection, body.len());
    respond(api.finish(admitted, cors, &asked.connection, &body).await)
}

/// Bytes of a body, on the account of its connection.
pub(crate) struct Held(Arc<Connection>, isize);

impl Held {
    pub(crate) fn of(connection: &Arc<Connection>, bytes: usize) -> Self {
        let bytes = bytes as isize;
        connection.hold(bytes);
        Self(Arc::clone(connection), bytes)
    }
}

impl Held {
    /// Changes the number of bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        let bytes = bytes as isize;
        if bytes != self.1 {
            self.0.hold(bytes - self.1);
            self.1 = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.hold(-self.1);
    }
}

pub(crate) fn headers(map: &HeaderMap) -> Headers {
    let text = |name: HeaderName| {
        let value = map.get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    Headers {
        accept: text(header::ACCEPT),
        authorization: text(header::AUTHORIZATION),
        content_type: text(header::CONTENT_TYPE),
        host: text(header::HOST),
        origin: text(header::ORIGIN),
        requested_headers: text(header::ACCESS_CONTROL_REQUEST_HEADERS),
        sec_fetch_site: text(HeaderName::from_static("sec-fetch-site")),
        reason: text(HeaderName::from_static("x-reason")),
    }
}

/// Makes the response, compressed if the client accepts that.
pub(crate) fn response(answer: Answer, gzip: Option<&Gzip>) -> Response<answer::Body> {
    let mut response = match (answer.body, gzip) {
        (Body::Whole(bytes), Some(gzip)) => gzip.whole(bytes),
        (Body::Parts(parts), Some(gzip)) => gzip.parts(parts),
        (Body::Whole(bytes), None) => Response::new(answer::full(bytes)),
        (Body::Parts(parts), None) => Response::new(answer::parts(parts)),
    };
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        // A value that no header may have is left out.
        if let Ok(value) = HeaderValue::try_from(value) {
            let name = HeaderName::from_static(name);
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The node around the broker.
struct Around(Weak<Registry>);

impl Surroundings for Around {
    fn listeners(&self) -> Vec<Listener> {
        let Some(router) = self.0.upgrade() else {
            return Vec::new();
        };
        let addresses = router.addresses.lock();
        let urls = addresses
            .iter()
            .flat_map(|(_, kind, urls)| urls.iter().map(move |url| (*kind, url)));
        urls.filter_map(|(kind, url)| listener(kind, url)).collect()
    }

    fn certificate_expires(&self) -> Option<(String, Duration)> {
        let router = self.0.upgrade()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let certificates = router.certificates();
        let ends = certificates
            .iter()
            .filter_map(|certificate: &Arc<Certificate>| {
                let expires_s = u64::try_from(certificate.status().expires_s?).unwrap_or(0);
                let left = Duration::from_secs(expires_s).saturating_sub(now);
                Some((certificate.id.clone(), left))
            });
        ends.min_by_key(|(_, left)| *left)
    }

    fn node(&self) -> String {
        let router = self.0.upgrade();
        router.map_or_else(String::new, |router| router.node().to_owned())
    }
}

/// The TCP listener of a URL, if it leads to the broker.
fn listener(kind: &str, url: &str) -> Option<Listener> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (address, port) = authority.rsplit_once(':')?;
    let protocol = match (kind, scheme) {
        ("amqp", "amqp") => "amqp",
        ("amqp", "amqps") => "amqp/ssl",
        ("amqp.management", "http") => "http",
        ("amqp.management", "https") => "https",
        ("amqp.prometheus", "http") => "http/prometheus",
        ("amqp.prometheus", "https") => "https/prometheus",
        _ => return None,
    };
    Some(Listener {
        protocol,
        address: address.trim_matches(['[', ']']).to_owned(),
        port: port.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_listeners() {
        let found = |kind, url| {
            let found = listener(kind, url)?;
            Some((found.protocol, found.address, found.port))
        };
        for (kind, url, expected) in [
            (
                "amqp",
                "amqp://0.0.0.0:5672",
                Some(("amqp", "0.0.0.0", 5672)),
            ),
            ("amqp", "amqps://[::]:5671", Some(("amqp/ssl", "::", 5671))),
            (
                "amqp.management",
                "http://10.0.0.1:15672/",
                Some(("http", "10.0.0.1", 15672)),
            ),
            (
                "amqp.prometheus",
                "http://10.0.0.1:15692/metrics",
                Some(("http/prometheus", "10.0.0.1", 15692)),
            ),
            ("amqp", "amqp+unix:///run/a.sock", None),
            ("web", "http://10.0.0.1:80/", None),
        ] {
            let expected = expected.map(|(p, a, port): (_, &str, _)| (p, a.to_owned(), port));
            assert_eq!(found(kind, url), expected, "{url}");
        }
    }
}
