"""Peers that are silent, slow, or do not read: bounded, counted, and harmless to others.

The limits are set short, and what is awaited is always the router's own act, never a duration.
"""

from __future__ import annotations

import pytest
from rig import config
from rig.links import CLIENTS, Link
from rig.plain import Plain
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, EVENT, HELLO, INVOCATION, RESULT, YIELD
from rig.waiting import await_true
from rig.websocket import WebSocket

SILENCE = {"options": {"auto_ping_interval": 1000, "auto_ping_timeout": 1000}}


def short_handshake() -> dict:
    return config.plain(limits={"handshake_timeout_ms": 500})


SLOW = [
    pytest.param(b"\x7f\xf1", id="half_a_rawsocket_handshake"),
    pytest.param(b"\x7f\xf1\0\0", id="no_hello"),
    pytest.param(b"\x7f\xf1\0\0\0\0\0\x20[1,", id="half_a_hello"),
    pytest.param(b"GET /ws HTTP/1.1\r\nHost: localhost\r\n", id="half_a_request"),
]


@pytest.mark.parametrize("octets", SLOW)
def test_a_handshake_that_does_not_come_to_its_end(start_router, octets):
    router = start_router(short_handshake())
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as healthy,
        Plain.tcp(router.address("tcp")) as slow,
    ):
        slow.send(octets)
        slow.receive_all()
        router.await_fault(0, slow.name)
        healthy.round_trip()


def test_a_request_that_drips(start_router):
    """Bytes that keep coming do not lengthen the time there is for a handshake."""
    router = start_router(short_handshake())
    with Plain.tcp(router.address("tcp")) as slow:
        slow.send(b"GET /ws HTTP/1.1\r\nX: ")
        slow.socket.settimeout(0.05)

        def is_closed() -> bool:
            slow.send(b"x")
            try:
                slow.receive_all()
            except TimeoutError:
                return False
            return True

        await_true("the router closes it", is_closed)
        router.await_fault(0, slow.name)


def test_a_websocket_without_hello(start_router):
    router = start_router(short_handshake())
    with WebSocket.tcp(router.address("tcp")).open() as slow:
        slow.receive_all()
        router.await_fault(0, slow.name)


def test_a_refused_client_that_stays(start_router):
    """A refusal does not extend a connection's time to become a session."""
    router = start_router(short_handshake())
    with RawSocket.tcp(router.address("tcp")).shake_hands() as slow:
        slow.say(HELLO, "com.nowhere", {"roles": {"caller": {}}})
        slow.expect_abort("wamp.error.no_such_realm")
        router.await_fault(0, "no session was opened in time")


def test_tls_that_does_not_come_to_its_end(start_router, certificate_directory):
    router = start_router(
        config.plain(
            config.universal("tls", config.tls(certificate_directory)),
            limits={"handshake_timeout_ms": 500},
        )
    )
    with Plain.tcp(router.address("tls")) as slow:
        slow.send(b"\x16\x03\x01")
        slow.receive_all()
        router.await_fault(0, slow.name)


def test_bytes_that_are_not_tls(start_router, certificate_directory):
    router = start_router(config.plain(config.universal("tls", config.tls(certificate_directory))))
    with Plain.tcp(router.address("tls")) as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        peer.receive_all()
        router.await_fault(0, peer.name)


def page(router, name: str, path: str = "/health") -> WebSocket:
    peer = WebSocket.tcp(router.address(name))
    peer.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return peer


def test_pages_have_so_many_connections(start_router):
    router = start_router(
        config.plain(
            config.universal("tcp", config.tcp()),
            config.universal("other", config.tcp()),
            limits={"page_connections_max": 1},
        )
    )
    with page(router, "tcp") as staying:
        assert staying.response()[0] == 200
        with page(router, "tcp") as late:
            status, headers, body = late.response()
            assert (status, headers["retry-after"]) == (503, "1"), body
        # Sessions are none of that bound's business, and each listener has its own.
        with RawSocket.tcp(router.address("tcp")).shake_hands().join() as session:
            session.round_trip()
        with page(router, "other", "/metrics") as other:
            assert b"crosstie_page_connections_refused_total 1" in other.response()[2]
        staying.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert staying.response()[0] == 200

    def is_served() -> bool:
        with page(router, "tcp") as next_one:
            return next_one.response()[0] == 200

    await_true("whoever left has left its place", is_served)


def test_half_of_the_places_are_for_who_does_not_stay(start_router):
    router = start_router(config.plain(limits={"page_connections_max": 2}))
    with page(router, "tcp") as staying, page(router, "tcp") as passing:
        closing = [peer.response()[1].get("connection") for peer in (staying, passing)]
        assert sorted(closing, key=str) == [None, "close"]


@pytest.mark.parametrize("kind", [RawSocket, WebSocket])
def test_a_peer_that_does_not_answer_pings_is_closed(start_router, kind):
    router = start_router(
        config.plain(
            config.universal("tcp", config.tcp(), rawsocket=SILENCE, websocket={"ws": SILENCE})
        )
    )
    with kind.tcp(router.address("tcp")) as dead:
        dead.shake_hands() if kind is RawSocket else dead.open()
        dead.join()
        dead.subscribe("com.dead")
        # At least one ping, then the end; it is never answered.
        octets = dead.receive_all()
        assert octets, "a ping came first"
        router.await_fault(0, dead.name)
        assert router.metric("connections_closed_for_silence_total") == 1
        assert router.metric("realm_sessions", realm="realm1") == 0


@pytest.mark.parametrize("kind", ["ws", "rs"])
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_outlive_a_peer_that_is_dead(start_router, new_session, place_of, client, kind):
    """A silent client is no dead one: it answers pings, or is sent none it would choke on."""
    # autobahn-python takes a RawSocket ping for a broken frame; the default is to send none.
    answers = client == "javascript" or kind == "ws"
    transport = config.universal(
        "tcp", config.tcp(), rawsocket=SILENCE if answers else {}, websocket={"ws": SILENCE}
    )
    router = start_router(config.plain(transport))
    session = new_session(client).open(place_of(Link(client, kind, "tcp", "json"), of=router))
    # A later silent client is closed first, or the session was never in danger.
    with WebSocket.tcp(router.address("tcp")).open().join() as dead:
        dead.receive_all()
    session.round_trip()


def stalling(**more: int) -> dict:
    """A node with short queues; the stall limit is out of the way unless a test is about it."""
    limits = {"queue_bytes_max": 65_536, "queue_stall_timeout_ms": 3_600_000, **more}
    transports = (config.universal("tcp", config.tcp()), config.universal("unix", config.unix()))
    return config.plain(*transports, limits=limits)


DROPPED = "events_dropped_full_total"


def fill(router, publisher: RawSocket, topic: str) -> int:
    """Publish until a session that does not read gets nothing more; return the number of events."""
    published = 0
    dropped = router.metric(DROPPED)

    def is_full() -> bool:
        # Not at the first one that is dropped: the system may still make room in the socket.
        nonlocal published, dropped
        for _ in range(64):
            publisher.publish(topic, published, "x" * 16_000)
            published += 1
        before, dropped = dropped, router.metric(DROPPED)
        return dropped - before >= 64

    await_true("every event is dropped", is_full)
    return published


def test_a_subscriber_that_stops_reading_loses_events_and_nothing_else(start_router):
    router = start_router(stalling())
    with (
        RawSocket.tcp(router.address("tcp"), receive_buffer=4096).shake_hands().join() as stuck,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as publisher,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as reader,
    ):
        stuck.subscribe("com.flood")
        published = fill(router, publisher, "com.flood")
        assert router.metric("queued_bytes") <= 65_536 + 16_384
        reader.round_trip()
        # It reads again: an unbroken beginning, then what came after there was room.
        seen = [stuck.hear(EVENT)[4][0]]
        lost = router.metric(DROPPED)
        while len(seen) < published - lost:
            seen.append(stuck.hear(EVENT)[4][0])
        assert seen == sorted(seen)
        assert seen[: len(seen) // 2] == list(range(len(seen) // 2))
        await_true("the queue is empty", lambda: router.metric("queued_bytes") == 0)
        publisher.publish("com.flood", "again")
        assert stuck.hear(EVENT)[4] == ["again"]


def test_a_callee_that_stops_reading_fails_the_call_at_once(start_router):
    router = start_router(stalling())
    with (
        RawSocket.tcp(router.address("tcp"), receive_buffer=4096).shake_hands().join() as stuck,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as caller,
    ):
        stuck.subscribe("com.flood")
        stuck.register("com.stuck")
        fill(router, caller, "com.flood")
        request = caller.ask(CALL, {}, "com.stuck", ["x" * 60_000])
        error = caller.hear(ERROR)
        assert error[1:3] == [CALL, request]
        assert error[4] == "wamp.error.no_available_callee"
        caller.round_trip()


def test_a_caller_that_stops_reading_is_closed_by_its_result(start_router):
    router = start_router(stalling())
    with (
        RawSocket.tcp(router.address("tcp"), receive_buffer=4096).shake_hands().join() as stuck,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as callee,
    ):
        stuck.subscribe("com.flood")
        callee.register("com.answer")
        stuck.ask(CALL, {}, "com.answer")
        invocation = callee.hear(INVOCATION)
        fill(router, callee, "com.flood")
        callee.say(YIELD, invocation[1], {}, ["x" * 60_000])
        await_true(
            "the caller is closed",
            lambda: router.metric("sessions_closed_for_refusal_total") == 1,
        )
        callee.round_trip()


def test_a_peer_that_never_reads_again_is_closed(start_router):
    router = start_router(stalling(queue_stall_timeout_ms=500))
    with (
        RawSocket.tcp(router.address("tcp"), receive_buffer=4096).shake_hands().join() as stuck,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as publisher,
    ):
        stuck.subscribe("com.flood")
        fill(router, publisher, "com.flood")
        await_true("it is closed", lambda: router.metric("realm_sessions", realm="realm1") == 1)
        await_true("its queue is gone", lambda: router.metric("queued_bytes") == 0)
        router.await_fault(0, stuck.name)
        publisher.round_trip()


def test_the_cap_over_all_queues(start_router):
    """Two stuck subscribers share a total below what each might hold alone, and they pay."""
    limits = {"queue_bytes_max": 10_000_000, "queue_bytes_total_max": 200_000}
    router = start_router(stalling(**limits))
    address = router.address("tcp")
    with (
        RawSocket.tcp(address, receive_buffer=4096).shake_hands().join() as one,
        RawSocket.tcp(address, receive_buffer=4096).shake_hands().join() as two,
        RawSocket.tcp(address).shake_hands().join() as publisher,
    ):
        one.subscribe("com.flood")
        two.subscribe("com.flood")
        while router.metric("connections_closed_for_debt_total") < 2:
            for number in range(10):
                publisher.publish("com.flood", number, "x" * 2000)
            publisher.round_trip()
        assert router.metric("queued_bytes") <= 1.1 * 200_000
        await_true("they have left", lambda: router.metric("realm_sessions", realm="realm1") == 1)
        publisher.round_trip()


def test_a_stuck_peer_on_a_unix_socket(start_router):
    router = start_router(stalling())
    with (
        RawSocket.unix(router.directory / "router.sock").shake_hands().join() as stuck,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as publisher,
    ):
        stuck.subscribe("com.flood")
        fill(router, publisher, "com.flood")
        publisher.round_trip()


def test_a_slow_writer_does_not_delay_other_clients(start_router):
    """A message that comes byte by byte is put together while others are served."""
    router = start_router(config.plain())
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as slow,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as other,
    ):
        other.register("com.slow")
        message = b'[48,1,{},"com.slow",["slow"]]'
        for octet in len(message).to_bytes(4, "big") + message:
            other.round_trip()
            slow.send(bytes([octet]))
        invocation = other.hear(INVOCATION)
        other.say(YIELD, invocation[1], {}, ["done"])
        assert slow.hear(RESULT)[3] == ["done"]
