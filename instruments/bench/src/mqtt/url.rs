//! The address of an MQTT broker and the account to use: the URLs of `--url`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::frame::Server;
use crate::subject::Endpoint;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Broker {
    pub(crate) endpoint: Endpoint,
    /// The host as the URL names it, for TLS.
    pub(super) host: String,
    /// User and password.
    pub(super) account: Option<(String, String)>,
    pub(super) is_tls: bool,
}

const FORM: &str = "mqtt://[USER:PASSWORD@]HOST[:PORT], or mqtts:// for TLS 1.3";

impl Server for Broker {
    const WHAT: &'static str = "broker instead of ours: mqtt://[USER:PASSWORD@]HOST[:PORT], or mqtts:// for TLS 1.3 \
                                with P-256; its certificate is not verified";
}

impl Broker {
    /// One that the bench has started.
    pub(crate) fn own(address: SocketAddr) -> Self {
        Self {
            endpoint: Endpoint::Tcp(address),
            host: address.ip().to_string(),
            account: None,
            is_tls: false,
        }
    }

    pub(super) fn with_tls(self) -> Self {
        Self {
            is_tls: true,
            ..self
        }
    }

    pub(super) fn with_account(self, name: &str) -> Self {
        Self {
            account: Some((name.to_owned(), name.to_owned())),
            ..self
        }
    }

    /// The same broker by another address, such as a delay line's.
    pub(super) fn by(&self, endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            ..self.clone()
        }
    }
}

impl FromStr for Broker {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let refuse = |why: &str| BenchError::Options(format!("{why}; a broker is {FORM}"));
        let (is_tls, port, rest) = match text.split_once("://") {
            Some(("mqtt", rest)) => (false, 1883, rest),
            Some(("mqtts", rest)) => (true, 8883, rest),
            _ => return Err(refuse(&format!("{text} is no URL of MQTT"))),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (account, place) = match rest.rsplit_once('@') {
            Some((account, place)) => (Some(account), place),
            None => (None, rest),
        };
        let account = account.map(|account| {
            let (user, password) = account.split_once(':').unwrap_or((account, ""));
            decoded(user).zip(decoded(password))
        });
        let account = match account {
            Some(None) => return Err(refuse("the user or the password has an invalid %")),
            Some(account) => account,
            None => None,
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, digits)) if !host.is_empty() && !digits.ends_with(']') => {
                let port = digits.parse();
                let port = port.map_err(|_| refuse(&format!("{digits} is no port")))?;
                (host, port)
            }
            _ => (place, port),
        };
        let host = host.trim_matches(['[', ']']);
        let found = (host, port).to_socket_addrs().ok();
        let address = found.and_then(|mut addresses| addresses.next());
        let address =
            address.ok_or_else(|| refuse(&format!("the host {host} does not resolve")))?;
        Ok(Self {
            endpoint: Endpoint::Tcp(address),
            host: host.to_owned(),
            account,
            is_tls,
        })
    }
}

/// Without the account, which must not be in a report.
impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "mqtts" } else { "mqtt" };
        write!(f, "{scheme} {}", self.endpoint)
    }
}

/// Without its percent-encoding; `None` if that is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        #[track_caller]
        fn check(text: &str, address: &str, account: Option<(&str, &str)>, is_tls: bool) {
            let found: Broker = text.parse().unwrap();
            assert_eq!(found.endpoint, Endpoint::Tcp(address.parse().unwrap()));
            let account = account.map(|(user, password)| (user.to_owned(), password.to_owned()));
            assert_eq!((found.account, found.is_tls), (account, is_tls));
        }
        check("mqtt://127.0.0.1", "127.0.0.1:1883", None, false);
        check("mqtts://127.0.0.1/", "127.0.0.1:8883", None, true);
        let account = Some(("a@b", "c:"));
        check("mqtt://a%40b:c%3a@[::1]:9", "[::1]:9", account, false);
        check("mqtt://a@[::1]", "[::1]:1883", Some(("a", "")), false);
    }

    #[test]
    fn errors_of_urls_name_the_expectation() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = text.parse::<Broker>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.ends_with(FORM), "{error}");
        }
        check("127.0.0.1", "127.0.0.1 is no URL of MQTT");
        check("amqp://127.0.0.1", "no URL of MQTT");
        check("mqtt://127.0.0.1:99999", "99999 is no port");
        check("mqtt://a%4:b@127.0.0.1", "invalid %");
    }
}
