//! As much of HTTP/1.1 as it takes to tell a WebSocket handshake from a plain request.

use std::fmt;

use httparse::{EMPTY_HEADER, Status};
use memchr::memchr_iter;

/// Maximum bytes of a response's head, all its headers included; and of a request's, by default.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Headers of one request or response.
pub const HEADERS_MAX: usize = 100;
/// A longer head is parsed only when it is complete: otherwise a peer that sends it byte by byte would have all of it
/// parsed each time.
const PARSED_INCOMPLETE_BYTES_MAX: usize = 4 << 10;

/// Names and values of headers to send.
pub type HeaderList<'a> = [(&'a str, &'a str)];

/// The head of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub method: &'a str,
    /// The path, with the query if there is one.
    pub target: &'a str,
    /// The 0 or 1 of HTTP/1.0 and HTTP/1.1.
    pub version_minor: u8,
    pub(super) headers: Headers<'a>,
}

/// Reads a request's head of at most `bytes_max` from the start of `bytes`, and says how many bytes it has. None: it
/// is not there whole.
pub fn parse_request(
    bytes: &[u8],
    bytes_max: usize,
) -> Result<Option<(usize, Request<'_>)>, HandshakeError> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let Some(length) = head_length(bytes, bytes_max, |bytes| request.parse(bytes))? else {
        return Ok(None);
    };
    // The parser leaves no part out of a head that it calls complete.
    let (Some(method), Some(target), Some(version_minor)) =
        (request.method, request.path, request.version)
    else {
        return Err(HandshakeError::Malformed);
    };
    let request = Request {
        method,
        target,
        version_minor,
        headers: Headers::new(request.headers),
    };
    Ok(Some((length, request)))
}

/// Parses a head within the limits.
pub(super) fn head_length<'a>(
    bytes: &'a [u8],
    bytes_max: usize,
    parse: impl FnOnce(&'a [u8]) -> httparse::Result<usize>,
) -> Result<Option<usize>, HandshakeError> {
    let cut = &bytes[..bytes.len().min(bytes_max)];
    let is_all = cut.len() == bytes_max;
    if cut.len() > PARSED_INCOMPLETE_BYTES_MAX && !is_all && !has_end(cut) {
        return Ok(None);
    }
    match parse(cut) {
        Ok(Status::Complete(length)) => Ok(Some(length)),
        Ok(Status::Partial) if !is_all => Ok(None),
        Ok(Status::Partial) => Err(HandshakeError::TooLarge { bytes_max }),
        Err(httparse::Error::TooManyHeaders) => Err(HandshakeError::TooManyHeaders),
        Err(httparse::Error::Version) => Err(HandshakeError::HttpVersion),
        Err(_) => Err(HandshakeError::Malformed),
    }
}

/// Whether there may be an empty line, which ends a head.
fn has_end(bytes: &[u8]) -> bool {
    memchr_iter(b'\n', bytes).any(|at| matches!(&bytes[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

impl<'a> Request<'a> {
    /// The target without its query.
    pub fn path(&self) -> &'a str {
        self.target
            .split_once('?')
            .map_or(self.target, |(path, _)| path)
    }

    /// The part of the target behind its question mark.
    pub fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The first header of that name, whatever its case; not one that is not UTF-8.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.all(name).next()
    }
}

/// Headers as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headers<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Headers<'a> {
    pub(super) fn new(headers: &[httparse::Header<'a>]) -> Self {
        Self(headers.iter().map(|h| (h.name, h.value)).collect())
    }

    /// The values of every header of that name.
    pub(super) fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n, '_> {
        let named = self
            .0
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name));
        named.filter_map(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// The value of the only header of that name.
    pub(super) fn only(&self, name: &str) -> Option<&'a str> {
        let mut all = self.all(name);
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// The members of a header that holds a list, or of several.
    pub(super) fn list<'n>(
        &self,
        name: &'n str,
    ) -> impl Iterator<Item = &'a str> + use<'a, 'n, '_> {
        let members = self.all(name).flat_map(|value| value.split(','));
        members.map(str::trim).filter(|member| !member.is_empty())
    }

    /// Whether a list has this member, whatever its case.
    pub(super) fn lists(&self, name: &str, member: &str) -> bool {
        self.list(name).any(|m| m.eq_ignore_ascii_case(member))
    }
}

/// A fault in a client's request; [`HandshakeError::status`] is the answer.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// Not HTTP.
    Malformed,
    /// The head has more bytes than `bytes_max`.
    TooLarge { bytes_max: usize },
    /// More than [`HEADERS_MAX`] headers.
    TooManyHeaders,
    /// Neither HTTP/1.0 nor HTTP/1.1; for an upgrade, not HTTP/1.1.
    HttpVersion,
    /// A plain request.
    NotUpgrade,
    /// An upgrade by another method than GET.
    Method,
    /// A version of WebSocket other than 13.
    WebSocketVersion,
    /// A header of the handshake is missing, doubled or wrong.
    Header { name: &'static str },
}

impl HandshakeError {
    /// The status to answer with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed | Self::Header { .. } => 400,
            Self::Method => 405,
            Self::NotUpgrade | Self::WebSocketVersion => 426,
            Self::TooLarge { .. } | Self::TooManyHeaders => 431,
            Self::HttpVersion => 505,
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("not an HTTP request"),
            Self::TooLarge { bytes_max } => {
                write!(f, "expected a head of at most {bytes_max} bytes, got more")
            }
            Self::TooManyHeaders => write!(f, "expected at most {HEADERS_MAX} headers, got more"),
            Self::HttpVersion => f.write_str("expected HTTP/1.1"),
            Self::NotUpgrade => f.write_str("expected an upgrade to WebSocket"),
            Self::Method => f.write_str("expected an upgrade by GET"),
            Self::WebSocketVersion => f.write_str("expected Sec-WebSocket-Version 13"),
            Self::Header { name } => write!(f, "missing or wrong header {name}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// A whole response to a request that opens no WebSocket, or not here; `reason` is its body. The connection is to be
/// closed after it.
pub fn closing_response(status: u16, reason: &str, headers: &HeaderList<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", phrase(status)).as_bytes());
    if status == 426 {
        push_header(&mut out, "Upgrade", "websocket");
        push_header(&mut out, "Sec-WebSocket-Version", "13");
        push_header(&mut out, "Connection", "Upgrade, close");
    } else {
        push_header(&mut out, "Connection", "close");
    }
    let body = match reason {
        "" => String::new(),
        _ => format!("{reason}\n"),
    };
    // RFC 9110 section 8.6.
    if status != 204 {
        push_header(&mut out, "Content-Type", "text/plain; charset=utf-8");
        push_header(&mut out, "Content-Length", &body.len().to_string());
    }
    for (name, value) in headers {
        push_header(&mut out, name, value);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.as_bytes());
    out
}

/// Appends one header. A line break or other control character in the value, which could begin a
/// header of its own, becomes a space.
pub(super) fn push_header(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let value = value.bytes();
    out.extend(value.map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Refused",
    }
}
