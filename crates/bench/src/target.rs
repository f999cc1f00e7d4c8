//! Where a router listens: the URLs that `--url` takes, and the addresses that workers are given.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use crosstie_wamp::Serializer;
use serde::{Deserialize, Serialize};

use crate::case::{Case, ParseError, Socket, Transport, serializer_name};

/// An address to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Endpoint {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// A router's URL: `ws://HOST:PORT/PATH`, `rs://HOST:PORT`, `ws+unix:///SOCKET?path=/PATH`,
/// `rs+unix:///SOCKET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub websocket: bool,
    pub endpoint: Endpoint,
    /// What the `Host` field of a WebSocket's opening handshake says.
    pub host: String,
    /// The resource that a WebSocket's opening handshake asks for.
    pub resource: String,
}

impl Url {
    /// The case that measuring this URL with `serializer` is.
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

    /// All that a worker must know to connect.
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
        let fail = |expected| Err(ParseError::new(text, expected));
        let Some((scheme, rest)) = text.split_once("://") else {
            return fail("a URL begins with ws://, rs://, ws+unix:// or rs+unix://");
        };
        let (websocket, unix) = match scheme {
            "ws" => (true, false),
            "rs" => (false, false),
            "ws+unix" => (true, true),
            "rs+unix" => (false, true),
            "wss" | "rss" => return fail("the bench has no TLS; measure the plain listener"),
            _ => return fail("a URL begins with ws://, rs://, ws+unix:// or rs+unix://"),
        };
        if unix {
            let (path, resource) = rest.split_once("?path=").unwrap_or((rest, "/"));
            if !path.starts_with('/') {
                return fail("a Unix socket's URL has three slashes and an absolute path");
            }
            return Ok(Self {
                websocket,
                endpoint: Endpoint::Unix(PathBuf::from(path)),
                host: "localhost".to_owned(),
                resource: resource.to_owned(),
            });
        }
        let (host, resource) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at..]),
            None => (rest, "/"),
        };
        let default_port = if websocket && !has_port(host) {
            ":80"
        } else {
            ""
        };
        let address = format!("{host}{default_port}")
            .to_socket_addrs()
            .ok()
            .and_then(|mut addresses| addresses.next());
        let Some(address) = address else {
            return fail("HOST:PORT must name a host that resolves and a port");
        };
        Ok(Self {
            websocket,
            endpoint: Endpoint::Tcp(address),
            host: host.to_owned(),
            resource: resource.to_owned(),
        })
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|octet| octet.is_ascii_digit()))
}

/// How a worker reaches a router and what it speaks there.
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
        check(
            "ws://127.0.0.1:8080/ws",
            "tcp-websocket-cbor",
            "127.0.0.1:8080",
            "/ws",
        );
        check("ws://127.0.0.1/", "tcp-websocket-cbor", "127.0.0.1:80", "/");
        check(
            "rs://127.0.0.1:9000",
            "tcp-rawsocket-cbor",
            "127.0.0.1:9000",
            "/",
        );
        check(
            "rs+unix:///run/x.sock",
            "uds-rawsocket-cbor",
            "/run/x.sock",
            "/",
        );
        check(
            "ws+unix:///run/x.sock?path=/ws",
            "uds-websocket-cbor",
            "/run/x.sock",
            "/ws",
        );
    }

    #[test]
    fn wrong_urls_say_what_was_expected() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        check("127.0.0.1:8080", "begins with");
        check("http://127.0.0.1:8080", "begins with");
        check("wss://127.0.0.1:8080", "no TLS");
        check("rs://127.0.0.1", "HOST:PORT");
        check("rs+unix://run/x.sock", "three slashes");
    }
}
