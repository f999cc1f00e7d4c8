//! The address of a broker: `rabbit://user:password@host:port,user:password@host:port/vhost`, as in oslo.messaging and
//! kombu.

use std::fmt;
use std::str::FromStr;

/// AMQP's port without TLS.
const PORT: u16 = 5672;

/// One broker, or several to be tried in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportUrl {
    pub hosts: Vec<Host>,
    pub virtual_host: String,
}

/// The address of one broker, and the account to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub port: u16,
    pub user: String,
    pub password: String,
}

/// The error of a text that is not such a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    reason: String,
}

impl FromStr for TransportUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = |reason: String| UrlError { reason };
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if !scheme.contains(['@', ':']) => (scheme, rest),
            // Errors quote no password.
            _ => {
                let shown = match text.contains('@') {
                    true => "the URL".to_owned(),
                    false => format!("{text:?}"),
                };
                let expected = "expected rabbit://user:password@host:port/vhost";
                return Err(wrong(format!("{shown} has no scheme, {expected}")));
            }
        };
        if !["rabbit", "kombu+rabbit", "amqp"].contains(&scheme) {
            return Err(wrong(match scheme {
                "amqps" | "rabbits" => format!(
                    "TLS is not supported here: {scheme}://, expected rabbit:// and a port without TLS"
                ),
                _ => format!("cannot speak {scheme}://, expected rabbit:// (without TLS)"),
            }));
        }
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, query),
            None => (rest, ""),
        };
        let (hosts, path) = match rest.split_once('/') {
            Some((hosts, path)) => (hosts, path),
            None => (rest, ""),
        };
        let hosts: Result<Vec<_>, _> = hosts.split(',').map(host).collect();
        if query.contains('@') || (hosts.is_err() && path.contains('@')) {
            let why = "a / or ? in the user or the password, expected %2F or %3F";
            return Err(wrong(why.to_owned()));
        }
        if let Some(setting) = query.split('&').find(|setting| !setting.is_empty()) {
            let name = setting.split('=').next().unwrap_or(setting);
            return Err(wrong(match name.starts_with("ssl") {
                true => {
                    format!("TLS is not supported here: ?{setting}, expected a port without TLS")
                }
                false => format!(
                    "the setting ?{setting} is not supported here, expected a URL without settings"
                ),
            }));
        }
        let virtual_host = match unescape(path)? {
            // As in kombu: no path is the default vhost.
            path if path.is_empty() => "/".to_owned(),
            path => path,
        };
        Ok(Self {
            hosts: hosts?,
            virtual_host,
        })
    }
}

fn host(text: &str) -> Result<Host, UrlError> {
    let (login, place) = match text.rsplit_once('@') {
        Some((login, place)) => (login, place),
        None => ("", text),
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let wrong_port = |port: &str| UrlError {
        reason: format!("{port:?} in {place:?} is no port, expected 1 to 65535"),
    };
    let (name, port) = match place.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':')),
        None => match place.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None | Some("") => PORT,
        Some(port) => match port.parse() {
            Ok(0) | Err(_) => return Err(wrong_port(port)),
            Ok(port) => port,
        },
    };
    let or = |text: String, default: &str| match text.is_empty() {
        true => default.to_owned(),
        false => text,
    };
    let secret = |text: &str| {
        unescape(text).map_err(|_| UrlError {
            reason: "the user or the password is no UTF-8 behind its escapes".to_owned(),
        })
    };
    Ok(Host {
        name: or(unescape(name)?, "localhost"),
        port,
        // The default user is guest, with the password guest.
        user: or(secret(user)?, "guest"),
        password: or(secret(password)?, "guest"),
    })
}

/// Decodes `%2F` and its like.
fn unescape(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| after.split_first_chunk::<2>())
            .flatten()
            .and_then(|(digits, after)| {
                let digit = |at: usize| char::from(digits[at]).to_digit(16);
                Some(((digit(0)? * 16 + digit(1)?) as u8, after))
            });
        // An invalid escape stays as it is, as in Python's unquote.
        let (byte, after) = escaped.unwrap_or((byte, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| UrlError {
        reason: format!("{text:?} is no UTF-8 behind its escapes"),
    })
}

impl fmt::Display for Host {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match text.parse::<TransportUrl>() {
            Ok(url) => {
                let hosts = url.hosts.iter();
                let hosts =
                    hosts.map(|host| format!("{} as {}:{}", host, host.user, host.password));
                let hosts: Vec<_> = hosts.collect();
                format!("{} on {}", hosts.join(", "), url.virtual_host)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn urls_are_read() {
        #[rustfmt::skip]
        let rows: &[(&str, &str)] = &[
            ("rabbit://", "localhost:5672 as guest:guest on /"),
            ("rabbit://h", "h:5672 as guest:guest on /"),
            ("rabbit://h:1/", "h:1 as guest:guest on /"),
            ("rabbit://h:1//", "h:1 as guest:guest on /"),
            ("rabbit://h:1/%2F", "h:1 as guest:guest on /"),
            ("rabbit://h:1/a%20b", "h:1 as guest:guest on a b"),
            ("rabbit://u:p@h/v", "h:5672 as u:p on v"),
            ("kombu+rabbit://u%40x:p%3A%2f@h/v", "h:5672 as u@x:p:/ on v"),
            ("amqp://u:100%@[::1]:5673/", "[::1]:5673 as u:100% on /"),
            ("rabbit://u:p:q@h", "h:5672 as u:p:q on /"),
            ("rabbit://a:b@c:1,d:e@f:2/v", "c:1 as a:b, f:2 as d:e on v"),
            ("h:1", r#""h:1" has no scheme, expected rabbit://user:password@host:port/vhost"#),
            ("amqps://h", "TLS is not supported here: amqps://, expected rabbit:// and a port without TLS"),
            ("rabbit://h/?ssl=1", "TLS is not supported here: ?ssl=1, expected a port without TLS"),
            ("rabbit://h/?heartbeat=5",
                "the setting ?heartbeat=5 is not supported here, expected a URL without settings"),
            ("rabbit://h:x/", r#""x" in "h:x" is no port, expected 1 to 65535"#),
            ("rabbit://h:0/", r#""0" in "h:0" is no port, expected 1 to 65535"#),
            ("rabbit://h:1/v@x", "h:1 as guest:guest on v@x"),
        ];
        for &(text, expected) in rows {
            check(text, expected);
        }
    }

    #[test]
    fn no_error_shows_a_part_of_a_password() {
        #[rustfmt::skip]
        let rows = [
            ("u:hidden@h", "the URL has no scheme, expected rabbit://user:password@host:port/vhost"),
            ("u:hidden@h://", "the URL has no scheme, expected rabbit://user:password@host:port/vhost"),
            ("amqp://u:hidden/s@h/v", "a / or ? in the user or the password, expected %2F or %3F"),
            ("amqp://u:hidden?s@h/v", "a / or ? in the user or the password, expected %2F or %3F"),
            ("amqp://u:hidden%ff@h/v", "the user or the password is no UTF-8 behind its escapes"),
            ("rabbit://h/%ff", r#""%ff" is no UTF-8 behind its escapes"#),
        ];
        for (text, expected) in rows {
            check(text, expected);
        }
    }
}
