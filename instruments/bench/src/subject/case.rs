//! The cases: a socket, a framing and a serializer, and their common name in all reports.

use std::fmt;
use std::str::FromStr;

use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::DeflateConfig;
use serde::{Deserialize, Serialize};

use super::ParseError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Socket {
    Unix,
    Tcp,
}

/// The framing of messages on the stream (WAMP basic profile, "Transports").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Transport {
    RawSocket,
    /// WAMP over WebSocket, one message per WebSocket message.
    WebSocket,
    /// WAMP over WebSocket, batched subprotocol.
    WebSocketBatched,
    /// WAMP over WebSocket with permessage-deflate, each message after the others (context takeover).
    WebSocketDeflated,
    /// The same, each message on its own.
    WebSocketDeflatedApart,
}

impl Transport {
    /// Whether it is either of the two WebSocket transports.
    pub fn is_websocket(self) -> bool {
        self != Self::RawSocket
    }

    /// Whether a WebSocket message has several messages of WAMP.
    pub fn is_batched(self) -> bool {
        self == Self::WebSocketBatched
    }

    /// The compression that its clients offer, and must be granted.
    pub fn deflate(self) -> Option<DeflateConfig> {
        let is_apart = match self {
            Self::WebSocketDeflated => false,
            Self::WebSocketDeflatedApart => true,
            Self::RawSocket | Self::WebSocket | Self::WebSocketBatched => return None,
        };
        Some(DeflateConfig {
            no_context_takeover: is_apart,
            peer_no_context_takeover: is_apart,
            ..DeflateConfig::default()
        })
    }

    /// The last part of a case's name.
    fn suffix(self) -> &'static str {
        match self {
            Self::RawSocket | Self::WebSocket => "",
            Self::WebSocketBatched => "-batched",
            Self::WebSocketDeflated => "-deflated",
            Self::WebSocketDeflatedApart => "-deflated-apart",
        }
    }
}

/// One combination, written `uds-rawsocket-msgpack`, `tcp-websocket-json`, `tcp-websocket-cbor-batched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    pub socket: Socket,
    pub transport: Transport,
    pub serializer: Serializer,
}

impl Case {
    /// The two pairs of the source document.
    pub const OF_THE_DOCUMENT: [Self; 2] = [
        Self {
            socket: Socket::Unix,
            transport: Transport::RawSocket,
            serializer: Serializer::MsgPack,
        },
        Self {
            socket: Socket::Tcp,
            transport: Transport::WebSocket,
            serializer: Serializer::Json,
        },
    ];

    /// Whether a router has to accept permessage-deflate for them.
    pub(crate) fn any_deflated(cases: &[Self]) -> bool {
        cases.iter().any(|case| case.transport.deflate().is_some())
    }

    /// The prefix of the source document's lines: `WAMP-UDS-RawSocket-MessagePack`.
    pub fn document_prefix(&self) -> String {
        let socket = match self.socket {
            Socket::Unix => "UDS",
            Socket::Tcp => "TCP",
        };
        let transport = match self.transport {
            Transport::RawSocket => "RawSocket",
            _ => "WebSocket",
        };
        let serializer = match self.serializer {
            Serializer::Json => "JSON",
            Serializer::MsgPack => "MessagePack",
            Serializer::Cbor => "CBOR",
        };
        let suffix = match self.transport {
            Transport::RawSocket | Transport::WebSocket => "",
            Transport::WebSocketBatched => "-Batched",
            Transport::WebSocketDeflated => "-Deflated",
            Transport::WebSocketDeflatedApart => "-DeflatedApart",
        };
        format!("WAMP-{socket}-{transport}-{serializer}{suffix}")
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let socket = match self.socket {
            Socket::Unix => "uds",
            Socket::Tcp => "tcp",
        };
        let transport = if self.transport.is_websocket() {
            "websocket"
        } else {
            "rawsocket"
        };
        let suffix = self.transport.suffix();
        write!(f, "{socket}-{transport}-{}{suffix}", self.serializer)
    }
}

impl FromStr for Case {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parts: Vec<&str> = text.split('-').collect();
        let (socket, transport, serializer, kind) = match parts[..] {
            [socket, transport, serializer] => (socket, transport, serializer, None),
            [socket, transport, serializer, "batched"] => (
                socket,
                transport,
                serializer,
                Some(Transport::WebSocketBatched),
            ),
            [socket, transport, serializer, "deflated"] => (
                socket,
                transport,
                serializer,
                Some(Transport::WebSocketDeflated),
            ),
            [socket, transport, serializer, "deflated", "apart"] => (
                socket,
                transport,
                serializer,
                Some(Transport::WebSocketDeflatedApart),
            ),
            _ => {
                return Err(ParseError::new(
                    text,
                    "a case is SOCKET-TRANSPORT-SERIALIZER, as in uds-rawsocket-msgpack",
                ));
            }
        };
        let socket = match socket {
            "uds" => Socket::Unix,
            "tcp" => Socket::Tcp,
            _ => return Err(ParseError::new(text, "the socket of a case is uds or tcp")),
        };
        let transport = match (transport, kind) {
            ("rawsocket", None) => Transport::RawSocket,
            ("websocket", kind) => kind.unwrap_or(Transport::WebSocket),
            ("rawsocket", Some(_)) => {
                return Err(ParseError::new(
                    text,
                    "only websocket can be batched or deflated",
                ));
            }
            _ => {
                return Err(ParseError::new(
                    text,
                    "the transport of a case is rawsocket or websocket",
                ));
            }
        };
        let serializer = Serializer::from_name(serializer).ok_or_else(|| {
            ParseError::new(text, "the serializer of a case is json, msgpack or cbor")
        })?;
        Ok(Self {
            socket,
            transport,
            serializer,
        })
    }
}

/// The serializer in a worker's arguments; the type itself belongs to a crate without serde.
pub(crate) mod serializer_name {
    use crosstie_wamp::Serializer;
    use serde::{Deserialize, Deserializer, Serializer as Writer, de::Error};

    pub(crate) fn serialize<W: Writer>(value: &Serializer, writer: W) -> Result<W::Ok, W::Error> {
        writer.serialize_str(value.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        reader: D,
    ) -> Result<Serializer, D::Error> {
        let name = String::deserialize(reader)?;
        Serializer::from_name(&name)
            .ok_or_else(|| D::Error::custom(format!("`{name}` is no serializer")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        #[track_caller]
        fn check(name: &str, prefix: &str) {
            let case: Case = name.parse().unwrap();
            assert_eq!(case.to_string(), name);
            assert_eq!(case.document_prefix(), prefix);
        }
        check("uds-rawsocket-msgpack", "WAMP-UDS-RawSocket-MessagePack");
        check("tcp-websocket-json", "WAMP-TCP-WebSocket-JSON");
        check("tcp-rawsocket-cbor", "WAMP-TCP-RawSocket-CBOR");
        check(
            "uds-websocket-msgpack-batched",
            "WAMP-UDS-WebSocket-MessagePack-Batched",
        );
        check(
            "tcp-websocket-json-deflated",
            "WAMP-TCP-WebSocket-JSON-Deflated",
        );
        check(
            "tcp-websocket-cbor-deflated-apart",
            "WAMP-TCP-WebSocket-CBOR-DeflatedApart",
        );
    }

    #[test]
    fn errors_of_names_list_the_expected_ones() {
        #[track_caller]
        fn check(name: &str, expected: &str) {
            let error = name.parse::<Case>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        check("", "SOCKET-TRANSPORT-SERIALIZER");
        check("uds-rawsocket", "SOCKET-TRANSPORT-SERIALIZER");
        check("udp-rawsocket-json", "uds or tcp");
        check("uds-longpoll-json", "rawsocket or websocket");
        check("uds-rawsocket-ubjson", "json, msgpack or cbor");
        check("uds-rawsocket-json-batched", "only websocket");
        check("uds-rawsocket-json-deflated", "only websocket");
    }
}
