//! The address of a stream's server, and its written form.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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

/// `tcp://HOST:PORT`, `HOST:PORT` or `unix://PATH`.
pub fn address(text: &str) -> Result<Endpoint, ParseError> {
    let fail = |expected| Err(ParseError::new(text, expected));
    if let Some(path) = text.strip_prefix("unix://") {
        return match path.is_empty() {
            true => fail("unix:// is followed by a path"),
            false => Ok(Endpoint::Unix(path.into())),
        };
    }
    let host_and_port = text.strip_prefix("tcp://").unwrap_or(text);
    if host_and_port.contains('/') {
        return fail("an address is tcp://HOST:PORT, HOST:PORT or unix://PATH");
    }
    if !host_and_port
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    {
        return fail("an address is HOST:PORT with a port up to 65535, or unix://PATH");
    }
    match host_and_port
        .to_socket_addrs()
        .map(|mut found| found.next())
    {
        Ok(Some(address)) => Ok(Endpoint::Tcp(address)),
        _ => fail("the host does not resolve"),
    }
}

/// An address in the form that [`address`] reads.
pub fn written(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(address) => format!("tcp://{address}"),
        Endpoint::Unix(path) => format!("unix://{}", path.display()),
    }
}

/// A malformed value of the command line, with the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{came}`: {expected}")]
pub struct ParseError {
    pub came: String,
    pub expected: &'static str,
}

impl ParseError {
    pub fn new(came: &str, expected: &'static str) -> Self {
        Self {
            came: came.to_owned(),
            expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        #[track_caller]
        fn check(text: &str, expected: Option<&str>) {
            let found = address(text).ok().map(|found| written(&found));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        check("127.0.0.1:9000", Some("tcp://127.0.0.1:9000"));
        check("tcp://127.0.0.1:9000", Some("tcp://127.0.0.1:9000"));
        check("[::1]:9000", Some("tcp://[::1]:9000"));
        check("unix:///run/x.sock", Some("unix:///run/x.sock"));
        check("unix://x.sock", Some("unix://x.sock"));
        for wrong in [
            "",
            "9000",
            ":9000",
            "127.0.0.1",
            "127.0.0.1:99999",
            "unix://",
            "http://127.0.0.1:80",
            "127.0.0.1:80/x",
            "no-such-host.invalid:1",
        ] {
            check(wrong, None);
        }
    }
}
