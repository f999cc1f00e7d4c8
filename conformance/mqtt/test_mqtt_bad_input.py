"""Packets that no client may send: each ends its connection and no other; MQTT 5 tells why.

A row has the octets after a CONNECT that was accepted, or in place of it. mosquitto 2.0.11 was sent
all of them. It closes at most, without a word at many, and lets these pass: answers of a broker's,
flags and content of PINGREQ, flags of PUBACK, payload format 2, a response topic with a wildcard, a
client's subscription identifier, No Local with a share, shares without a name or a filter, codes of
PUBACK that there are not, authentication data without a method.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from rig import mqtt_wire as wire
from rig.mqtt_broker import Broker
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5, V31, V311, packet, text

MALFORMED, PROTOCOL, IN_USE = 0x81, 0x82, 0x91
FILTER, TOPIC = 0x8F, 0x90
# Section 1.5.4: none of these is UTF-8 that may be sent.
NO_TEXT = [b"\xff", b"\xc0\x80", b"a\0b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]


def id_(number: int) -> bytes:
    return struct.pack("!H", number)


def v5(version: int, octets: bytes = b"\0") -> bytes:
    """Return properties, if the version has any."""
    return octets if version == V5 else b""


def of_every_version(version: int) -> Iterator[tuple[str, bytes]]:
    """Return packets that are wrong in all of them; the name is what is wrong."""
    none = v5(version)
    filter_ = text("a") + b"\0"
    yield "kind 0", packet(0)
    yield "CONNACK", packet(wire.CONNACK, b"\0\0" + none)
    yield "SUBACK", packet(wire.SUBACK, id_(1) + none + b"\0")
    yield "UNSUBACK", packet(wire.UNSUBACK, id_(1) + none)
    yield "PINGRESP", packet(wire.PINGRESP)
    yield "length of five octets", b"\x30\xff\xff\xff\xff\x01"
    yield "QoS 3", packet(wire.PUBLISH, text("a") + id_(1) + none, 6)
    yield "QoS 0 with DUP and QoS 3", packet(wire.PUBLISH, text("a") + id_(1) + none, 0xE)
    yield "publish, id 0", packet(wire.PUBLISH, text("a") + id_(0) + none, 2)
    yield "publish, no id", packet(wire.PUBLISH, text("a"), 2)
    yield "publish, empty", packet(wire.PUBLISH)
    yield "publish, topic longer than packet", packet(wire.PUBLISH, b"\0\x09abc")
    yield "publish, topic with +", packet(wire.PUBLISH, text("a/+") + none)
    yield "publish, topic with #", packet(wire.PUBLISH, text("a/#") + none)
    yield "publish, # inside", packet(wire.PUBLISH, text("a#b") + none)
    for octets in NO_TEXT:
        yield f"publish, topic {octets!r}", packet(wire.PUBLISH, text(octets) + none)
        yield (
            f"subscribe, filter {octets!r}",
            packet(wire.SUBSCRIBE, id_(1) + none + text(octets) + b"\0", 2),
        )
    yield "subscribe, flags 0", packet(wire.SUBSCRIBE, id_(1) + none + filter_, 0)
    yield "subscribe, flags 3", packet(wire.SUBSCRIBE, id_(1) + none + filter_, 3)
    yield "subscribe, id 0", packet(wire.SUBSCRIBE, id_(0) + none + filter_, 2)
    yield "subscribe, no filter", packet(wire.SUBSCRIBE, id_(1) + none, 2)
    yield "subscribe, no QoS", packet(wire.SUBSCRIBE, id_(1) + none + text("a"), 2)
    yield "subscribe, QoS 3", packet(wire.SUBSCRIBE, id_(1) + none + text("a") + b"\3", 2)
    yield "subscribe, empty filter", packet(wire.SUBSCRIBE, id_(1) + none + text("") + b"\0", 2)
    for bad in ("a/#/b", "a#", "#a", "a/b#", "a+", "+a", "a/b+/c", "##", "++", "a/+b/c"):
        yield f"subscribe to {bad}", packet(wire.SUBSCRIBE, id_(1) + none + text(bad) + b"\0", 2)
    yield "unsubscribe, no filter", packet(wire.UNSUBSCRIBE, id_(1) + none, 2)
    yield "unsubscribe, flags 0", packet(wire.UNSUBSCRIBE, id_(1) + none + text("a"), 0)
    yield "unsubscribe, id 0", packet(wire.UNSUBSCRIBE, id_(0) + none + text("a"), 2)
    yield "unsubscribe, empty filter", packet(wire.UNSUBSCRIBE, id_(1) + none + text(""), 2)
    yield "pubrel, flags 0", packet(wire.PUBREL, id_(1), 0)
    yield "pubrel, id 0", packet(wire.PUBREL, id_(0), 2)
    yield "puback, id 0", packet(wire.PUBACK, id_(0))
    yield "puback, no id", packet(wire.PUBACK)
    yield "puback, one octet", packet(wire.PUBACK, b"\0")
    yield "puback, flags", packet(wire.PUBACK, id_(1), 2)
    yield "pingreq, flags", packet(wire.PINGREQ, b"", 1)
    yield "pingreq, content", packet(wire.PINGREQ, b"\0")
    yield "disconnect, flags", packet(wire.DISCONNECT, b"", 1)


def of_mqtt_5() -> Iterator[tuple[str, bytes]]:
    """Return packets that are wrong in MQTT 5."""

    def published(properties: bytes, topic: str = "a") -> bytes:
        return packet(wire.PUBLISH, text(topic) + properties)

    def subscribed(options: int, properties: bytes = b"\0", filter_: str = "a") -> bytes:
        return packet(wire.SUBSCRIBE, id_(1) + properties + text(filter_) + bytes([options]), 2)

    yield "no topic, no alias", published(b"\0", "")
    yield "property length beyond the packet", published(b"\x09\x01\x00")
    yield "property length of five octets", published(b"\xff\xff\xff\xff\x01")
    yield "an unknown property", published(b"\x02\x7f\x00")
    yield "a property of CONNECT", published(b"\x05\x11\0\0\0\1")
    yield "a property twice", published(b"\x04\x01\x00\x01\x00")
    yield "a property without its value", published(b"\x01\x02")
    yield "payload format 2", published(b"\x02\x01\x02")
    yield "a response topic with #", published(b"\x06\x08" + text("a/#"))
    yield "a subscription identifier, from a client", published(b"\x02\x0b\x01")
    yield "a user property without a value", published(b"\x04\x26" + text("a"))
    yield "a user property that is no text", published(b"\x07\x26" + text(b"\xff") + text("b"))
    yield "subscribe, reserved bits", subscribed(0xC0)
    yield "subscribe, retain handling 3", subscribed(0x30)
    yield "subscribe, identifier 0", subscribed(0, b"\x02\x0b\x00")
    yield "subscribe, identifier twice", subscribed(0, b"\x04\x0b\x01\x0b\x02")
    yield "subscribe, no local and shared", subscribed(0x04, filter_="$share/g/a")
    yield "a share of no name", subscribed(0, filter_="$share//a")
    yield "a share of no filter", subscribed(0, filter_="$share/g/")
    yield "a share of nothing", subscribed(0, filter_="$share/g")
    yield "a share of a pattern", subscribed(0, filter_="$share/g+/a")
    yield "puback, a code that there is not", packet(wire.PUBACK, id_(1) + b"\x01")
    yield "puback, a topic alias", packet(wire.PUBACK, id_(1) + b"\0\x03\x23\0\1")
    yield "disconnect, a code of the broker's", packet(wire.DISCONNECT, b"\x8d\0\0")
    yield "disconnect, a code that there is not", packet(wire.DISCONNECT, b"\x01")
    yield "auth, without a method", packet(wire.AUTH, b"\x18\0")


SOUND = wire.Connect("bad")


def in_place_of_connect() -> Iterator[tuple[str, int, bytes]]:
    """Return first packets: what is wrong, the version that they claim, the octets."""
    yield "publish first", V311, packet(wire.PUBLISH, text("a"))
    yield "pingreq first", V311, packet(wire.PINGREQ)
    yield "subscribe first", V5, packet(wire.SUBSCRIBE, id_(1) + b"\0" + text("a") + b"\0", 2)
    yield "auth first", V5, packet(wire.AUTH)
    yield "disconnect first", V5, packet(wire.DISCONNECT)
    yield "something else", V311, b"GET / HTTP/1.1\r\n\r\n"
    yield "empty", V311, packet(wire.CONNECT)
    for version in (V31, V311, V5):

        def with_flags(flags: int, version: int = version, **more: object) -> bytes:
            return wire.encode(wire.Connect("bad", flags=flags, **more), version)

        whole = wire.encode(SOUND, version)
        yield "flags of the packet", version, bytes([whole[0] | 1]) + whole[1:]
        yield "octets after the end", version, bytes([whole[0], whole[1] + 1]) + whole[2:] + b"\0"
        yield "cut short", version, bytes([whole[0], whole[1] - 1]) + whole[2:-1]
        yield "will of QoS 3", version, with_flags(0x18, will=wire.Will("w"))
        yield "QoS of no will", version, with_flags(0x08)
        yield "retain of no will", version, with_flags(0x20)
        yield "will topic with #", version, with_flags(0, will=wire.Will("w/#"))
        yield "user name flag alone", version, with_flags(0x80)
        for octets in (b"\xff", b"a\0"):
            bad = wire.encode(wire.Connect("bad", user="ab"), version).replace(b"ab", octets[:2])
            if len(octets) == 2:
                yield f"user name {octets!r}", version, bad
            yield (
                f"client id {octets!r}",
                version,
                wire.encode(wire.Connect(octets), version),  # type: ignore[arg-type]
            )
    yield "reserved flag", V311, wire.encode(wire.Connect("bad", flags=1), V311)
    yield "password without user name", V311, wire.encode(wire.Connect("bad", password=b"x"), V311)
    for name, octets in {
        "receive maximum 0": b"\x21\0\0",
        "maximum packet size 0": b"\x27\0\0\0\0",
        "request problem information 2": b"\x17\2",
        "session expiry twice": b"\x11\0\0\0\1\x11\0\0\0\1",
        "authentication data alone": b"\x16\0\1x",
        "topic alias": b"\x23\0\1",
        "unknown property": b"\x7f\0",
    }.items():
        body = text("MQTT") + b"\5\2\0\0" + bytes([len(octets)]) + octets + text("bad")
        yield name, V5, packet(wire.CONNECT, body)


# MQTT 3.1 gives these bits no meaning, and forbids nothing about them.
FREE_IN_3_1 = (
    *("subscribe, flags", "unsubscribe, flags", "pubrel, flags", "puback, flags", "pingreq, flags"),
    *("disconnect, flags", "flags of the packet", "QoS of no will", "retain of no will"),
    *("user name flag alone", "user name b'a\\x00'"),
)


def is_free(version: int, name: str) -> bool:
    """Whether the version allows it."""
    return version == V31 and name.startswith(FREE_IN_3_1)


def rows() -> list:
    """Return a parameter for each bad packet after CONNECT."""
    found = [
        pytest.param(version, octets, id=f"{version}: {name}")
        for version in (V31, V311, V5)
        for name, octets in of_every_version(version)
        if not is_free(version, name)
    ]
    return found + [pytest.param(V5, octets, id=f"5 only: {name}") for name, octets in of_mqtt_5()]


def everything_to_its_end(peer: Peer) -> list:
    """Return the packets until the broker closes."""
    heard = []
    while peer._kept or (more := peer._receive_some()):
        if not peer._kept:
            peer._kept = more
        heard.append(peer.hear())
    return heard


@pytest.mark.parametrize(("version", "octets"), rows())
def test_after_connect(crosstie: Broker, version: int, octets: bytes, names) -> None:
    """The packet ends the connection; MQTT 5 tells why."""
    witness = crosstie.client(names.client("w"), V5)
    client = crosstie.client(names.client(), version)
    client.send(octets)
    heard = everything_to_its_end(client)
    if version == V5:
        assert len(heard) == 1, heard
        assert isinstance(heard[0], wire.Disconnect), heard
        assert heard[0].code in (MALFORMED, PROTOCOL, FILTER, TOPIC, 0x94, 0x95, 0x9E), heard
    else:
        assert heard == []
    witness.round_trip()


@pytest.mark.parametrize(
    ("version", "octets"),
    [
        pytest.param(version, octets, id=f"{version}: {name}")
        for name, version, octets in in_place_of_connect()
        if not is_free(version, name)
    ],
)
def test_in_place_of_connect(crosstie: Broker, version: int, octets: bytes, names) -> None:
    """The connection is closed; a CONNACK before that refuses."""
    witness = crosstie.client(names.client("w"), V5)
    peer = crosstie.peer(version)
    peer.send(octets)
    for each in everything_to_its_end(peer):
        assert isinstance(each, wire.Connack), each
        assert not each.present
        assert each.code >= 0x80 if version == V5 else 1 <= each.code <= 5, each
    witness.round_trip()


@pytest.mark.parametrize("count", [0, 1, 2, 6, 12])
def test_a_connect_that_never_comes_whole(crosstie: Broker, count: int) -> None:
    """The client ends it; the node has nothing to say."""
    peer = crosstie.peer(V311)
    peer.send(wire.encode(SOUND, V311)[:count])
    peer.finish()
    assert peer.receive_all() == b""


def test_ids_in_use(crosstie: Broker, version: int, names) -> None:
    """An id that is not free for another kind of request is the client's affair."""
    client = crosstie.client(names.client(), version)
    client.subscribe(names.topic(), qos=1)
    client.say(wire.Publish(names.topic(), b"2", 2, id=5))
    client.say(wire.Publish(names.topic(), b"1", 1, id=5))
    client.say(wire.Subscribe(5, [wire.Filter(names.topic("other"))]))
    answers = [client.expect(wire.Ack).code, client.expect(wire.Ack).code]
    assert all(code in (0, 0x10, IN_USE) for code in answers), answers
    assert client.codes(wire.SUBACK, 5, 1) == [0]
    client.round_trip()
