"""The end of a connection in the log: the party that ended it, the reason, the key of the bound."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from rig import amqp_wire as wire
from rig.amqp_peer import Peer
from rig.broker import configuration
from rig.longpoll import LongPoll
from rig.plain import Plain
from rig.rawsocket import RawSocket
from rig.router import Line, Router, binary
from rig.session import CALL, GOODBYE
from rig.waiting import await_true
from rig.websocket import WebSocket

LIMITS = {
    "queue_stall_timeout_ms": 500,
    "queue_bytes_max": 65_536,
    "message_timeout_ms": 1000,
    "bytes_per_second_min": 100_000,
    "handshake_timeout_ms": 1000,
}
PING = {"options": {"auto_ping_interval": 1000, "auto_ping_timeout": 1000}}
PATHS = {"lp": {"type": "longpoll", "options": {"session_timeout": 1}}}


@pytest.fixture(scope="module")
def router(tmp_path_factory) -> Iterator[Router]:
    """Start a router with short bounds."""
    running = start(tmp_path_factory.mktemp("node"))
    yield running
    running.stop()


def start(directory) -> Router:
    """Start a router that speaks everything, in that directory."""
    node = configuration(
        {"limits": {"incomplete_timeout_ms": 1000}}, {"options": {"handshake_timeout_ms": 1000}}
    )
    _, universal = node["workers"][0]["transports"]
    universal.update(websocket={"ws": PING}, web={"paths": PATHS})
    return Router(directory, config={**node, "limits": LIMITS})


def names(rows: list[tuple]) -> list[str]:
    """Return what the rows are called."""
    return [row[0].__name__ for row in rows]


class Stage:
    """A test's clients."""

    def __init__(self, router: Router, stack: ExitStack):
        self.router, self.stack = router, stack
        self.since = len(router.log)
        # As the log has them, also when their sockets are closed.
        self.names: dict[Plain, str] = {}

    def amqp(self, receive_buffer: int | None = None, heartbeat: int = 0) -> Peer:
        """Open an AMQP connection with a channel."""
        peer = Peer.tcp(self.router.address("amqp"), receive_buffer)
        self.stack.callback(peer.socket.close)
        self.names[peer] = f"tcp:{peer.name}"
        peer.open(heartbeat=heartbeat).channel()
        return peer

    def wamp(self, receive_buffer: int | None = None) -> RawSocket:
        """Open a WAMP session."""
        peer = RawSocket.tcp(self.router.address("tcp"), receive_buffer)
        self.stack.callback(peer.socket.close)
        return peer.shake_hands().join()

    def longpoll(self) -> LongPoll:
        """Open a WAMP session without a connection."""
        peer = LongPoll(self.router.address("tcp"))
        self.stack.callback(peer.drop)
        return peer.join()

    def await_ended(self, beginning: str, **fields: object) -> Line:
        """Return the line of an end."""
        return self.router.await_log(
            lambda line: line.text.startswith(beginning) and fields.items() <= line.fields.items(),
            self.since,
        )


@pytest.fixture
def stage(router) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(router, stack)


def consumer_that_does_not_read(stage: Stage) -> Peer:
    consumer = stage.amqp(receive_buffer=4096)
    consumer.call("queue.declare", queue="unread", exclusive=True)
    consumer.expect("queue.declare-ok")
    consumer.call("basic.consume", queue="unread", no_ack=True)
    consumer.expect("basic.consume-ok")
    publisher = stage.amqp()
    for _ in range(192):
        publisher.publish("", "unread", bytes(65_536))
    return consumer


def client_without_heartbeats(stage: Stage) -> Peer:
    return stage.amqp(heartbeat=1)


def message_that_does_not_end(stage: Stage) -> Peer:
    peer = stage.amqp()
    peer.call("basic.publish", exchange="", routing_key="nowhere")
    peer.send_frame(wire.CONTENT_HEADER, 1, wire.properties_payload({}, 200_000))
    peer.send_frame(wire.BODY, 1, bytes(100_000))
    return peer


def connection_closed_by_command(stage: Stage) -> Peer:
    peer = stage.amqp()
    tool = [binary(), "connections", "--cbdir", stage.router.directory]
    listed = subprocess.run([*tool, "--json"], capture_output=True, check=True, text=True).stdout
    number = max(each["connection"] for each in json.loads(listed))
    subprocess.run([*tool[:2], "close", str(number), *tool[2:]], check=True, capture_output=True)
    assert peer.expect_connection_close()[0] == 320
    peer.call("connection.close-ok", 0)
    return peer


def amqp_client_that_vanishes(stage: Stage) -> Peer:
    peer = stage.amqp()
    peer.finish()
    return peer


def amqp_connection_that_is_reset(stage: Stage) -> Peer:
    peer = stage.amqp()
    peer.reset()
    return peer


def amqp_client_that_says_goodbye(stage: Stage) -> Peer:
    peer = stage.amqp()
    peer.call("connection.close", 0, code=200, text="bye")
    peer.expect("connection.close-ok")
    return peer


def amqp_client_at_fault(stage: Stage) -> Peer:
    peer = stage.amqp()
    peer.send_frame(wire.METHOD, 1, b"\xff\xff\xff\xff")
    peer.expect_connection_close()
    peer.call("connection.close-ok", 0)
    return peer


AMQP_ENDS = [
    (consumer_that_does_not_read, "Crosstie", "stalled", "queue_stall_timeout_ms"),
    (client_without_heartbeats, "Crosstie", "silent", "heartbeat_seconds"),
    (message_that_does_not_end, "Crosstie", "slow", "incomplete_timeout_ms"),
    (amqp_client_at_fault, "Crosstie", "violation", None),
    (connection_closed_by_command, "operator", "killed", None),
    (amqp_client_that_vanishes, "client", "closed", None),
    (amqp_client_that_says_goodbye, "client", "goodbye", None),
    (amqp_connection_that_is_reset, "network", "lost", None),
]


@pytest.mark.parametrize(("act", "by", "reason", "key"), AMQP_ENDS, ids=names(AMQP_ENDS))
def test_the_end_of_an_amqp_connection_names_who_and_why(stage, act, by, reason, key):
    peer = act(stage)
    line = stage.await_ended("AMQP connection closed:", peer=stage.names[peer])
    said = (line.fields["by"], line.fields["reason"], line.fields.get("key"))
    assert said == (by, reason, key), line
    assert ("unexpectedly" in line.text) == (reason == "closed")


def session_without_pong(stage: Stage) -> WebSocket:
    peer = WebSocket.tcp(stage.router.address("tcp")).open().join()
    stage.stack.callback(peer.socket.close)
    return peer


def subscriber_that_does_not_read(stage: Stage) -> RawSocket:
    stuck, publisher = stage.wamp(receive_buffer=4096), stage.wamp()
    stuck.subscribe("com.flood")

    def is_closed() -> bool:
        for _ in range(64):
            publisher.publish("com.flood", "x" * 16_000)
        return stage.router.metric("session_ends_total", reason="stalled") >= 1

    await_true("it is closed", is_closed)
    return stuck


def session_killed_by_the_meta_api(stage: Stage) -> RawSocket:
    killed = stage.wamp()
    stage.wamp().ask(CALL, {}, "wamp.session.kill", [killed.id], {"reason": "com.enough"})
    assert killed.hear(GOODBYE)[2] == "com.enough"
    return killed


def session_that_says_goodbye(stage: Stage) -> RawSocket:
    peer = stage.wamp()
    peer.say(GOODBYE, {}, "wamp.close.normal")
    return peer


def session_that_vanishes(stage: Stage) -> RawSocket:
    peer = stage.wamp()
    peer.finish()
    return peer


def message_that_comes_too_slowly(stage: Stage) -> RawSocket:
    peer = stage.wamp()
    peer.send(b"\0\x01\0\0" + b" " * 40_000)
    return peer


def longpoll_session_without_requests(stage: Stage) -> LongPoll:
    return stage.longpoll()


def longpoll_session_that_is_closed(stage: Stage) -> LongPoll:
    peer = stage.longpoll()
    peer.post("close")
    return peer


WAMP_ENDS = [
    (session_without_pong, "Crosstie", "silent", "auto_ping_timeout"),
    (subscriber_that_does_not_read, "Crosstie", "stalled", "queue_stall_timeout_ms"),
    (message_that_comes_too_slowly, "Crosstie", "slow", "message_timeout_ms"),
    (longpoll_session_without_requests, "Crosstie", "silent", "session_timeout"),
    (session_killed_by_the_meta_api, "operator", "killed", None),
    (session_that_says_goodbye, "client", "goodbye", None),
    (session_that_vanishes, "client", "closed", None),
    (longpoll_session_that_is_closed, "client", "closed", None),
]


@pytest.mark.parametrize(("act", "by", "reason", "key"), WAMP_ENDS, ids=names(WAMP_ENDS))
def test_the_end_of_a_wamp_session_names_who_and_why(stage, act, by, reason, key):
    session = act(stage)
    line = stage.await_ended("session left", session=session.id)
    said = (line.fields["by"], line.fields["reason"], line.fields.get("key"))
    assert said == (by, reason, key), line


@pytest.mark.parametrize("transport", ["amqp", "tcp"])
def test_a_handshake_that_takes_too_long_names_its_bound(stage, transport):
    with Plain.tcp(stage.router.address(transport)) as slow:
        slow.send(b"A" if transport == "amqp" else b"\x7f")
        line = stage.await_ended("peer fault:", peer=f"tcp:{slow.name}")
        assert (line.fields["by"], line.fields["key"]) == ("Crosstie", "handshake_timeout_ms")


def test_a_stop_is_not_blamed_on_the_clients(tmp_path):
    running = start(tmp_path)
    with ExitStack() as stack:
        stage = Stage(running, stack)
        amqp, wamp = stage.amqp(), stage.wamp()
        running.stop()
        for line in (
            stage.await_ended("AMQP connection closed:", peer=stage.names[amqp]),
            stage.await_ended("session left", session=wamp.id),
        ):
            assert (line.fields["by"], line.fields["reason"]) == ("operator", "shutdown"), line
