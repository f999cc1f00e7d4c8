"""Idle connections release their buffers, and clients see no difference."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import config
from rig.http import Http, read, request, until_end
from rig.longpoll import LongPoll, Waiting
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import EVENT, SUBSCRIBE, SUBSCRIBED
from rig.waiting import await_true
from rig.websocket import WebSocket

HOST = "Host: localhost"
VALUE = request("GET", "/value", [HOST])
ANSWER = b'{"answer":42}'
TOPIC = "com.example.topic"


@pytest.fixture(scope="module")
def router(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """A router with what waits long: long-poll, WebSockets of another server, and who stays."""
    inner = Router(tmp_path_factory.mktemp("inner"), config=config.plain())
    (_, port) = inner.address("tcp")
    behind = {"type": "websocket", "url": f"ws://127.0.0.1:{port}/ws"}
    paths = {
        "value": {"type": "json", "value": {"answer": 42}},
        "lp": {"type": "longpoll", "options": {"request_timeout": 60, "session_timeout": 90}},
        "ws": {"type": "websocket-reverseproxy", "backend": behind},
    }
    transports = [
        {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths},
        {
            "type": "web",
            "id": "tls",
            "endpoint": config.tls(certificate_directory),
            "paths": {"value": paths["value"]},
        },
        {
            "type": "web",
            "id": "hasty",
            "endpoint": config.tcp(),
            "paths": {"value": paths["value"]},
            "options": {"client_timeout": 1},
        },
        config.universal("tcp", config.tcp()),
    ]
    running = Router(tmp_path_factory.mktemp("resting"), config=config.plain(*transports))
    yield running
    running.stop()
    inner.stop()


@contextmanager
def rested(router: Router, connections: int = 1) -> Iterator[None]:
    """Wait until so many connections more than before have nothing to do."""
    before = router.metric("http_connections_rested_total")
    yield
    await_true(
        "connections rest",
        lambda: router.metric("http_connections_rested_total") >= before + connections,
    )


def ask(connection: socket.socket) -> None:
    """Ask for a value."""
    connection.sendall(VALUE)
    assert read(connection).body == ANSWER


@pytest.mark.parametrize("transport", ["web", "tls"])
def test_a_connection_that_stays_is_answered_again(
    router: Router, transport: str, certificate_directory: Path
):
    trusting = ssl.create_default_context(cafile=f"{certificate_directory}/ca.pem")
    site = Http(router.address(transport), trusting if transport == "tls" else None)
    with site.connect() as connection:
        for _ in range(2):
            with rested(router):
                ask(connection)
        # Half a request keeps it awake, and the rest of it is still its rest.
        connection.sendall(VALUE[:9])
        assert site.get("/value").status == 200
        last = request("GET", "/value", [HOST, "Connection: close"])
        connection.sendall(VALUE[9:] + VALUE + last)
        assert until_end(connection).count(ANSWER) == 3


def test_an_idle_connection_is_closed(router: Router):
    with Http(router.address("hasty")).connect() as connection:
        with rested(router):
            ask(connection)
        assert connection.recv(1) == b""


def test_a_closed_connection_is_forgotten(router: Router):
    before = router.metric("connections")
    with Http(router.address("web")).connect() as connection, rested(router):
        ask(connection)
    await_true("it is gone", lambda: router.metric("connections") <= before)


@pytest.fixture
def session(router: Router) -> Iterator[LongPoll]:
    """A subscriber."""
    with LongPoll(router.address("web")).join() as session:
        session.say(SUBSCRIBE, 1, {}, TOPIC)
        session.hear(SUBSCRIBED)
        yield session


def publish(router: Router, number: int) -> None:
    """Publish, from elsewhere."""
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as publisher:
        publisher.publish(TOPIC, number)


def test_messages_come_to_who_rests(router: Router, session: LongPoll):
    with rested(router, 2):
        waiting = Waiting(session)
    publish(router, 1)
    assert waiting.message()[0] == EVENT
    # The connection goes on.
    with rested(router):
        waiting.requests.begin(session.path("receive"))
    publish(router, 2)
    answer = waiting.requests.finish()
    (event,) = session.messages(answer.body)
    assert (json.loads(event)[0], json.loads(event)[4]) == (EVENT, [2])


def test_requests_behind_one_that_waits_are_answered_after_it(router: Router, session: LongPoll):
    receive = request("POST", f"/lp{session.path('receive')}", [HOST, "Content-Length: 0"])
    with Http(router.address("web")).connect() as connection:
        with rested(router, 2):
            connection.sendall(receive)
        connection.sendall(VALUE + request("GET", "/value", [HOST, "Connection: close"]))
        publish(router, 3)
        everything = until_end(connection)
        assert everything.count(ANSWER) == 2
        assert everything.index(b"[3]]") < everything.index(ANSWER)


def test_a_client_that_stops_waiting_frees_its_place(router: Router, session: LongPoll):
    before = router.metric("connections")
    with rested(router, 2):
        waiting = Waiting(session)
    waiting.abandon()
    await_true("it is gone", lambda: router.metric("connections") <= before)
    # Later messages are for the next request.
    publish(router, 4)
    assert json.loads(session.receive_octets())[4] == [4]


def test_a_connection_that_has_rested_becomes_a_websocket(router: Router):
    peer = WebSocket.tcp(router.address("web"))
    with rested(router):
        peer.socket.sendall(VALUE)
        assert read(peer.socket).body == ANSWER
    peer.open("json", "/ws").join().round_trip()
    peer.close()


def test_a_shutdown_is_told_to_who_rests(tmp_path: Path):
    web = {
        "type": "web",
        "id": "web",
        "endpoint": config.tcp(),
        "paths": {"lp": {"type": "longpoll", "options": {"request_timeout": 60}}},
    }
    configuration = config.plain(web, config.universal("tcp", config.tcp()))
    router = Router(tmp_path, config=config.with_goodbye(configuration))
    with LongPoll(router.address("web")).join() as session:
        with rested(router, 2):
            waiting = Waiting(session)
        router.stop()
        assert waiting.message()[2] == "wamp.close.system_shutdown"
