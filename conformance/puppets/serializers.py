"""autobahn's serializers by the names that WebSocket subprotocols have for them."""

from autobahn.wamp.serializer import CBORSerializer, JsonSerializer, MsgPackSerializer

_CLASSES = {"json": JsonSerializer, "msgpack": MsgPackSerializer, "cbor": CBORSerializer}


def serializer_of(name: str) -> object:
    """Return the serializer of `wamp.2.<name>`."""
    base, _, batched = name.partition(".")
    return _CLASSES[base](batched=bool(batched))
