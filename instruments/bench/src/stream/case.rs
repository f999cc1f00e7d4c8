//! The cases: one of netperf's tests, over one kind of socket, against a server with one treatment of its input.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::subject::{ParseError, Socket, names};

/// netperf's tests, as far as a server without its control connection can serve them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Test {
    /// `RR`: one connection, one request in flight.
    RequestResponse,
    /// `STREAM`: as much as possible, towards the server.
    Stream,
    /// `CRR`: a connection for each request.
    ConnectRequestResponse,
    /// `MAERTS`: as much as possible, from the server.
    Maerts,
}

impl Test {
    /// The tests of the source document.
    pub(crate) const OF_THE_DOCUMENT: [Self; 3] = [
        Self::RequestResponse,
        Self::Stream,
        Self::ConnectRequestResponse,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RequestResponse => "RR",
            Self::Stream => "STREAM",
            Self::ConnectRequestResponse => "CRR",
            Self::Maerts => "MAERTS",
        }
    }

    /// Whether its figure is transactions per second, not bytes.
    pub(crate) fn is_transactional(self) -> bool {
        matches!(self, Self::RequestResponse | Self::ConnectRequestResponse)
    }
}

/// A test as requested: `TCP_RR`, `UDS_STREAM`, or `CRR` with the socket left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedTest {
    pub test: Test,
    pub socket: Option<Socket>,
}

impl FromStr for NamedTest {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let upper = text.to_ascii_uppercase();
        let (socket, name) = match upper.split_once('_') {
            Some(("TCP", name)) => (Some(Socket::Tcp), name),
            Some(("UDS", name)) => (Some(Socket::Unix), name),
            _ => (None, upper.as_str()),
        };
        let test = match name {
            "RR" => Test::RequestResponse,
            "STREAM" => Test::Stream,
            "CRR" => Test::ConnectRequestResponse,
            "MAERTS" => Test::Maerts,
            _ => {
                let expected = "a test is TCP_RR, TCP_STREAM, TCP_CRR, TCP_MAERTS, or one of \
                                these with UDS_ for a Unix socket";
                return Err(ParseError::new(text, expected));
            }
        };
        Ok(Self { test, socket })
    }
}

/// A stream server's treatment of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Mode {
    Echo,
    Discard,
    /// Ignores it, and sends without end.
    Chargen,
}

impl Mode {
    /// Whether a server of this mode is a peer for this test.
    pub(crate) fn serves(self, test: Test) -> bool {
        match self {
            Self::Echo => test != Test::Maerts,
            Self::Discard => test == Test::Stream,
            Self::Chargen => test == Test::Maerts,
        }
    }
}

names! {
    Mode { Echo = "echo", Discard = "discard", Chargen = "chargen" }
    "a mode is echo, discard or chargen"
}

/// One combination, written `TCP_RR`; if the mode matters, `TCP_STREAM echo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Case {
    pub test: Test,
    pub socket: Socket,
    pub mode: Mode,
}

impl Case {
    /// The measured side of the stream, for the reader of a throughput.
    pub(crate) fn what_counts(self) -> Option<&'static str> {
        match (self.test, self.mode) {
            (Test::Stream, Mode::Echo) => {
                Some("echoed bytes count, each compared with the byte sent")
            }
            (Test::Stream, _) => Some(
                "what the server read counts: the clock stops when it closes after the end of the \
                 stream, not when the last byte fits a buffer",
            ),
            (Test::Maerts, _) => Some("received bytes count; their content is not checked"),
            _ => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let socket = match self.socket {
            Socket::Tcp => "TCP",
            Socket::Unix => "UDS",
        };
        write!(f, "{socket}_{}", self.test.name())?;
        match self.test {
            Test::Stream => write!(f, " {}", self.mode.name()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_have_netperfs_names() {
        #[track_caller]
        fn check(text: &str, expected: Option<(Test, Option<Socket>)>) {
            let expected = expected.map(|(test, socket)| NamedTest { test, socket });
            assert_eq!(text.parse().ok(), expected);
        }
        check("TCP_RR", Some((Test::RequestResponse, Some(Socket::Tcp))));
        check("tcp_stream", Some((Test::Stream, Some(Socket::Tcp))));
        check(
            "UDS_CRR",
            Some((Test::ConnectRequestResponse, Some(Socket::Unix))),
        );
        check("maerts", Some((Test::Maerts, None)));
        check("UDP_RR", None);
        check("TCP_", None);
        check("", None);
    }

    #[test]
    fn cases_are_written() {
        #[track_caller]
        fn check(test: Test, socket: Socket, mode: Mode, expected: &str) {
            assert_eq!(Case { test, socket, mode }.to_string(), expected);
        }
        check(Test::RequestResponse, Socket::Tcp, Mode::Echo, "TCP_RR");
        check(
            Test::Stream,
            Socket::Unix,
            Mode::Discard,
            "UDS_STREAM discard",
        );
        check(Test::Maerts, Socket::Tcp, Mode::Chargen, "TCP_MAERTS");
    }
}
