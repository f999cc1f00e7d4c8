"""permessage-deflate between the router and other people's WebSocket implementations."""

from __future__ import annotations

import zlib

import pytest
from rig import config
from rig.links import CLIENTS, SERIALIZERS, Link
from rig.websocket import WebSocket

DEFLATES = {
    "defaults": {},
    "no_takeover": {"no_context_takeover": True, "request_no_context_takeover": True},
    "small_windows": {"max_window_bits": 9, "request_max_window_bits": 9, "memory_level": 1},
}


def compressing(deflate: dict) -> dict:
    options = {"options": {"compression": {"deflate": deflate}}}
    return config.plain(config.universal("tcp", config.tcp(), websocket={"ws": options}))


@pytest.mark.parametrize("deflate", DEFLATES.values(), ids=DEFLATES)
@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_compressed_calls(start_router, new_session, place_of, client, serializer, deflate):
    router = start_router(compressing(deflate))
    place = place_of(Link(client, "ws", "tcp", serializer), of=router) | {"deflate": True}
    one, two = new_session(client).open(place), new_session(client).open(place)
    assert one.details["compressed"]
    one.register("com.deflated", {"do": "echo"})
    for text in ("", "x", "0123456789" * 30_000, "ü" * 10_000, "again " * 5_000):
        assert two.call("com.deflated", text).args == [text]


@pytest.mark.parametrize("client", CLIENTS)
def test_compressed_events_and_plain_ones(start_router, new_session, place_of, client):
    """Of two subscribers one compresses and one does not."""
    router = start_router(compressing({}))
    place = place_of(Link(client, "ws", "tcp", "json"), of=router)
    plain = new_session(client).open(place)
    compressed = new_session(client).open(place | {"deflate": True})
    assert [session.details["compressed"] for session in (plain, compressed)] == [False, True]
    for session in (plain, compressed):
        session.subscribe("com.deflated")
    for publisher in (plain, compressed):
        publisher.publish("com.deflated", "text " * 10_000, options={"exclude_me": False})
        for session in (plain, compressed):
            assert session.next("published")["args"] == ["text " * 10_000]


def test_it_is_off_unless_configured(abused):
    offer = {"Sec_WebSocket_Extensions": "permessage-deflate"}
    with WebSocket.tcp(abused.address("tcp")) as peer:
        status, headers, _ = peer.upgrade(**offer)
        assert status == 101
        assert "sec-websocket-extensions" not in headers


def test_it_is_agreed_on_where_configured(start_router):
    router = start_router(compressing({}))
    offer = {"Sec_WebSocket_Extensions": "permessage-deflate; client_max_window_bits"}
    with WebSocket.tcp(router.address("tcp")) as peer:
        status, headers, _ = peer.upgrade(**offer)
        assert status == 101
        assert headers["sec-websocket-extensions"].startswith("permessage-deflate")


def test_octets_that_do_not_inflate(start_router):
    router = start_router(compressing({}))
    with WebSocket.tcp(router.address("tcp")) as peer:
        assert peer.upgrade(Sec_WebSocket_Extensions="permessage-deflate")[0] == 101
        peer.send_frame(1, b"\xff" * 40, reserved=4)
        peer.expect_close(1002, 1007)
        router.await_fault(0, peer.name)


def test_a_bomb_is_measured_as_it_inflates(start_router):
    """16 MiB and more of zeroes in a few KiB: refused at the limit, not held first."""
    router = start_router(compressing({}))
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = compressor.compress(b" " * (40 << 20)) + compressor.flush(zlib.Z_SYNC_FLUSH)
    with WebSocket.tcp(router.address("tcp")) as peer:
        assert peer.upgrade(Sec_WebSocket_Extensions="permessage-deflate")[0] == 101
        peer.send_frame(1, bomb[:-4], reserved=4)
        peer.expect_close(1009)
        router.await_fault(0, peer.name)
