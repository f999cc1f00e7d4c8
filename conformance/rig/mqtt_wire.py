"""MQTT 3.1, 3.1.1 and 5 in octets: packets as values, encoded as a client and decoded as one.

`encode` and `decode` know no state. A value that the specification forbids can be encoded, since
tests send such packets; what a broker sends has to be right, or `decode` raises an AssertionError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

V31, V311, V5 = 3, 4, 5
PROTOCOL = {V31: "MQIsdp", V311: "MQTT", V5: "MQTT"}

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP = 8, 9, 10, 11, 12, 13
DISCONNECT, AUTH = 14, 15

# Section 2.2.2.2 of MQTT 5: identifier, name and type of each property.
PROPERTIES = {
    1: ("payload_format", "octet"),
    2: ("message_expiry", "u32"),
    3: ("content_type", "text"),
    8: ("response_topic", "text"),
    9: ("correlation_data", "octets"),
    11: ("subscription_identifier", "variable"),
    17: ("session_expiry", "u32"),
    18: ("assigned_client_id", "text"),
    19: ("server_keep_alive", "u16"),
    21: ("authentication_method", "text"),
    22: ("authentication_data", "octets"),
    23: ("request_problem_information", "octet"),
    24: ("will_delay", "u32"),
    25: ("request_response_information", "octet"),
    26: ("response_information", "text"),
    28: ("server_reference", "text"),
    31: ("reason_string", "text"),
    33: ("receive_maximum", "u16"),
    34: ("topic_alias_maximum", "u16"),
    35: ("topic_alias", "u16"),
    36: ("maximum_qos", "octet"),
    37: ("retain_available", "octet"),
    38: ("user_property", "pair"),
    39: ("maximum_packet_size", "u32"),
    40: ("wildcard_available", "octet"),
    41: ("subscription_identifiers_available", "octet"),
    42: ("shared_available", "octet"),
}
IDENTIFIERS = {name: number for number, (name, _) in PROPERTIES.items()}
# A packet may have several of these; their value is a list.
REPEATED = {"user_property", "subscription_identifier"}
NUMBERS = {"octet": "!B", "u16": "!H", "u32": "!I"}


@dataclass
class Will:
    """A message that the broker publishes when its client is lost."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    properties: dict = field(default_factory=dict)


@dataclass
class Connect:
    """The first packet of a connection."""

    client_id: str = ""
    clean: bool = True
    keep_alive: int = 0
    will: Will | None = None
    user: str | None = None
    password: bytes | None = None
    properties: dict = field(default_factory=dict)
    # Another name and level than those of the version.
    protocol: str | None = None
    level: int | None = None
    # Bits of the flags to turn over.
    flags: int = 0


@dataclass
class Connack:
    """The answer to CONNECT."""

    code: int = 0
    present: bool = False
    properties: dict = field(default_factory=dict)


@dataclass
class Publish:
    """A message, in either direction."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    id: int = 0
    dup: bool = False
    properties: dict = field(default_factory=dict)


@dataclass
class Ack:
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    kind: int
    id: int
    code: int = 0
    properties: dict = field(default_factory=dict)


@dataclass
class Filter:
    """One filter of a SUBSCRIBE with its options; those beside the QoS are MQTT 5's."""

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    # Bits that have to be 0.
    reserved: int = 0

    @property
    def options(self) -> int:
        """Return the octet after the filter."""
        flags = self.no_local << 2 | self.retain_as_published << 3
        return self.qos | flags | self.retain_handling << 4 | self.reserved


@dataclass
class Subscribe:
    """A request for messages."""

    id: int
    filters: list[Filter]
    properties: dict = field(default_factory=dict)


@dataclass
class Unsubscribe:
    """The end of such a request."""

    id: int
    filters: list[str]
    properties: dict = field(default_factory=dict)


@dataclass
class Codes:
    """SUBACK or UNSUBACK: one code for each filter; UNSUBACK has none before MQTT 5."""

    kind: int
    id: int
    codes: list[int]
    properties: dict = field(default_factory=dict)


@dataclass
class Ping:
    """PINGREQ or PINGRESP."""

    kind: int = PINGRESP


@dataclass
class Disconnect:
    """The last packet of a connection."""

    code: int = 0
    properties: dict = field(default_factory=dict)


@dataclass
class Auth:
    """One step of an authentication."""

    code: int = 0
    properties: dict = field(default_factory=dict)


Packet = (
    Connect | Connack | Publish | Ack | Subscribe | Unsubscribe | Codes | Ping | Disconnect | Auth
)


def text(value: str | bytes) -> bytes:
    """Return a text, or octets, after their length."""
    octets = value.encode() if isinstance(value, str) else value
    return struct.pack("!H", len(octets)) + octets


def variable(value: int) -> bytes:
    """Return a number in seven bits an octet."""
    octets = bytearray()
    while True:
        value, low = divmod(value, 128)
        octets.append(low | (0x80 if value else 0))
        if not value:
            return bytes(octets)


def properties(values: dict) -> bytes:
    """Return properties after their length; the value of a repeated one is a list."""
    octets = b""
    for name, value in values.items():
        number = IDENTIFIERS[name]
        for each in value if isinstance(value, list) else [value]:
            octets += bytes([number]) + _property(PROPERTIES[number][1], each)
    return variable(len(octets)) + octets


def _property(kind: str, value) -> bytes:
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind == "variable":
        return variable(value)
    if kind == "pair":
        return text(value[0]) + text(value[1])
    return text(value)


def packet(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    """Return a whole packet."""
    return bytes([kind << 4 | flags]) + variable(len(body)) + body


def encode(value: Packet, version: int) -> bytes:
    """Return the octets of what a client sends."""
    match value:
        case Connect():
            return _connect(value, version)
        case Publish():
            return _publish(value, version)
        case Ack():
            flags = 2 if value.kind == PUBREL else 0
            return packet(value.kind, struct.pack("!H", value.id) + _code(value, version), flags)
        case Subscribe():
            filters = b"".join(text(each.filter) + bytes([each.options]) for each in value.filters)
            return packet(SUBSCRIBE, _request(value, version) + filters, 2)
        case Unsubscribe():
            filters = b"".join(map(text, value.filters))
            return packet(UNSUBSCRIBE, _request(value, version) + filters, 2)
        case Ping():
            return packet(value.kind)
        case Disconnect():
            return packet(DISCONNECT, _code(value, version))
        case Auth():
            return packet(AUTH, bytes([value.code]) + properties(value.properties))
    raise TypeError(f"no client sends {value}")


def _request(value: Subscribe | Unsubscribe, version: int) -> bytes:
    """Return what comes before the filters."""
    return struct.pack("!H", value.id) + (properties(value.properties) if version == V5 else b"")


def _code(value: Ack | Disconnect, version: int) -> bytes:
    """Return a reason code and properties, as short as MQTT 5 has them."""
    if version < V5 or not (value.code or value.properties):
        return b""
    return bytes([value.code]) + (properties(value.properties) if value.properties else b"")


def _connect(value: Connect, version: int) -> bytes:
    will = value.will
    flags = value.clean << 1
    if will:
        flags |= 1 << 2 | will.qos << 3 | will.retain << 5
    flags |= (value.user is not None) << 7 | (value.password is not None) << 6
    body = text(PROTOCOL[version] if value.protocol is None else value.protocol)
    body += bytes([version if value.level is None else value.level, flags ^ value.flags])
    body += struct.pack("!H", value.keep_alive)
    if version == V5:
        body += properties(value.properties)
    body += text(value.client_id)
    if will:
        body += properties(will.properties) if version == V5 else b""
        body += text(will.topic) + text(will.payload)
    for each in (value.user, value.password):
        body += b"" if each is None else text(each)
    return packet(CONNECT, body)


def _publish(value: Publish, version: int) -> bytes:
    body = text(value.topic)
    if value.qos:
        body += struct.pack("!H", value.id)
    if version == V5:
        body += properties(value.properties)
    flags = value.dup << 3 | value.qos << 1 | value.retain
    return packet(PUBLISH, body + value.payload, flags)


class Reading:
    """The octets of one packet, read from the front."""

    def __init__(self, octets: bytes):
        self._octets = octets
        self._at = 0

    @property
    def has_more(self) -> bool:
        """Whether anything is left."""
        return self._at < len(self._octets)

    def octets(self, count: int) -> bytes:
        """Return so many."""
        found = self._octets[self._at : self._at + count]
        assert len(found) == count, f"{count} octets are missing from {self._octets!r}"
        self._at += count
        return found

    def rest(self) -> bytes:
        """Return what is left."""
        return self.octets(len(self._octets) - self._at)

    def number(self, kind: str) -> int:
        """Return a number of fixed length."""
        (found,) = struct.unpack(NUMBERS[kind], self.octets(struct.calcsize(NUMBERS[kind])))
        return found

    def variable(self) -> int:
        """Return a number in seven bits an octet."""
        value = 0
        for shift in (0, 7, 14, 21):
            octet = self.number("octet")
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
        raise AssertionError("a number of more than four octets")

    def binary(self) -> bytes:
        """Return octets after their length."""
        return self.octets(self.number("u16"))

    def text(self) -> str:
        """Return a text."""
        return self.binary().decode()

    def properties(self, version: int) -> dict:
        """Return the properties, of which other versions have none."""
        if version < V5:
            return {}
        part = Reading(self.octets(self.variable()))
        found: dict = {}
        while part.has_more:
            name, kind = PROPERTIES[part.variable()]
            value = part._property(kind)
            if name in REPEATED:
                found.setdefault(name, []).append(value)
            else:
                assert name not in found, f"{name} comes twice"
                found[name] = value
        return found

    def _property(self, kind: str):
        if kind in NUMBERS:
            return self.number(kind)
        if kind == "pair":
            return self.text(), self.text()
        return {"variable": self.variable, "text": self.text, "octets": self.binary}[kind]()


def decode(first: int, body: bytes, version: int) -> Packet:
    """Return what a broker has sent; `first` is the octet before the length."""
    kind, flags, part = first >> 4, first & 0x0F, Reading(body)
    value = _decode(kind, flags, part, version)
    assert not part.has_more, f"octets after {value}"
    return value


def _decode(kind: int, flags: int, part: Reading, version: int) -> Packet:
    if kind == PUBLISH:
        return _published(flags, part, version)
    assert flags == (2 if kind == PUBREL else 0), f"flags {flags} of a packet of kind {kind}"
    if kind == CONNACK:
        present, code = part.octets(2)
        assert present <= 1, f"flags {present} of CONNACK"
        # A broker without MQTT 5 answers in the form of 3.1.1.
        found = part.properties(version) if part.has_more else {}
        return Connack(code, bool(present), found)
    if kind in (PUBACK, PUBREC, PUBREL, PUBCOMP):
        return Ack(kind, part.number("u16"), *_coded(part, version))
    if kind in (SUBACK, UNSUBACK):
        id_, found = part.number("u16"), part.properties(version)
        return Codes(kind, id_, list(part.rest()), found)
    if kind == PINGRESP:
        return Ping()
    assert version == V5, f"a packet of kind {kind}, from a broker"
    if kind == DISCONNECT:
        return Disconnect(*_coded(part, version))
    assert kind == AUTH, f"a packet of kind {kind}, from a broker"
    return Auth(*_coded(part, version))


def _coded(part: Reading, version: int) -> tuple[int, dict]:
    if version < V5 or not part.has_more:
        return 0, {}
    code = part.number("octet")
    return code, part.properties(version) if part.has_more else {}


def _published(flags: int, part: Reading, version: int) -> Publish:
    qos = flags >> 1 & 3
    assert qos < 3, "QoS 3, from a broker"
    topic = part.text()
    id_ = part.number("u16") if qos else 0
    assert bool(id_) == bool(qos), "packet id 0"
    found = part.properties(version)
    return Publish(topic, part.rest(), qos, bool(flags & 1), id_, bool(flags & 8), found)
