"""AMQP 0-9-1 in bytes: methods, tables, properties, frames; both right and wrong ones."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

HEADER = b"AMQP\0\0\x09\x01"
METHOD, CONTENT_HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
END = 0xCE

# Name: class, method, arguments. o, h, l, q: unsigned integers of 1, 2, 4, 8 bytes;
# s, S: short and long string; t: table; b: bit.
_METHODS = """
connection.start 10 10 version_major:o version_minor:o properties:t mechanisms:S locales:S
connection.start-ok 10 11 properties:t mechanism:s response:S locale:s
connection.secure 10 20 challenge:S
connection.secure-ok 10 21 response:S
connection.tune 10 30 channel_max:h frame_max:l heartbeat:h
connection.tune-ok 10 31 channel_max:h frame_max:l heartbeat:h
connection.open 10 40 vhost:s capabilities:s insist:b
connection.open-ok 10 41 known_hosts:s
connection.close 10 50 code:h text:s class_id:h method_id:h
connection.close-ok 10 51
connection.blocked 10 60 reason:s
connection.unblocked 10 61
connection.update-secret 10 70 secret:S reason:s
connection.update-secret-ok 10 71
channel.open 20 10 reserved:s
channel.open-ok 20 11 reserved:S
channel.flow 20 20 active:b
channel.flow-ok 20 21 active:b
channel.close 20 40 code:h text:s class_id:h method_id:h
channel.close-ok 20 41
access.request 30 10 realm:s exclusive:b passive:b active:b write:b read:b
access.request-ok 30 11 ticket:h
exchange.declare 40 10 ticket:h exchange:s type:s passive:b durable:b auto_delete:b internal:b nowait:b arguments:t
exchange.declare-ok 40 11
exchange.delete 40 20 ticket:h exchange:s if_unused:b nowait:b
exchange.delete-ok 40 21
exchange.bind 40 30 ticket:h destination:s source:s routing_key:s nowait:b arguments:t
exchange.bind-ok 40 31
exchange.unbind 40 40 ticket:h destination:s source:s routing_key:s nowait:b arguments:t
exchange.unbind-ok 40 51
queue.declare 50 10 ticket:h queue:s passive:b durable:b exclusive:b auto_delete:b nowait:b arguments:t
queue.declare-ok 50 11 queue:s messages:l consumers:l
queue.bind 50 20 ticket:h queue:s exchange:s routing_key:s nowait:b arguments:t
queue.bind-ok 50 21
queue.purge 50 30 ticket:h queue:s nowait:b
queue.purge-ok 50 31 messages:l
queue.delete 50 40 ticket:h queue:s if_unused:b if_empty:b nowait:b
queue.delete-ok 50 41 messages:l
queue.unbind 50 50 ticket:h queue:s exchange:s routing_key:s arguments:t
queue.unbind-ok 50 51
basic.qos 60 10 size:l count:h is_global:b
basic.qos-ok 60 11
basic.consume 60 20 ticket:h queue:s tag:s no_local:b no_ack:b exclusive:b nowait:b arguments:t
basic.consume-ok 60 21 tag:s
basic.cancel 60 30 tag:s nowait:b
basic.cancel-ok 60 31 tag:s
basic.publish 60 40 ticket:h exchange:s routing_key:s mandatory:b immediate:b
basic.return 60 50 code:h text:s exchange:s routing_key:s
basic.deliver 60 60 tag:s delivery:q redelivered:b exchange:s routing_key:s
basic.get 60 70 ticket:h queue:s no_ack:b
basic.get-ok 60 71 delivery:q redelivered:b exchange:s routing_key:s messages:l
basic.get-empty 60 72 reserved:s
basic.ack 60 80 delivery:q multiple:b
basic.reject 60 90 delivery:q requeue:b
basic.recover-async 60 100 requeue:b
basic.recover 60 110 requeue:b
basic.recover-ok 60 111
basic.nack 60 120 delivery:q multiple:b requeue:b
confirm.select 85 10 nowait:b
confirm.select-ok 85 11
tx.select 90 10
tx.select-ok 90 11
tx.commit 90 20
tx.commit-ok 90 21
tx.rollback 90 30
tx.rollback-ok 90 31
"""  # noqa: E501 (a table)
BY_NAME: dict[str, tuple[int, int, list[tuple[str, str]]]] = {}
BY_NUMBER: dict[tuple[int, int], str] = {}
for _line in _METHODS.split("\n"):
    if _line:
        _name, _class, _method, *_fields = _line.split()
        BY_NAME[_name] = int(_class), int(_method), [tuple(f.split(":")) for f in _fields]
        BY_NUMBER[int(_class), int(_method)] = _name
CONTENT = {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}
INTEGERS = {"o": "!B", "h": "!H", "l": "!I", "q": "!Q"}
# In the order of their flags, from the highest bit.
PROPERTIES = {
    "content_type": "s",
    "content_encoding": "s",
    "headers": "t",
    "delivery_mode": "o",
    "priority": "o",
    "correlation_id": "s",
    "reply_to": "s",
    "expiration": "s",
    "message_id": "s",
    "timestamp": "q",
    "type": "s",
    "user_id": "s",
    "app_id": "s",
    "cluster_id": "s",
}


@dataclass
class Frame:
    """One frame."""

    kind: int
    channel: int
    payload: bytes


@dataclass
class Method:
    """A method, and its content where it has one."""

    name: str
    arguments: dict = field(default_factory=dict)
    properties: dict | None = None
    body: bytes = b""

    def __getitem__(self, argument: str):
        return self.arguments[argument]


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Return a well-formed frame."""
    return struct.pack("!BHI", kind, channel, len(payload)) + payload + bytes([END])


def method_payload(method: str, **arguments: object) -> bytes:
    """Return class, method and arguments; what is not given is zero, empty or false."""
    class_id, method_id, fields = BY_NAME[method]
    out = struct.pack("!HH", class_id, method_id)
    unknown = set(arguments) - {name for name, _ in fields}
    assert not unknown, unknown
    bits: list[bool] = []
    for name, kind in fields:
        value = arguments.get(name)
        if kind == "b":
            bits.append(bool(value))
            continue
        if bits:
            out, bits = out + pack_bits(bits), []
        out += pack(kind, value)
    return out + (pack_bits(bits) if bits else b"")


def pack_bits(bits: list[bool]) -> bytes:
    """Return up to eight bits in a byte, the first one lowest."""
    return bytes([sum(bit << at for at, bit in enumerate(bits))])


def pack(kind: str, value) -> bytes:
    """Return one argument."""
    if kind in INTEGERS:
        return struct.pack(INTEGERS[kind], value or 0)
    if kind == "t":
        return table(value or {})
    octets = value.encode() if isinstance(value, str) else value or b""
    return struct.pack("!B" if kind == "s" else "!I", len(octets)) + octets


def table(fields: dict) -> bytes:
    """Return a table; a value may be a pair of the type's letter and the value's bytes."""
    octets = b"".join(pack("s", name) + field_value(value) for name, value in fields.items())
    return struct.pack("!I", len(octets)) + octets


def field_value(value) -> bytes:
    """Return a table's or an array's value, with the type that Python's suggests."""
    match value:
        case (str(letter), bytes(octets)):
            return letter.encode() + octets
        case bool():
            return b"t" + bytes([value])
        case int():
            fits = -(2**31) <= value < 2**31
            return struct.pack("!ci" if fits else "!cq", b"I" if fits else b"l", value)
        case float():
            return struct.pack("!cd", b"d", value)
        case str() | bytes():
            return b"S" + pack("S", value)
        case dict():
            return b"F" + table(value)
        case list():
            octets = b"".join(field_value(each) for each in value)
            return b"A" + struct.pack("!I", len(octets)) + octets
        case datetime():
            return struct.pack("!cQ", b"T", int(value.timestamp()))
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            number = int("".join(map(str, digits))) * (-1 if sign else 1)
            return struct.pack("!cBi", b"D", -int(exponent), number)
        case None:
            return b"V"
    raise TypeError(value)


def properties_payload(properties: dict, body_size: int) -> bytes:
    """Return the payload of a content header."""
    flags, out = 0, b""
    for at, (name, kind) in enumerate(PROPERTIES.items()):
        if name in properties:
            flags |= 0x8000 >> at
            out += pack(kind, properties[name])
    return struct.pack("!HHQH", 60, 0, body_size, flags) + out


def content(properties: dict, body: bytes, channel: int, frame_max: int = 131072) -> bytes:
    """Return the frames that follow a method with content."""
    out = frame(CONTENT_HEADER, channel, properties_payload(properties, len(body)))
    for at in range(0, len(body), frame_max - 8):
        out += frame(BODY, channel, body[at : at + frame_max - 8])
    return out


class Reader:
    """Takes bytes apart."""

    def __init__(self, octets: bytes):
        self.octets = octets
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return so many bytes; that they are there is the peer's duty."""
        taken = self.octets[self.at : self.at + count]
        assert len(taken) == count, f"{count} bytes are missing in {self.octets!r}"
        self.at += count
        return taken

    def number(self, form: str):
        """Return a number in the form of `struct`."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, form: str):
        """Return a string; bytes where it is not UTF-8."""
        octets = self.take(self.number(form))
        try:
            return octets.decode()
        except UnicodeDecodeError:
            return octets

    def value(self, kind: str):
        """Return one argument."""
        if kind in INTEGERS:
            return self.number(INTEGERS[kind])
        if kind == "t":
            return self.table()
        return self.text("!B" if kind == "s" else "!I")

    def table(self) -> dict:
        """Return a table, and keep its types."""
        inner = Reader(self.take(self.number("!I")))
        fields = {}
        while inner.at < len(inner.octets):
            name = inner.text("!B")
            fields[name] = inner.field_value()
        return fields

    def field_value(self):
        """Return a table's value; with its type where Python's would not tell it."""
        kind = self.take(1).decode()
        numbers = {"b": "!b", "B": "!B", "s": "!h", "u": "!H", "i": "!I", "f": "!f", "L": "!q"}
        match kind:
            case "t":
                return self.take(1) != b"\0"
            case "I":
                return self.number("!i")
            case "l":
                return ("l", self.number("!q"))
            case "d":
                return self.number("!d")
            case "S":
                return self.text("!I")
            case "x":
                return ("x", self.take(self.number("!I")))
            case "F":
                return self.table()
            case "A":
                inner = Reader(self.take(self.number("!I")))
                values = []
                while inner.at < len(inner.octets):
                    values.append(inner.field_value())
                return values
            case "T":
                return datetime.fromtimestamp(self.number("!Q"), UTC)
            case "D":
                scale, number = self.number("!B"), self.number("!i")
                return Decimal(number).scaleb(-scale)
            case "V":
                return None
            case _ if kind in numbers:
                return (kind, self.number(numbers[kind]))
        raise AssertionError(f"a table has a value of type {kind!r}")


def parse_method(payload: bytes) -> Method:
    """Take a method apart."""
    reader = Reader(payload)
    numbers = reader.number("!H"), reader.number("!H")
    assert numbers in BY_NUMBER, f"the broker sent the unknown method {numbers}"
    name = BY_NUMBER[numbers]
    arguments, bits, left = {}, 0, 0
    for argument, kind in BY_NAME[name][2]:
        if kind == "b":
            if not left:
                bits, left = reader.number("!B"), 8
            arguments[argument] = bool(bits & 1)
            bits, left = bits >> 1, left - 1
        else:
            left = 0
            arguments[argument] = reader.value(kind)
    assert reader.at == len(payload), f"{name} is followed by {payload[reader.at :]!r}"
    return Method(name, arguments)


def parse_properties(payload: bytes) -> tuple[dict, int]:
    """Take a content header apart; return properties and the size of the body."""
    reader = Reader(payload)
    assert reader.number("!H") == 60
    assert reader.number("!H") == 0
    size, flags = reader.number("!Q"), reader.number("!H")
    properties = {
        name: reader.value(kind)
        for at, (name, kind) in enumerate(PROPERTIES.items())
        if flags & 0x8000 >> at
    }
    assert reader.at == len(payload), payload
    return properties, size
