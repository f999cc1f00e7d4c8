//! The opening handshake as a driver makes it a hundred thousand times: the request's bytes are made once, and an
//! answer with the bytes of one already parsed is not parsed again.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use crosstie_wamp::framing::websocket::{ClientRequest, accept_key, key};
use serde::{Deserialize, Serialize};

use crate::subject::{Endpoint, ParseError, Url};

/// A WebSocket server and the requested resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub address: SocketAddr,
    /// The `Host` field.
    pub host: String,
    pub resource: String,
}

impl Target {
    pub(crate) fn new(url: &Url) -> Result<Self, ParseError> {
        let fail = |expected| {
            let text = format!("{}{}", url.host, url.resource);
            Err(ParseError::new(&text, expected))
        };
        match (&url.endpoint, url.websocket) {
            (Endpoint::Tcp(address), true) => Ok(Self {
                address: *address,
                host: url.host.clone(),
                resource: url.resource.clone(),
            }),
            (Endpoint::Unix(_), true) => fail("connections are opened over TCP: ws://HOST:PORT"),
            (_, false) => fail("a WebSocket URL begins with ws://"),
        }
    }

    /// As a user would type it.
    pub(crate) fn url(&self) -> String {
        format!("ws://{}{}", self.host, self.resource)
    }

    fn request<'a>(&'a self, key: &'a str) -> ClientRequest<'a> {
        ClientRequest {
            host: &self.host,
            target: &self.resource,
            key,
            protocols: &[],
            extensions: None,
            headers: &[],
        }
    }
}

/// Prepared requests, and the expected answers.
#[derive(Debug)]
pub(super) struct Openings {
    target: Target,
    requests: Vec<Request>,
    /// The first answer that was parsed.
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Request {
    key: String,
    accept: String,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Answer {
    bytes: Vec<u8>,
    /// The offset of the accept key in them.
    accept_at: usize,
}

/// Enough that an answer to another request is noticed, few enough for the cache.
const REQUESTS: usize = 16;

impl Openings {
    pub(super) fn new(target: &Target) -> Self {
        let request = |_| {
            let random = || RandomState::new().hash_one(0).to_ne_bytes();
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&random());
            nonce[8..].copy_from_slice(&random());
            let key = key(nonce);
            Request {
                accept: accept_key(&key),
                bytes: target.request(&key).to_bytes(),
                key,
            }
        };
        Self {
            requests: (0..REQUESTS).map(request).collect(),
            target: target.clone(),
            answer: None,
        }
    }

    /// The request of the `number`th connection.
    pub(super) fn request(&self, number: usize) -> &[u8] {
        &self.requests[number % REQUESTS].bytes
    }

    /// The length of the answer at the front of `bytes`; `None` while it is incomplete.
    pub(super) fn answer(&mut self, number: usize, bytes: &[u8]) -> Result<Option<usize>, String> {
        let request = &self.requests[number % REQUESTS];
        if let Some(answer) = &self.answer
            && answer.is_repeated_by(bytes, request.accept.as_bytes())
        {
            return Ok(Some(answer.bytes.len()));
        }
        let client = self.target.request(&request.key);
        match client.accept(bytes) {
            Ok(None) => Ok(None),
            Ok(Some((length, _))) => {
                self.answer = Answer::new(&bytes[..length], request.accept.as_bytes());
                Ok(Some(length))
            }
            Err(error) => Err(format!("{error}; it began with `{}`", first_line(bytes))),
        }
    }
}

impl Answer {
    fn new(bytes: &[u8], accept: &[u8]) -> Option<Self> {
        let accept_at = bytes.windows(accept.len()).position(|w| w == accept)?;
        Some(Self {
            bytes: bytes.to_vec(),
            accept_at,
        })
    }

    /// Whether `bytes` begin with the same answer to another key.
    fn is_repeated_by(&self, bytes: &[u8], accept: &[u8]) -> bool {
        let accept_end = self.accept_at + accept.len();
        bytes.len() >= self.bytes.len()
            && bytes[..self.accept_at] == self.bytes[..self.accept_at]
            && &bytes[self.accept_at..accept_end] == accept
            && bytes[accept_end..self.bytes.len()] == self.bytes[accept_end..]
    }
}

/// The first line of a foreign server's answer, safe for a terminal.
pub(super) fn first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    let mut text = String::new();
    for character in line.trim_end().chars().take(80) {
        if character.is_control() {
            let _ = write!(text, "{}", character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crosstie_wamp::framing::websocket::accept_response;

    use super::*;

    fn openings() -> Openings {
        Openings::new(&Target {
            address: "127.0.0.1:9000".parse().unwrap(),
            host: "127.0.0.1:9000".into(),
            resource: "/".into(),
        })
    }

    fn answer_to(openings: &Openings, number: usize) -> Vec<u8> {
        let key = &openings.requests[number % REQUESTS].key;
        accept_response(key, None, None, &[("Server", "x")])
    }

    #[test]
    fn answers_are_read_once_and_checked_always() {
        let mut openings = openings();
        for number in 0..40 {
            let answer = answer_to(&openings, number);
            let (length, cut) = (answer.len(), answer.len() - 1);
            assert_eq!(openings.answer(number, &answer[..cut]), Ok(None));
            let more = [&answer[..], &[0x88, 0]].concat();
            assert_eq!(openings.answer(number, &more), Ok(Some(length)));
            let error = openings.answer(number + 1, &answer).unwrap_err();
            assert!(error.contains("Sec-WebSocket-Accept"), "{error}");
        }
    }

    #[test]
    fn malformed_answers_are_quoted() {
        #[track_caller]
        fn check(bytes: &[u8], expected: &str) {
            let error = openings().answer(0, bytes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        check(b"SSH-2.0-OpenSSH_9.2\r\nx", "`SSH-2.0-OpenSSH_9.2`");
        check(b"HTTP/1.1 404 Not Found\r\n\r\n", "101, got 404");
        check(b"\x7f\0\x01\n", "`\\u{7f}\\u{0}\\u{1}`");
        let long = [b'x'; 1000];
        assert_eq!(first_line(&long).len(), 80);
    }
}
