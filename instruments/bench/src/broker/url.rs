//! The address of a broker and the account to use: the URLs of `--url`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use crosstie_oslo::TransportUrl;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::subject::Endpoint;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Broker {
    pub endpoint: Endpoint,
    pub user: String,
    pub password: String,
    pub vhost: String,
}

/// The user and the password of every broker that the bench starts.
pub(crate) const ACCOUNT: &str = "test";

impl Broker {
    /// One that the bench has started.
    pub(crate) fn own(address: SocketAddr) -> Self {
        Self {
            endpoint: Endpoint::Tcp(address),
            user: ACCOUNT.to_owned(),
            password: ACCOUNT.to_owned(),
            vhost: "/".to_owned(),
        }
    }

    /// The same broker by another address, such as a delay line's.
    pub(crate) fn by(&self, endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            ..self.clone()
        }
    }

    /// In oslo.messaging's form.
    pub(crate) fn url(&self) -> String {
        let vhost = match self.vhost.as_str() {
            "/" => String::new(),
            vhost => encoded(vhost),
        };
        let (user, password) = (encoded(&self.user), encoded(&self.password));
        format!("rabbit://{user}:{password}@{}/{vhost}", self.endpoint)
    }
}

/// `rabbit://USER:PASSWORD@HOST:PORT/VHOST`, in oslo.messaging's form, of one host.
impl FromStr for Broker {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let refuse = |why: String| {
            let form = "a broker is rabbit://USER:PASSWORD@HOST:PORT/VHOST";
            Err(BenchError::Options(format!("{why}; {form}")))
        };
        let url: TransportUrl = match text.parse() {
            Ok(url) => url,
            Err(error) => return refuse(format!("{error}")),
        };
        let [host] = &url.hosts[..] else {
            return refuse("a bench measures one broker at a time".to_owned());
        };
        let found = (host.name.as_str(), host.port).to_socket_addrs().ok();
        let Some(address) = found.and_then(|mut addresses| addresses.next()) else {
            return refuse(format!("the host {} does not resolve", host.name));
        };
        Ok(Self {
            endpoint: Endpoint::Tcp(address),
            user: host.user.clone(),
            password: host.password.clone(),
            vhost: url.virtual_host,
        })
    }
}

/// Without the password, which must not be in a report.
impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "amqp {}", self.endpoint)
    }
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            byte => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        #[track_caller]
        fn check(text: &str, address: &str, user: &str, password: &str, vhost: &str) {
            let expected = Broker {
                endpoint: Endpoint::Tcp(address.parse().unwrap()),
                user: user.to_owned(),
                password: password.to_owned(),
                vhost: vhost.to_owned(),
            };
            let found: Broker = text.parse().unwrap();
            assert_eq!(found, expected);
            assert_eq!(found.url().parse::<Broker>().unwrap(), expected);
        }
        let local = "127.0.0.1:5672";
        check("rabbit://a:b@127.0.0.1:9", "127.0.0.1:9", "a", "b", "/");
        check("amqp://127.0.0.1", local, "guest", "guest", "/");
        check("rabbit://a:b@127.0.0.1/", local, "a", "b", "/");
        check("rabbit://a:b@127.0.0.1:5672/%2f", local, "a", "b", "/");
        check(
            "amqp://u%40x:p%3a@[::1]/v/w",
            "[::1]:5672",
            "u@x",
            "p:",
            "v/w",
        );
    }

    #[test]
    fn errors_of_urls_name_the_expectation() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = text.parse::<Broker>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        check("127.0.0.1", "rabbit://USER");
        check("http://127.0.0.1", "rabbit://USER");
        check("rabbit://127.0.0.1,127.0.0.2", "one broker at a time");
        check("amqps://127.0.0.1", "without TLS");
        check("amqp://127.0.0.1:99999", "99999");
    }
}
