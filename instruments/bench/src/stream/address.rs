//! The address of a stream server in the command line's form: `tcp://HOST:PORT` or `unix://PATH`.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::str::FromStr;

use crate::subject::{Endpoint, ParseError, Socket};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub Endpoint);

impl Address {
    /// The value of an option for a server to start or to connect to.
    pub(crate) fn of(endpoint: &Endpoint) -> String {
        match endpoint {
            Endpoint::Unix(path) => format!("unix://{}", path.display()),
            Endpoint::Tcp(address) => format!("tcp://{address}"),
        }
    }
}

/// The kind of socket of an endpoint.
pub(crate) fn socket(endpoint: &Endpoint) -> Socket {
    match endpoint {
        Endpoint::Unix(_) => Socket::Unix,
        Endpoint::Tcp(_) => Socket::Tcp,
    }
}

impl FromStr for Address {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |expected| Err(ParseError::new(text, expected));
        if let Some(path) = text.strip_prefix("unix://") {
            return match path {
                "" => fail("unix:// is followed by the path of a socket"),
                path => Ok(Self(Endpoint::Unix(PathBuf::from(path)))),
            };
        }
        let Some(place) = text.strip_prefix("tcp://") else {
            return fail("an address begins with tcp:// or unix://");
        };
        let port = place
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        if port.is_none_or(|port: u16| port == 0) {
            return fail("tcp:// is followed by HOST:PORT, the port being 1 to 65535");
        }
        let resolved = place.to_socket_addrs().ok();
        match resolved.and_then(|mut addresses| addresses.next()) {
            Some(address) => Ok(Self(Endpoint::Tcp(address))),
            None => fail("the host does not resolve"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, &str>) {
            match (text.parse::<Address>(), expected) {
                (Ok(Address(endpoint)), Ok(expected)) => {
                    assert_eq!(Address::of(&endpoint), expected);
                }
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
        check("tcp://127.0.0.1:9000", Ok("tcp://127.0.0.1:9000"));
        check("tcp://[::1]:9000", Ok("tcp://[::1]:9000"));
        check("unix:///run/x.sock", Ok("unix:///run/x.sock"));
        check("unix://x.sock", Ok("unix://x.sock"));
        check("unix://", Err("path of a socket"));
        check("127.0.0.1:9000", Err("begins with tcp://"));
        check("ws://127.0.0.1:9000", Err("begins with tcp://"));
        check("tcp://127.0.0.1", Err("HOST:PORT"));
        check("tcp://127.0.0.1:0", Err("HOST:PORT"));
        check("tcp://127.0.0.1:70000", Err("HOST:PORT"));
    }
}
