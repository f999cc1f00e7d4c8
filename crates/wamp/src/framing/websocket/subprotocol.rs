//! The WebSocket subprotocols that name WAMP's serializers. WAMP, "WebSocket Transport".

use crate::Serializer;

/// The name to negotiate.
pub fn subprotocol(serializer: Serializer, batched: bool) -> &'static str {
    match (serializer, batched) {
        (Serializer::Json, false) => "wamp.2.json",
        (Serializer::Json, true) => "wamp.2.json.batched",
        (Serializer::MsgPack, false) => "wamp.2.msgpack",
        (Serializer::MsgPack, true) => "wamp.2.msgpack.batched",
        (Serializer::Cbor, false) => "wamp.2.cbor",
        (Serializer::Cbor, true) => "wamp.2.cbor.batched",
    }
}

/// The serializer and whether messages come in batches, of a name that was negotiated.
pub fn from_subprotocol(name: &str) -> Option<(Serializer, bool)> {
    Serializer::ALL
        .into_iter()
        .flat_map(|serializer| [(serializer, false), (serializer, true)])
        .find(|&(serializer, batched)| subprotocol(serializer, batched) == name)
}
