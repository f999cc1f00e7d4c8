//! Requests forwarded to another HTTP server.

use std::io;
use std::sync::Arc;

use crosstie_config::ReverseProxy as Model;
use crosstie_transport::PeerAddress;
use crosstie_web::forward::{Client, forward, target};
use crosstie_web::rewrite::{Names, rewrite};
use hyper::Response;
use hyper::header::{HOST, HeaderValue};

use super::backend::{Address, Backend, Bounds};
use super::upgrades::{Opening, Upgrades, is_handshake};
use super::{Answering, Asked, Body, Service};
use crate::request_counts::Requests;

/// A service that forwards requests.
pub(crate) struct ReverseProxy {
    backend: Backend,
    upgrades: Upgrades,
    /// The Host header for the server.
    host: HeaderValue,
    path: String,
    forwarded_port: u16,
    forwarded_proto: String,
    rewrites_answers: bool,
}

impl ReverseProxy {
    pub(crate) fn new(model: &Model, requests: &Requests) -> io::Result<Self> {
        let name = match model.host.contains(':') {
            true => format!("[{}]", model.host),
            false => model.host.clone(),
        };
        let host = match model.port {
            80 => name,
            port => format!("{name}:{port}"),
        };
        let address = Address::Tcp {
            host: model.host.clone(),
            port: model.port,
        };
        let bounds = Bounds {
            requests_max: model.requests_max,
            timeout: model.timeout,
            body_bytes_max: u64::MAX,
        };
        let counts = requests.of("reverseproxy", &host);
        let url = format!("http://{host}/").parse();
        let upgrades = Upgrades::new(
            url.map_err(io::Error::other)?,
            (&[], None),
            model.requests_max,
            model.timeout,
            Arc::clone(&counts),
        )?;
        Ok(Self {
            upgrades,
            backend: Backend::new(address, format!("the server at {host}"), bounds, counts),
            host: HeaderValue::try_from(host).map_err(io::Error::other)?,
            path: model.path.clone(),
            forwarded_port: model.forwarded_port,
            forwarded_proto: model.forwarded_proto.clone(),
            rewrites_answers: model.rewrites_answers,
        })
    }

    async fn pass(&self, asked: Asked) -> Response<Body> {
        let address = match asked.connection.peer() {
            PeerAddress::Tcp(address) => Some(address.ip()),
            PeerAddress::Unix(_) => None,
        };
        let mut request = asked.request;
        let opens_websocket = is_handshake(&request);
        let target = target(&self.path, &asked.rest, request.uri().query());
        // Over HTTP/2 the URL contains the host.
        if let Some(authority) = request.uri().authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        let client = Client {
            address,
            port: self.forwarded_port,
            proto: &self.forwarded_proto,
        };
        forward(request.headers_mut(), &self.host, client);
        let mut answer = if opens_websocket {
            let opening = Opening {
                headers: request.into_parts().0.headers,
                target: &target,
                connection: &asked.connection,
                takeover: asked.takeover,
            };
            let counted = self.upgrades.begin();
            self.upgrades.pass_on(opening, counted).await
        } else {
            let answering = self.backend.ask(request, &target, &asked.connection);
            answering.await
        };
        if self.rewrites_answers {
            let names = Names {
                host: self.host.to_str().unwrap_or_default(),
                path: &self.path,
                base: &asked.base,
            };
            rewrite(answer.headers_mut(), names);
        }
        answer
    }
}

impl Service for ReverseProxy {
    fn takes_websockets(&self) -> bool {
        true
    }

    fn answer(&self, asked: Asked) -> Answering<'_> {
        Box::pin(self.pass(asked))
    }
}
