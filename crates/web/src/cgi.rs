//! CGI (RFC 3875): a script's variables, and its answer.
//!
//! A script's answer is untrusted: a malformed one is rejected as a whole, so that text which a client made the script
//! repeat does not become a header of the router's.

use std::fmt;

use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use http::{Method, StatusCode};

use crate::forward::remove_hop_by_hop;

/// Maximum length of an answer's header.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum number of its fields.
const FIELDS_MAX: usize = 128;

/// A request in the form for a script.
#[derive(Clone, Debug)]
pub struct Request<'r> {
    pub method: &'r Method,
    pub headers: &'r HeaderMap,
    pub query: &'r str,
    /// The path of the script: `/cgi/hello.py`.
    pub script_name: &'r str,
    /// The file of the script.
    pub script_file: &'r str,
    /// The rest of the path: `/more`; empty for nothing.
    pub path_info: &'r str,
    pub server_name: &'r str,
    pub server_port: u16,
    /// The client's address.
    pub remote_address: &'r str,
    pub is_secure: bool,
    /// Length of its body, if any.
    pub body_bytes: Option<u64>,
}

impl Request<'_> {
    /// The meta-variables (section 4.1), each once.
    pub fn variables(&self) -> Vec<(String, String)> {
        let port = self.server_port.to_string();
        let length = self.body_bytes.map(|bytes| bytes.to_string());
        let kind = self.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let mut variables: Vec<(String, String)> = [
            ("GATEWAY_INTERFACE", Some("CGI/1.1")),
            ("SERVER_PROTOCOL", Some("HTTP/1.1")),
            ("SERVER_SOFTWARE", Some("crosstie")),
            ("SERVER_NAME", Some(self.server_name)),
            ("SERVER_PORT", Some(&port)),
            ("REQUEST_METHOD", Some(self.method.as_str())),
            ("QUERY_STRING", Some(self.query)),
            ("SCRIPT_NAME", Some(self.script_name)),
            ("SCRIPT_FILENAME", Some(self.script_file)),
            ("PATH_INFO", Some(self.path_info)),
            ("REMOTE_ADDR", Some(self.remote_address)),
            ("REMOTE_HOST", Some(self.remote_address)),
            ("HTTPS", self.is_secure.then_some("on")),
            // Without this, PHP assumes that the request bypassed the server.
            ("REDIRECT_STATUS", Some("200")),
            ("CONTENT_LENGTH", length.as_deref()),
            ("CONTENT_TYPE", kind),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
        variables.extend(self.fields());
        variables
    }

    /// The request's header (section 4.1.18).
    fn fields(&self) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        remove_hop_by_hop(&mut headers);
        let names: Vec<_> = headers.keys().filter(|name| is_told(name)).collect();
        names
            .into_iter()
            .filter_map(|name| {
                let values = headers.get_all(name).iter();
                let values: Option<Vec<_>> = values.map(|value| value.to_str().ok()).collect();
                let between = if name == COOKIE { "; " } else { ", " };
                let variable = name.as_str().replace('-', "_").to_ascii_uppercase();
                Some((format!("HTTP_{variable}"), values?.join(between)))
            })
            .collect()
    }
}

/// Whether a script gets a field: not those with a variable of their own, credentials for another recipient, fields
/// that libraries would take for settings (`HTTP_PROXY`), and ambiguous names (`X_Y` for `X-Y`).
fn is_told(name: &HeaderName) -> bool {
    !matches!(
        name.as_str(),
        "content-length" | "content-type" | "authorization" | "proxy-authorization" | "proxy"
    ) && !name.as_str().contains('_')
}

/// The header of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The offset of the body.
    pub bytes: usize,
}

/// Why an answer is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadHead {
    TooLong,
    TooMany,
    /// The number of a line that is not a field.
    Line(usize),
    /// A single-valued field is repeated, or a value is invalid.
    Field(String),
    /// `Content-Type`, `Location` and `Status` are all missing.
    Empty,
}

impl fmt::Display for BadHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "its header is longer than {HEAD_BYTES_MAX} bytes"),
            Self::TooMany => write!(f, "its header has more than {FIELDS_MAX} fields"),
            Self::Line(line) => write!(f, "line {line} of its header is not a field"),
            Self::Field(name) => write!(f, "its field '{name}' is repeated or invalid"),
            Self::Empty => f.write_str("it has neither Content-Type, Location nor Status"),
        }
    }
}

/// Decodes the header of an answer; `None` if it is incomplete.
pub fn head(input: &[u8]) -> Result<Option<Head>, BadHead> {
    let mut found = Found::default();
    let mut at = 0;
    let mut number = 0;
    loop {
        let Some(length) = input[at..].iter().position(|&byte| byte == b'\n') else {
            return match input.len() > HEAD_BYTES_MAX {
                true => Err(BadHead::TooLong),
                false => Ok(None),
            };
        };
        let line = &input[at..at + length];
        at += length + 1;
        number += 1;
        if at > HEAD_BYTES_MAX {
            return Err(BadHead::TooLong);
        }
        if number > FIELDS_MAX + 1 {
            return Err(BadHead::TooMany);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return found.head(at).map(Some);
        }
        found.add(line, number)?;
    }
}

#[derive(Default)]
struct Found {
    status: Option<StatusCode>,
    headers: HeaderMap,
}

impl Found {
    fn add(&mut self, line: &[u8], number: usize) -> Result<(), BadHead> {
        let bad = || BadHead::Line(number);
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.ok_or_else(bad)?);
        let name = HeaderName::from_bytes(name).map_err(|_| bad())?;
        let value = value[1..].trim_ascii();
        // This rejects control characters, including line ends.
        let value = HeaderValue::from_bytes(value).map_err(|_| bad())?;
        let twice = || BadHead::Field(name.to_string());
        if name == "status" {
            let status = status(&value).ok_or_else(twice)?;
            return match self.status.replace(status) {
                None => Ok(()),
                Some(_) => Err(twice()),
            };
        }
        let comes_once = [CONTENT_TYPE, CONTENT_LENGTH, LOCATION].contains(&name);
        if comes_once && self.headers.contains_key(&name) {
            return Err(twice());
        }
        let is_number = |value: &HeaderValue| value.as_bytes().iter().all(u8::is_ascii_digit);
        if name == CONTENT_LENGTH && (value.is_empty() || !is_number(&value)) {
            return Err(twice());
        }
        self.headers.append(name, value);
        Ok(())
    }

    fn head(mut self, bytes: usize) -> Result<Head, BadHead> {
        let location = self.headers.contains_key(LOCATION);
        if self.status.is_none() && !location && !self.headers.contains_key(CONTENT_TYPE) {
            return Err(BadHead::Empty);
        }
        let otherwise = match location {
            true => StatusCode::FOUND,
            false => StatusCode::OK,
        };
        // A script must not control this connection.
        remove_hop_by_hop(&mut self.headers);
        Ok(Head {
            status: self.status.unwrap_or(otherwise),
            headers: self.headers,
            bytes,
        })
    }
}

/// Parses `404 Not Found`; an informational status is invalid.
fn status(value: &HeaderValue) -> Option<StatusCode> {
    let value = value.as_bytes();
    let (code, rest) = value.split_at_checked(3)?;
    if !rest.is_empty() && rest[0] != b' ' {
        return None;
    }
    let status = StatusCode::from_bytes(code).ok()?;
    (200..=599).contains(&status.as_u16()).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        type Row<'r> = (&'r str, Option<(u16, &'r [&'r str])>);
        let rows: &[Row<'_>] = &[
            ("", None),
            ("Content-Type: text/plain\n", None),
            (
                "Content-Type: text/plain\n\nbody",
                Some((200, &["content-type: text/plain"])),
            ),
            (
                "content-type:text/plain\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
                Some((200, &["content-type: text/plain", "x-a: 1", "x-a: 2"])),
            ),
            ("Status: 404 Not Found\n\n", Some((404, &[]))),
            ("Status: 204\n\n", Some((204, &[]))),
            (
                "Location: http://a/b\n\n",
                Some((302, &["location: http://a/b"])),
            ),
            (
                "Status: 200 OK\nConnection: X-B\nX-B: 1\nTransfer-Encoding: chunked\n\n",
                Some((200, &[])),
            ),
        ];
        for (text, expected) in rows {
            let found = head(text.as_bytes()).expect("an answer").map(|head| {
                let fields = head.headers.iter();
                let fields =
                    fields.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
                (head.status.as_u16(), fields.collect::<Vec<_>>())
            });
            let expected = expected.map(|(status, fields)| {
                let fields = fields.iter().map(|field| (*field).to_owned());
                (status, fields.collect())
            });
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn malformed_answers_are_rejected() {
        let field = |name: &str| BadHead::Field(name.to_owned());
        let rows: &[(&str, BadHead)] = &[
            ("\n", BadHead::Empty),
            ("X-A: 1\n\n", BadHead::Empty),
            ("HTTP/1.1 200 OK\nContent-Type: a/b\n\n", BadHead::Line(1)),
            ("Content-Type: a/b\n folded\n\n", BadHead::Line(2)),
            ("Content-Type: a/b\nX-A: 1\rX-B: 2\n\n", BadHead::Line(2)),
            ("Content-Type: a/b\nX-A: \0\n\n", BadHead::Line(2)),
            ("Content Type: a/b\n\n", BadHead::Line(1)),
            (": a\n\n", BadHead::Line(1)),
            ("Status: 200\nStatus: 200\n\n", field("status")),
            ("Status: 100\n\n", field("status")),
            ("Status: 2000\n\n", field("status")),
            ("Status: OK\n\n", field("status")),
            (
                "Content-Type: a/b\nContent-Length: 1\nContent-Length: 2\n\n",
                field("content-length"),
            ),
            (
                "Content-Type: a/b\nContent-Length: +1\n\n",
                field("content-length"),
            ),
            ("Location: /a\nLocation: /b\n\n", field("location")),
        ];
        for (text, expected) in rows {
            let found = head(text.as_bytes()).expect_err(text);
            assert_eq!(found, *expected, "{text:?}");
        }
    }

    #[test]
    fn a_header_without_end_has_one() {
        let long = vec![b'a'; HEAD_BYTES_MAX + 1];
        assert_eq!(head(&long), Err(BadHead::TooLong));
        let many = "X-A: 1\n".repeat(FIELDS_MAX + 2);
        assert_eq!(head(many.as_bytes()), Err(BadHead::TooMany));
        let lines = format!("X-A: {}\n", "a".repeat(8_000)).repeat(9) + "\n";
        assert_eq!(head(lines.as_bytes()), Err(BadHead::TooLong));
    }

    #[test]
    fn the_offset_of_the_body() {
        let answer = b"Content-Type: a/b\r\n\r\n\nbody";
        let head = head(answer).expect("a header").expect("whole");
        assert_eq!(&answer[head.bytes..], b"\nbody");
    }

    #[test]
    fn variables_of_a_script() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "h:1"),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("x-one", "1"),
            ("x-one", "2"),
            ("x_one", "3"),
            ("proxy", "http://evil/"),
            ("authorization", "Basic x"),
            ("connection", "x-lost"),
            ("x-lost", "1"),
            ("content-type", "text/plain"),
            ("content-length", "99"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let request = Request {
            method: &Method::POST,
            headers: &headers,
            query: "q=1",
            script_name: "/cgi/a.py",
            script_file: "/srv/a.py",
            path_info: "/more",
            server_name: "h",
            server_port: 1,
            remote_address: "127.0.0.1",
            is_secure: false,
            body_bytes: Some(3),
        };
        let mut told: Vec<_> = request
            .variables()
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "CONTENT_LENGTH=3",
                "CONTENT_TYPE=text/plain",
                "GATEWAY_INTERFACE=CGI/1.1",
                "HTTP_COOKIE=a=1; b=2",
                "HTTP_HOST=h:1",
                "HTTP_X_ONE=1, 2",
                "PATH_INFO=/more",
                "QUERY_STRING=q=1",
                "REDIRECT_STATUS=200",
                "REMOTE_ADDR=127.0.0.1",
                "REMOTE_HOST=127.0.0.1",
                "REQUEST_METHOD=POST",
                "SCRIPT_FILENAME=/srv/a.py",
                "SCRIPT_NAME=/cgi/a.py",
                "SERVER_NAME=h",
                "SERVER_PORT=1",
                "SERVER_PROTOCOL=HTTP/1.1",
                "SERVER_SOFTWARE=crosstie",
            ]
        );
    }
}
