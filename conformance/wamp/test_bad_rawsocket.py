"""RawSocket handshakes and frames that the specification forbids."""

from __future__ import annotations

import struct

import pytest
from rig import config
from rig.plain import Plain
from rig.rawsocket import MESSAGE, PING, PONG, RawSocket
from rig.session import GOODBYE, HELLO, WELCOME

# WAMP, "RawSocket Transport", the errors of the handshake.
UNSUPPORTED, LENGTH, RESERVED, CONNECTIONS = 1, 2, 3, 4


@pytest.mark.parametrize(
    ("request_octets", "error"),
    [
        (b"\x7f\xf0\0\0", UNSUPPORTED),
        (b"\x7f\xf4\0\0", UNSUPPORTED),
        (b"\x7f\xff\0\0", UNSUPPORTED),
        (b"\x7f\xf1\x01\0", RESERVED),
        (b"\x7f\xf1\0\x01", RESERVED),
        (b"\x7f\xf1\xff\xff", RESERVED),
    ],
)
def test_a_handshake_is_refused_with_its_reason(abused, request_octets, error):
    with RawSocket.tcp(abused.address("tcp")) as peer:
        assert peer.handshake(request_octets) == bytes([0x7F, error << 4, 0, 0])
        peer.expect_end()
        abused.expect_fault(peer)


def test_a_serializer_that_is_not_offered(start_router):
    router = start_router(
        config.plain(config.universal("tcp", config.tcp(), rawsocket={"serializers": ["cbor"]}))
    )
    with RawSocket.tcp(router.address("tcp")) as peer:
        assert peer.handshake(b"\x7f\xf1\0\0") == bytes([0x7F, UNSUPPORTED << 4, 0, 0])
    with RawSocket.tcp(router.address("tcp")).shake_hands("cbor").join() as peer:
        peer.round_trip()


def test_one_connection_too_many(start_router):
    """A RawSocket client gets error 4; the other connections stay."""
    transport = config.universal("tcp", config.tcp(), max_connections=2)
    router = start_router(config.plain(transport))
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as first,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as second,
        RawSocket.tcp(router.address("tcp")) as third,
    ):
        assert third.handshake(b"\x7f\xf1\0\0") == bytes([0x7F, CONNECTIONS << 4, 0, 0])
        third.expect_end()
        first.round_trip()
        second.round_trip()


def test_the_first_octets_may_come_one_by_one(abused):
    with RawSocket.tcp(abused.address("tcp")) as peer:
        for octet in b"\x7f\xf1\0":
            peer.send(bytes([octet]))
        assert peer.handshake(b"\0")[:2] == b"\x7f\xf1"
        peer.serializer = "json"
        peer.join().round_trip()


def test_everything_may_come_at_once(abused):
    hello = b'[1,"realm1",{"roles":{"caller":{}}}]'
    with RawSocket.tcp(abused.address("tcp")) as peer:
        peer.send(b"\x7f\xf1\0\0" + struct.pack("!I", len(hello)) + hello)
        peer.receive(4)
        peer.hear(2)


@pytest.mark.parametrize("exponent", range(1, 16))
def test_lengths_that_are_accepted(abused, exponent):
    with RawSocket.tcp(abused.address("tcp")).shake_hands(exponent=exponent).join() as peer:
        peer.round_trip()


def test_a_client_that_could_not_even_take_a_welcome(abused):
    """512 bytes do not hold the announcement of the router's features."""
    with RawSocket.tcp(abused.address("tcp")) as peer:
        assert peer.handshake(b"\x7f\x01\0\0") == bytes([0x7F, LENGTH << 4, 0, 0])
        peer.expect_end()
        abused.expect_fault(peer)


@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param(b"\x03\0\0\x02", id="type_3"),
        pytest.param(b"\x07\0\0\x02", id="type_7"),
        pytest.param(b"\x10\0\0\x02", id="reserved_bit"),
        pytest.param(b"\xf0\0\0\x02", id="reserved_bits"),
        pytest.param(b"\x08\0\0\x01", id="length_bit_with_a_length"),
        pytest.param(b"\xff\xff\xff\xff", id="all_ones"),
        pytest.param(b"GET ", id="http"),
    ],
)
def test_a_bad_prefix(abused, prefix):
    with RawSocket.tcp(abused.address("tcp")).shake_hands().join() as peer:
        peer.send(prefix + b"[]")
        peer.expect_abort()
        abused.expect_fault(peer)


def test_an_oversized_message_is_refused_at_its_prefix(start_router):
    """A frame that is too long is not read: the prefix alone is the fault."""
    options = {"options": {"max_message_size": 1024}}
    router = start_router(config.plain(config.universal("tcp", config.tcp(), rawsocket=options)))
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        assert peer.router_exponent == 1, "2^(9+1) bytes are announced"
        peer.join()
        fits = b'[16,1,{},"com.x",["' + b"x" * (1024 - 22) + b'"]]'
        assert len(fits) == 1024
        peer.send_frame(fits)
        peer.round_trip()
        since = len(router.log)
        peer.send(struct.pack("!I", 1025))
        peer.expect_abort()
        router.await_fault(since, "1025")


def test_sixteen_mebibytes_need_the_length_bit(abused):
    """2^24 does not fit into 24 bits: a bit of its own says it."""
    size = 1 << 24
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as publisher,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as subscriber,
    ):
        subscriber.subscribe("com.large")
        head, tail = b'[16,1,{"acknowledge":true},"com.large",["', b'"]]'
        message = head + b"x" * (size - len(head) - len(tail)) + tail
        publisher.send(b"\x08\0\0\0" + message)
        publisher.hear(17)
        # An EVENT's head is shorter than this PUBLISH's, so the usual prefix does.
        kind, event = subscriber.receive_frame()
        assert kind == MESSAGE
        assert event.count(b"x") > size - 100
        subscriber.round_trip()


def test_a_message_too_long_for_its_receiver(abused):
    """A receiver that takes 1,024 bytes is sent no more: events are dropped, calls fail."""
    with (
        RawSocket.tcp(abused.address("tcp")).shake_hands(exponent=1).join() as small,
        RawSocket.tcp(abused.address("tcp")).shake_hands().join() as other,
    ):
        small.subscribe("com.small.topic")
        small.register("com.small.procedure")
        other.publish("com.small.topic", "x" * 1100)
        other.publish("com.small.topic", "fits")
        assert small.hear(36)[4] == ["fits"]
        request = other.ask(48, {}, "com.small.procedure", ["x" * 1100])
        error = other.hear(8)
        assert error[1:3] == [48, request]
        assert error[4] == "wamp.error.payload_size_exceeded"
        small.round_trip()


def test_a_welcome_that_leaves_no_room_for_features(abused):
    """A client's own details come back to it; if these are long, nothing is announced."""
    extra = {"name": "x" * 400}
    with RawSocket.tcp(abused.address("tcp")).shake_hands(exponent=1) as peer:
        peer.say(HELLO, "realm1", {"roles": {"caller": {}}, "authextra": extra})
        details = peer.hear(WELCOME)[2]
        assert details["authextra"] == extra
        assert details["roles"] == {"broker": {"features": {}}, "dealer": {"features": {}}}
        peer.say(GOODBYE, {}, "wamp.close.normal")


def test_pings_are_answered_with_what_they_hold(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        for payload in (b"", b"x", bytes(range(256)) * 40):
            peer.send_frame(payload, PING)
            assert peer.receive_frame() == (PONG, payload)
        peer.send_frame(b"nobody asked", PONG)
        peer.join().round_trip()


def test_goodbye_of_a_client_that_is_not_joined(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.receive_all()


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"\0" * 64, id="zeroes"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 60, id="tls"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="ssh"),
        pytest.param(b"\xff" * 20_000, id="ones"),
        pytest.param(b"\x7e\xf1\0\0", id="nearly_the_magic_octet"),
    ],
)
def test_a_stranger_is_turned_away(abused, octets):
    with Plain.tcp(abused.address("tcp")) as peer:
        peer.send(octets)
        peer.receive_all()
        abused.expect_fault(peer)
