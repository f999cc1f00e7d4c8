//! The serializers a session can choose (WAMP basic profile, "Serializations").

use std::fmt;

/// How a session's messages are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Serializer {
    /// RFC 8259, text.
    Json,
    /// The MessagePack specification, binary.
    MsgPack,
    /// RFC 8949, binary.
    Cbor,
}

impl Serializer {
    /// Every serializer, in the order a client offers them.
    pub const ALL: [Self; 3] = [Self::Cbor, Self::MsgPack, Self::Json];

    /// The name used in WebSocket subprotocols and configuration (`json`, `msgpack`, `cbor`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::MsgPack => "msgpack",
            Self::Cbor => "cbor",
        }
    }

    /// The serializer of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// A dense index, for tables with one entry per serializer.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether its bytes are binary, and so travel in binary WebSocket frames.
    pub fn is_binary(self) -> bool {
        self != Self::Json
    }
}

impl fmt::Display for Serializer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
