//! The opening handshake: an HTTP request that becomes a WebSocket. RFC 6455 section 4.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::EMPTY_HEADER;
use sha1::{Digest, Sha1};

use super::http::{
    HEAD_BYTES_MAX, HEADERS_MAX, HandshakeError, HeaderList, Headers, Request, head_length,
    push_header,
};

/// The text that a key is joined with before it is hashed (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The fields that a server reads from a handshake's request (RFC 6455, section 4.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade<'a> {
    pub host: &'a str,
    pub key: &'a str,
    /// The origin of the page, if a browser sends the request.
    pub origin: Option<&'a str>,
    /// Subprotocols, the client's favourite first.
    pub protocols: Vec<&'a str>,
    /// Offered extensions, with their parameters, unread.
    pub extensions: Vec<&'a str>,
}

impl<'a> Request<'a> {
    /// Whether it asks to become a WebSocket, if perhaps in a wrong way.
    pub fn is_websocket_upgrade(&self) -> bool {
        self.headers.lists("Upgrade", "websocket")
    }

    /// The handshake in this request.
    pub fn upgrade(&self) -> Result<Upgrade<'a>, HandshakeError> {
        if !self.is_websocket_upgrade() {
            return Err(HandshakeError::NotUpgrade);
        }
        if self.method != "GET" {
            return Err(HandshakeError::Method);
        }
        if self.version_minor == 0 {
            return Err(HandshakeError::HttpVersion);
        }
        let only = |name| {
            let value = self.headers.only(name);
            value.ok_or(HandshakeError::Header { name })
        };
        if !self.headers.lists("Connection", "Upgrade") {
            return Err(HandshakeError::Header { name: "Connection" });
        }
        if only("Sec-WebSocket-Version")? != "13" {
            return Err(HandshakeError::WebSocketVersion);
        }
        let name = "Sec-WebSocket-Key";
        let key = only(name)?;
        if !STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16) {
            return Err(HandshakeError::Header { name });
        }
        Ok(Upgrade {
            host: only("Host")?,
            key,
            origin: self.header("Origin"),
            protocols: self.headers.list("Sec-WebSocket-Protocol").collect(),
            extensions: self.headers.all("Sec-WebSocket-Extensions").collect(),
        })
    }
}

/// The response after which the connection is a WebSocket.
pub fn accept_response(
    key: &str,
    protocol: Option<&str>,
    extensions: Option<&str>,
    headers: &HeaderList<'_>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
    push_header(&mut out, "Upgrade", "websocket");
    push_header(&mut out, "Connection", "Upgrade");
    push_header(&mut out, "Sec-WebSocket-Accept", &accept_key(key));
    if let Some(protocol) = protocol {
        push_header(&mut out, "Sec-WebSocket-Protocol", protocol);
    }
    if let Some(extensions) = extensions {
        push_header(&mut out, "Sec-WebSocket-Extensions", extensions);
    }
    for (name, value) in headers {
        push_header(&mut out, name, value);
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// The proof that a server has read the key as a WebSocket's.
pub fn accept_key(key: &str) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    STANDARD.encode(digest)
}

/// A key from a fresh nonce.
pub fn key(nonce: [u8; 16]) -> String {
    STANDARD.encode(nonce)
}

/// The wishes of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest<'a> {
    /// With the port, if it is not the scheme's own.
    pub host: &'a str,
    /// The path, with the query if there is one.
    pub target: &'a str,
    /// See [`key`].
    pub key: &'a str,
    /// The favourite first.
    pub protocols: &'a [&'a str],
    pub extensions: Option<&'a str>,
    pub headers: &'a HeaderList<'a>,
}

/// The parameters that the server agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// One of those offered.
    pub protocol: Option<&'a str>,
    /// To be checked against the offer.
    pub extensions: Vec<&'a str>,
}

impl<'a> ClientRequest<'a> {
    /// The bytes to send first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(b"GET ");
        // A space or line break would end the target early and begin something else.
        let target = self.target.bytes();
        out.extend(target.map(|byte| if byte <= b' ' { b'_' } else { byte }));
        out.extend_from_slice(b" HTTP/1.1\r\n");
        push_header(&mut out, "Host", self.host);
        push_header(&mut out, "Upgrade", "websocket");
        push_header(&mut out, "Connection", "Upgrade");
        push_header(&mut out, "Sec-WebSocket-Version", "13");
        push_header(&mut out, "Sec-WebSocket-Key", self.key);
        if !self.protocols.is_empty() {
            push_header(
                &mut out,
                "Sec-WebSocket-Protocol",
                &self.protocols.join(", "),
            );
        }
        if let Some(extensions) = self.extensions {
            push_header(&mut out, "Sec-WebSocket-Extensions", extensions);
        }
        for (name, value) in self.headers {
            push_header(&mut out, name, value);
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// Reads the server's answer from the start of `bytes`, and says how many bytes it has.
    /// None: it is not there whole. Section 4.1.
    pub fn accept<'o>(
        &self,
        bytes: &'o [u8],
    ) -> Result<Option<(usize, Accepted<'o>)>, ResponseError> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let head = head_length(bytes, HEAD_BYTES_MAX, |bytes| response.parse(bytes));
        let Some(length) = head.map_err(ResponseError::Head)? else {
            return Ok(None);
        };
        let status = response.code.unwrap_or(0);
        if status != 101 {
            return Err(ResponseError::Status { status });
        }
        let headers = Headers::new(response.headers);
        let wrong = |name| Err(ResponseError::Header { name });
        if !headers.lists("Upgrade", "websocket") {
            return wrong("Upgrade");
        }
        if !headers.lists("Connection", "Upgrade") {
            return wrong("Connection");
        }
        if headers.only("Sec-WebSocket-Accept") != Some(&accept_key(self.key)) {
            return wrong("Sec-WebSocket-Accept");
        }
        let mut protocols = headers.list("Sec-WebSocket-Protocol");
        let protocol = protocols.next();
        let offered = protocol.is_none_or(|protocol| self.protocols.contains(&protocol));
        if !offered || protocols.next().is_some() {
            return wrong("Sec-WebSocket-Protocol");
        }
        let extensions: Vec<_> = headers.all("Sec-WebSocket-Extensions").collect();
        if !extensions.is_empty() && self.extensions.is_none() {
            return wrong("Sec-WebSocket-Extensions");
        }
        let accepted = Accepted {
            protocol,
            extensions,
        };
        Ok(Some((length, accepted)))
    }
}

/// A fault in a server's answer.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// Not an HTTP response, or too large a one.
    Head(HandshakeError),
    /// The server refused.
    Status { status: u16 },
    /// A header of the handshake is missing, doubled, wrong, or was not asked for.
    Header { name: &'static str },
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(HandshakeError::Malformed) => f.write_str("not an HTTP response"),
            Self::Head(error) => error.fmt(f),
            Self::Status { status } => write!(f, "expected HTTP status 101, got {status}"),
            Self::Header { name } => write!(f, "missing or wrong header {name}"),
        }
    }
}

impl std::error::Error for ResponseError {}
