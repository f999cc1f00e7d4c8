"""The serializers that components can use, by their names in a configuration."""

from __future__ import annotations

import base64
import decimal
import json

from autobahn.wamp import serializer as autobahn
from autobahn.wamp.serializer import JsonObjectSerializer, JsonSerializer, Serializer

# Of those that Autobahn offers where their libraries are installed, in order of preference.
KNOWN = ("cbor", "msgpack", "json", "ubjson")
BATCHED = ".batched"

ENCODER = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, default=lambda value: beyond_json(value)
)
DECODER = json.JSONDecoder()
# WAMP marks bytes in JSON by a string that begins with a null character.
ESCAPED_NULL = b"\\u0000"


class Json(JsonObjectSerializer):
    """Autobahn's JSON in the form it has by default, at the speed of Python's own.

    Autobahn looks into every string for the mark of bytes, which Python's fast scanner cannot; so
    it scans in Python (40 µs for a message that takes 3). A message without any escaped null
    character has no such string.
    """

    def serialize(self, message):
        """Encode one message."""
        octets = ENCODER.encode(message).encode()
        return octets + b"\x18" if self._batched else octets

    def unserialize(self, payload):
        """Decode the message, or the batch, of one frame."""
        if self._batched or ESCAPED_NULL in payload:
            return super().unserialize(payload)
        return [DECODER.decode(payload.decode())]


def beyond_json(value):
    """Encode what JSON itself cannot, as Autobahn does."""
    if isinstance(value, bytes):
        return "\0" + base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise TypeError(f"an object of type {type(value).__name__} cannot be sent as JSON")


class FastJsonSerializer(JsonSerializer):
    """WAMP in JSON."""

    def __init__(self, batched=False):
        super().__init__(batched)
        Serializer.__init__(self, Json(batched=batched))
        if batched:
            self.SERIALIZER_ID = "json" + BATCHED


def available() -> list[str]:
    """Return the names that can be used here."""
    return [name for name in KNOWN if name in autobahn.SERID_TO_SER]


def serializer(name: str) -> Serializer:
    """Make the serializer with this name; ValueError where there is none."""
    plain, batched = name.removesuffix(BATCHED), name.endswith(BATCHED)
    if plain not in available():
        raise ValueError(f"no serializer '{name}' here; there are {', '.join(available())}")
    kind = FastJsonSerializer if plain == "json" else autobahn.SERID_TO_SER[plain]
    return kind(batched=batched)
