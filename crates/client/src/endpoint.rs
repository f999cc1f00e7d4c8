//! A router's address and transport, from one URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use thiserror::Error;

/// A router's address and transport.
///
/// | URL | transport |
/// |---|---|
/// | `ws://host:port/path`, `wss://…` | WebSocket over TCP, over TLS |
/// | `rs://host:port`, `rss://…` | RawSocket over TCP, over TLS |
/// | `ws+unix:///run/node.sock`, `ws+unix:///run/node.sock:/path` | WebSocket over a Unix socket |
/// | `rs+unix:///run/node.sock`, `rs+unix:node.sock` | RawSocket over a Unix socket |
/// | `ws://unix:/run/node.sock`, `rs://unix:/run/node.sock` | the same, in Autobahn's form |
///
/// The default ports are HTTP's for WebSocket (80, 443), and for RawSocket the node's 8080, or 443 with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address of the socket.
    pub address: Address,
    /// The protocol on it.
    pub transport: Transport,
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP socket.
    Tcp {
        /// A name or an address, without brackets.
        host: String,
        /// The port.
        port: u16,
        /// Whether the connection is encrypted.
        tls: bool,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The protocol on the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// WAMP in frames of its own.
    RawSocket,
    /// WAMP in WebSocket messages.
    WebSocket {
        /// The target of the HTTP request: the path, with the query if there is one.
        target: String,
    },
}

/// The error of a URL that is not a router's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("URL {url:?}: {reason}")]
pub struct UrlError {
    /// The rejected text.
    pub url: String,
    /// The reason, for people.
    pub reason: &'static str,
}

const SCHEMES: &str =
    "expected it to begin with ws://, wss://, rs://, rss://, ws+unix: or rs+unix:";

impl FromStr for Endpoint {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        parse(url).map_err(|reason| UrlError {
            url: url.to_owned(),
            reason,
        })
    }
}

fn parse(url: &str) -> Result<Endpoint, &'static str> {
    let (scheme, rest) = url.split_once(':').ok_or(SCHEMES)?;
    let scheme = scheme.to_ascii_lowercase();
    if let Some(transport) = scheme.strip_suffix("+unix") {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        return unix(transport, path);
    }
    if let Some(path) = rest.strip_prefix("//unix:") {
        return unix(&scheme, path);
    }
    let (websocket, tls) = match scheme.as_str() {
        "ws" => (true, false),
        "wss" => (true, true),
        "rs" => (false, false),
        "rss" => (false, true),
        _ => return Err(SCHEMES),
    };
    let uri: Uri = url
        .parse()
        .map_err(|_| "expected scheme://host:port/path")?;
    let authority = uri.authority().ok_or("expected a host")?;
    if authority.as_str().contains('@') {
        return Err("expected no user name before the host; authentication is set apart");
    }
    let host = authority.host();
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    if host.is_empty() {
        return Err("expected a host");
    }
    let port = match (authority.port(), websocket, tls) {
        (Some(port), ..) if port.as_u16() > 0 => port.as_u16(),
        (Some(_), ..) => return Err("expected a port above 0"),
        (None, _, true) => 443,
        (None, true, false) => 80,
        (None, false, false) => 8080,
    };
    // `Uri` drops a port that is out of range, as if there were none.
    if authority.port().is_none() && authority.as_str().len() > authority.host().len() {
        return Err("expected a port from 1 to 65535");
    }
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let transport = if websocket {
        Transport::WebSocket {
            target: target.to_owned(),
        }
    } else if matches!(target, "" | "/") {
        Transport::RawSocket
    } else {
        return Err("expected no path: RawSocket has none");
    };
    Ok(Endpoint {
        address: Address::Tcp {
            host: host.to_owned(),
            port,
            tls,
        },
        transport,
    })
}

fn unix(transport: &str, path: &str) -> Result<Endpoint, &'static str> {
    let (path, transport) = match transport {
        "rs" => (path, Transport::RawSocket),
        "ws" => {
            // A colon ends the socket's path if an HTTP target follows.
            let (path, target) = match path.split_once(":/") {
                Some((path, target)) => (path, format!("/{target}")),
                None => (path, "/".to_owned()),
            };
            (path, Transport::WebSocket { target })
        }
        _ => return Err("expected ws or rs with a Unix socket: it has no TLS"),
    };
    if path.is_empty() {
        return Err("expected the path of a Unix socket");
    }
    Ok(Endpoint {
        address: Address::Unix(PathBuf::from(path)),
        transport,
    })
}

impl Endpoint {
    /// The host in an HTTP request.
    pub fn http_host(&self) -> String {
        match &self.address {
            Address::Tcp { host, port, tls } => {
                let host = match host.contains(':') {
                    true => format!("[{host}]"),
                    false => host.clone(),
                };
                match (port, tls) {
                    (80, false) | (443, true) => host,
                    _ => format!("{host}:{port}"),
                }
            }
            Address::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, target) = match &self.transport {
            Transport::RawSocket => ("rs", ""),
            Transport::WebSocket { target } => ("ws", target.as_str()),
        };
        match &self.address {
            Address::Tcp { host, port, tls } => {
                let secure = if *tls { "s" } else { "" };
                match host.contains(':') {
                    true => write!(f, "{scheme}{secure}://[{host}]:{port}{target}"),
                    false => write!(f, "{scheme}{secure}://{host}:{port}{target}"),
                }
            }
            Address::Unix(path) => {
                let colon = if matches!(target, "" | "/") { "" } else { ":" };
                let target = if colon.is_empty() { "" } else { target };
                write!(f, "{scheme}+unix:{}{colon}{target}", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, shown: &str) {
        match url.parse::<Endpoint>() {
            Ok(endpoint) => assert_eq!(endpoint.to_string(), shown),
            Err(error) => assert!(error.reason.contains(shown), "{error}"),
        }
    }

    #[test]
    fn urls() {
        check("ws://127.0.0.1:8080/ws", "ws://127.0.0.1:8080/ws");
        check("ws://router.example", "ws://router.example:80/");
        check(
            "wss://router.example/a?b=c",
            "wss://router.example:443/a?b=c",
        );
        check("WS://[::1]:9000/ws", "ws://[::1]:9000/ws");
        check("rs://localhost:8080", "rs://localhost:8080");
        check("rs://localhost", "rs://localhost:8080");
        check("rss://localhost/", "rss://localhost:443");
        check("ws+unix:///run/a.sock", "ws+unix:/run/a.sock");
        check("ws+unix:///run/a.sock:/ws?x", "ws+unix:/run/a.sock:/ws?x");
        check("rs+unix:///run/a.sock", "rs+unix:/run/a.sock");
        check("rs+unix:crosstie.sock", "rs+unix:crosstie.sock");
        check("rs://unix:/tmp/a.sock", "rs+unix:/tmp/a.sock");
        check("ws://unix:/tmp/a.sock", "ws+unix:/tmp/a.sock");
    }

    #[test]
    fn not_urls() {
        check("", "ws://");
        check("localhost:8080", "ws://");
        check("http://localhost:8080/", "ws://");
        check("ws://", "expected scheme");
        check("ws://:80/", "expected");
        check("ws://host:0/", "port above 0");
        check("ws://host:99999/", "1 to 65535");
        check("ws://me@host/", "no user name");
        check("rs://host:1/ws", "no path");
        check("wss+unix:/a", "no TLS");
        check("rs+unix:", "path of a Unix socket");
    }
}
