//! WebSocket connections forwarded to another server, at a path of their own.

use std::io;
use std::path::Path;

use crosstie_config::{WebSocketOptions, WebSocketReverseProxy as Model};
use crosstie_front::origins::origin_may_connect;
use crosstie_transport::PeerAddress;
use crosstie_web::forward::{Client, forward};
use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::{Response, StatusCode, Uri};

use super::upgrades::{Opening, Upgrades, is_handshake, no_upgrade};
use super::{Answering, Asked, Body, Service, answer};
use crate::request_counts::Outcome;
use crate::request_counts::Requests;

/// A service that forwards WebSocket connections.
pub(crate) struct WebSocketProxy {
    upgrades: Upgrades,
    /// The server's URL, with an HTTP scheme.
    url: Uri,
    host: HeaderValue,
    /// The origins that may connect.
    options: WebSocketOptions,
}

impl WebSocketProxy {
    pub(crate) fn new(model: &Model, directory: &Path, requests: &Requests) -> io::Result<Self> {
        // `ws` becomes `http`, and `wss` `https`.
        let url = model.url.replacen("ws", "http", 1);
        let url: Uri = url.parse().map_err(io::Error::other)?;
        let authority = url.authority().map(ToString::to_string).unwrap_or_default();
        let files = model.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        Ok(Self {
            upgrades: Upgrades::new(
                url.clone(),
                (&files, model.server_name.as_deref()),
                model.connections_max,
                model.timeout,
                requests.of("websocket-reverseproxy", &authority),
            )?,
            url,
            host: HeaderValue::try_from(authority).map_err(io::Error::other)?,
            options: model.frontend.options.clone(),
        })
    }

    async fn pass(&self, asked: Asked) -> Response<Body> {
        let counted = self.upgrades.begin();
        if !is_handshake(&asked.request) {
            let response = no_upgrade(&asked.request, self.options.shows_status);
            counted.end(match response.status() {
                StatusCode::OK => Outcome::Answered,
                _ => Outcome::Refused,
            });
            return response;
        }
        let origin = asked.request.headers().get(ORIGIN);
        let origin = origin.map(|origin| origin.to_str().unwrap_or("(no text)"));
        let host = asked.request.headers().get(HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        if let Err(reason) = origin_may_connect(origin, host, &self.options) {
            counted.end(Outcome::Refused);
            return answer::text(StatusCode::FORBIDDEN, reason);
        }
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
        let target = self
            .url
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let opening = Opening {
            headers,
            target,
            connection: &asked.connection,
            takeover: asked.takeover,
        };
        self.upgrades.pass_on(opening, counted).await
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
