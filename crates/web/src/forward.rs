//! Forwards a request to another server (RFC 9110 section 7.6): removes hop-by-hop fields, adds the client's details,
//! and computes the target.

use std::net::IpAddr;

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

/// Hop-by-hop fields, whether `Connection` names them or not.
const OF_ONE_CONNECTION: &[&str] = &["keep-alive", "proxy-connection", "proxy-authenticate"];

/// The client's details for the other server; the client's own values of these fields are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'c> {
    /// `None` for a client of a Unix socket.
    pub address: Option<IpAddr>,
    pub port: u16,
    pub proto: &'c str,
}

/// Removes hop-by-hop fields. A length beside chunked coding is invalid (RFC 9112 section 6.3), and removed lest
/// another server believe it.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Naming these in `Connection` is an attempt to make the two servers disagree.
        .filter(|name| name != HOST && name != CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in OF_ONE_CONNECTION {
        headers.remove(*name);
    }
}

/// Adjusts the headers of a request that is forwarded to `host`.
pub fn forward(headers: &mut HeaderMap, host: &HeaderValue, client: Client<'_>) {
    remove_hop_by_hop(headers);
    // The body is sent at once.
    headers.remove(EXPECT);
    let asked = headers.insert(HOST, host.clone());
    set(headers, "x-forwarded-host", asked);
    let address = client.address.map(|address| address.to_canonical());
    let address = address.and_then(|address| text(&address.to_string()));
    set(headers, "x-forwarded-for", address.clone());
    set(headers, "x-real-ip", address);
    set(headers, "x-forwarded-port", Some(client.port.into()));
    set(headers, "x-forwarded-proto", text(client.proto));
    headers.remove("forwarded");
}

fn set(headers: &mut HeaderMap, name: &'static str, value: Option<HeaderValue>) {
    headers.remove(name);
    if let Some(value) = value {
        headers.insert(name, value);
    }
}

fn text(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

/// The path and query of the forwarded request: `prefix` in place of the service's own path, then the rest, each
/// component escaped again.
pub fn target(prefix: &str, rest: &[String], query: Option<&str>) -> String {
    let mut target = prefix.trim_end_matches('/').to_owned();
    for component in rest {
        target.push('/');
        escape(component, &mut target);
    }
    if target.is_empty() {
        target.push('/');
    }
    if let Some(query) = query {
        target.push('?');
        target.push_str(query);
    }
    target
}

/// Escapes characters that a path component cannot contain (RFC 3986 section 3.3).
fn escape(component: &str, escaped: &mut String) {
    for byte in component.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
        if is_plain {
            escaped.push(char::from(byte));
            continue;
        }
        escaped.push('%');
        for digit in [byte >> 4, byte & 15] {
            let digit = char::from_digit(digit.into(), 16).unwrap_or('0');
            escaped.push(digit.to_ascii_uppercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, text(value).expect("a value"));
        }
        headers
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn hop_by_hop_fields_are_removed() {
        type Row<'r> = (&'r [(&'r str, &'r str)], &'r [&'r str]);
        let rows: &[Row<'_>] = &[
            (&[("accept", "*/*")], &["accept: */*"]),
            (
                &[("connection", "close, X-Own"), ("x-own", "1"), ("x", "2")],
                &["x: 2"],
            ),
            (
                &[
                    ("connection", "a"),
                    ("connection", "b"),
                    ("a", "1"),
                    ("b", "1"),
                ],
                &[],
            ),
            (
                &[("connection", "host, content-length"), ("host", "h")],
                &["host: h"],
            ),
            (
                &[
                    ("keep-alive", "timeout=5"),
                    ("te", "trailers"),
                    ("trailer", "x"),
                    ("transfer-encoding", "chunked"),
                    ("content-length", "5"),
                    ("upgrade", "h2c"),
                    ("proxy-connection", "close"),
                ],
                &[],
            ),
            (&[("connection", "(,;"), ("x", "1")], &["x: 1"]),
        ];
        for (given, expected) in rows {
            let mut headers = headers(given);
            remove_hop_by_hop(&mut headers);
            assert_eq!(lines(&headers), *expected, "{given:?}");
        }
    }

    #[test]
    fn the_clients_details_are_added() {
        let mut headers = headers(&[
            ("host", "public.example"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-real-ip", "10.0.0.1"),
            ("forwarded", "for=10.0.0.1"),
            ("expect", "100-continue"),
            ("cookie", "a=1"),
        ]);
        let client = Client {
            address: Some(IpAddr::from([127, 0, 0, 2])),
            port: 443,
            proto: "https",
        };
        forward(&mut headers, &HeaderValue::from_static("back:81"), client);
        assert_eq!(
            lines(&headers),
            [
                "cookie: a=1",
                "host: back:81",
                "x-forwarded-for: 127.0.0.2",
                "x-forwarded-host: public.example",
                "x-forwarded-port: 443",
                "x-forwarded-proto: https",
                "x-real-ip: 127.0.0.2",
            ]
        );
    }

    #[test]
    fn targets() {
        let rows: &[(&str, &[&str], Option<&str>, &str)] = &[
            ("", &[], None, "/"),
            ("", &[""], None, "/"),
            ("/", &["a"], None, "/a"),
            ("/app", &[], None, "/app"),
            ("/app/", &["a", ""], Some("q=1&r=%20"), "/app/a/?q=1&r=%20"),
            (
                "",
                &["a b", "é", "%41", "a:b@c"],
                Some(""),
                "/a%20b/%C3%A9/%2541/a:b@c?",
            ),
            ("", &["?", "#", "x\"y"], None, "/%3F/%23/x%22y"),
        ];
        for (prefix, rest, query, expected) in rows {
            let rest: Vec<_> = rest.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(target(prefix, &rest, *query), *expected, "{rest:?}");
        }
    }
}
