//! The address of a router: the URLs of `--url`, and the addresses for workers.

use std::net::ToSocketAddrs;
use std::str::FromStr;

use crosstie_client::{Address, Transport as Spoken};
use crosstie_wamp::Serializer;
use serde::{Deserialize, Serialize};

use crate::subject::{Case, Endpoint, ParseError, REALM, Socket, Transport, serializer_name};

/// A router's URL, in the client library's forms, as far as the bench supports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub websocket: bool,
    pub endpoint: Endpoint,
    /// The `Host` field of a WebSocket's opening handshake.
    pub host: String,
    /// The resource of a WebSocket's opening handshake.
    pub resource: String,
}

impl Url {
    /// The case of this URL with `serializer`.
    pub fn case(&self, serializer: Serializer, batched: bool) -> Case {
        let socket = match self.endpoint {
            Endpoint::Unix(_) => Socket::Unix,
            Endpoint::Tcp(_) => Socket::Tcp,
        };
        let transport = match (self.websocket, batched) {
            (false, _) => Transport::RawSocket,
            (true, false) => Transport::WebSocket,
            (true, true) => Transport::WebSocketBatched,
        };
        Case {
            socket,
            transport,
            serializer,
        }
    }

    /// Everything that a worker needs to connect.
    pub fn target(&self, case: Case, realm: &str) -> Target {
        Target {
            endpoint: self.endpoint.clone(),
            transport: case.transport,
            serializer: case.serializer,
            host: self.host.clone(),
            resource: self.resource.clone(),
            realm: realm.to_owned(),
        }
    }
}

impl FromStr for Url {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |expected: &'static str| Err(ParseError::new(text, expected));
        let parsed: crosstie_client::Endpoint = match text.parse() {
            Ok(parsed) => parsed,
            Err(crosstie_client::UrlError { reason, .. }) => return fail(reason),
        };
        let host = parsed.http_host();
        let endpoint = match parsed.address {
            Address::Tcp { tls: true, .. } => {
                return fail("the bench has no TLS; measure the plain listener");
            }
            Address::Tcp { host, port, .. } => {
                let resolved = (host.as_str(), port).to_socket_addrs().ok();
                match resolved.and_then(|mut addresses| addresses.next()) {
                    Some(address) => Endpoint::Tcp(address),
                    None => return fail("the host does not resolve"),
                }
            }
            Address::Unix(path) => Endpoint::Unix(path),
        };
        let (websocket, resource) = match parsed.transport {
            Spoken::RawSocket => (false, "/".to_owned()),
            Spoken::WebSocket { target } => (true, target),
        };
        Ok(Self {
            websocket,
            endpoint,
            host,
            resource,
        })
    }
}

/// A router's address and protocol, for a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub endpoint: Endpoint,
    pub transport: Transport,
    #[serde(with = "serializer_name")]
    pub serializer: Serializer,
    pub host: String,
    pub resource: String,
    pub realm: String,
}

impl Target {
    /// That of a router of the bench's own.
    pub(crate) fn own(endpoint: Endpoint, case: Case, resource: &str) -> Self {
        let host = match &endpoint {
            Endpoint::Unix(_) => "localhost".to_owned(),
            Endpoint::Tcp(address) => address.to_string(),
        };
        Self {
            endpoint,
            transport: case.transport,
            serializer: case.serializer,
            host,
            resource: resource.to_owned(),
            realm: REALM.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        #[track_caller]
        fn check(text: &str, case: &str, endpoint: &str, resource: &str) {
            let url: Url = text.parse().unwrap();
            assert_eq!(url.case(Serializer::Cbor, false).to_string(), case);
            assert_eq!(url.endpoint.to_string(), endpoint);
            assert_eq!(url.resource, resource);
        }
        #[rustfmt::skip]
        let rows = [
            ("ws://127.0.0.1:8080/ws", "tcp-websocket-cbor", "127.0.0.1:8080", "/ws"),
            ("ws://127.0.0.1/", "tcp-websocket-cbor", "127.0.0.1:80", "/"),
            ("rs://127.0.0.1:9000", "tcp-rawsocket-cbor", "127.0.0.1:9000", "/"),
            ("rs+unix:///run/x.sock", "uds-rawsocket-cbor", "/run/x.sock", "/"),
            ("ws+unix:///run/x.sock:/ws", "uds-websocket-cbor", "/run/x.sock", "/ws"),
        ];
        for (text, case, endpoint, resource) in rows {
            check(text, case, endpoint, resource);
        }
    }

    #[test]
    fn errors_of_urls_name_the_expectation() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        check("127.0.0.1:8080", "begin with");
        check("http://127.0.0.1:8080", "begin with");
        check("wss://127.0.0.1:8080", "no TLS");
        check("ws://127.0.0.1:99999", "port");
        check("rs+unix://", "path of a Unix socket");
    }
}
