"""A router at the other end that answers nonsense, floods or does not read: bounded and named."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import cbor2
import pytest
from rig.session import CALL, EVENT, REGISTER, REGISTERED, RESULT, SUBSCRIBE, SUBSCRIBED, WELCOME
from rig.waiting import await_true

from rlinks.linked import await_there, node, open_at, publish, register, to


class FalseRouter:
    """Speaks RawSocket with CBOR to one client at a time; what it answers is the test's."""

    def __init__(self, answer: Callable[[FalseRouter, list], None]):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.subscriptions: dict[str, int] = {}
        self.is_reading = threading.Event()
        self.is_reading.set()
        self.connections = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        """Serve one connection after the other."""
        while True:
            try:
                self.peer, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                self.peer.sendall(bytes([0x7F, self.receive(4)[1], 0, 0]))
                while True:
                    (prefix,) = struct.unpack("!I", self.receive(4))
                    octets = self.receive(prefix & 0xFFFFFF)
                    if prefix >> 24 == 0:
                        self.answer(self, cbor2.loads(octets))
                    elif prefix >> 24 == 1:
                        self.peer.sendall(struct.pack("!I", 2 << 24 | len(octets)) + octets)
            except OSError:
                self.peer.close()

    def receive(self, count: int) -> bytes:
        """Return so many bytes."""
        received = b""
        while len(received) < count:
            self.is_reading.wait()
            part = self.peer.recv(count - len(received))
            if not part:
                raise OSError("the end")
            received += part
        return received

    def say(self, *message: object) -> None:
        """Send one message."""
        octets = cbor2.dumps(list(message))
        self.peer.sendall(struct.pack("!I", len(octets)) + octets)

    def answer_well(self, message: list) -> None:
        """Be a realm in which nothing is."""
        if message[0] == 1:
            details = {"roles": {"broker": {}, "dealer": {}}, "authid": "x", "authrole": "y"}
            self.say(WELCOME, 4711, details)
        elif message[0] == SUBSCRIBE:
            number = self.subscriptions.setdefault(message[3], len(self.subscriptions) + 1)
            self.say(SUBSCRIBED, message[1], number)
        elif message[0] == REGISTER:
            self.say(REGISTERED, message[1], 1_000 + message[1])
        elif message[0] == CALL and message[3].endswith(".list"):
            self.say(RESULT, message[1], {}, [{"exact": [], "prefix": [], "wildcard": []}])

    def close(self) -> None:
        """End it."""
        self.is_reading.set()
        self.listener.close()


@pytest.fixture
def false_router() -> Iterator[Callable[..., FalseRouter]]:
    """Make false routers, which end with the test."""
    made: list[FalseRouter] = []

    def make(answer: Callable[[FalseRouter, list], None] = FalseRouter.answer_well) -> FalseRouter:
        made.append(FalseRouter(answer))
        return made[-1]

    yield make
    for each in made:
        each.close()


def link_to(router: FalseRouter, **more: object) -> dict:
    """Return a link over RawSocket."""
    host, port = router.address
    transport = {
        "type": "rawsocket",
        "endpoint": {"type": "tcp", "host": host, "port": port},
        "serializer": "cbor",
    }
    return {**to(router.address), "transport": transport, **more}


NONSENSE = [
    [RESULT, 1, {}, ["no lists"]],
    [WELCOME, 1, {}],
    [EVENT, "one", 2, {}],
    ["what"],
    {"no": "message"},
    [68, 1, 2, {"procedure": 7}],
    [3, {"message": "no more"}, "com.app.enough"],
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=str)
def test_nonsense_ends_the_link_alone(start_router, false_router, nonsense):
    def answer(self: FalseRouter, message: list) -> None:
        FalseRouter.answer_well(self, message)
        if message[0] == CALL and message[3] == "wamp.registration.list":
            if isinstance(nonsense, list) and nonsense[0] == RESULT:
                return self.say(RESULT, message[1] + 1, *nonsense[2:])
            octets = cbor2.dumps(nonsense)
            self.peer.sendall(struct.pack("!I", len(octets)) + octets)
        return None

    remote = false_router(answer)
    local = start_router(node(link_to(remote)))
    if isinstance(nonsense, list) and nonsense[0] == RESULT:
        # Of nothing that was asked.
        await_there(local)
    else:
        local.await_log(lambda line: "reconnects in" in line.text)
        await_true("it is tried again", lambda: remote.connections > 1)
    open_at(local).round_trip()


def test_answers_that_are_none_name_the_question(start_router, false_router):
    def answer(self: FalseRouter, message: list) -> None:
        if message[0] == CALL:
            return self.say(RESULT, message[1], {}, ["no lists"])
        return FalseRouter.answer_well(self, message)

    local = start_router(node(link_to(false_router(answer))))
    line = local.await_log(lambda line: "reconnects in" in line.text)
    assert "wamp.subscription.list" in line.text
    open_at(local).round_trip()


def test_a_flood_of_subscriptions_is_bounded(start_router, false_router):
    remote = false_router()
    local = start_router(node(link_to(remote, mirrors_max=100)))
    await_there(local)
    created = remote.subscriptions["wamp.subscription.on_create"]
    entered = remote.subscriptions["wamp.subscription.on_subscribe"]
    for number in range(1, 1_001):
        entry = {"id": number, "uri": f"com.topic{number}", "match": "exact", "created": ""}
        remote.say(EVENT, created, number, {}, [99, entry])
        remote.say(EVENT, entered, number, {}, [99, number])
    of_mirrors = {"link": "rlink1", "kind": "mirror", "outcome": "beyond"}
    await_true(
        "what is beyond is counted",
        lambda: local.metric("rlink_messages_total", **of_mirrors) >= 900,
    )
    held = {"link": "rlink1", "side": "local", "kind": "subscription"}
    await_true("the rest is mirrored", lambda: local.metric("rlink_mirrors", **held) == 100)
    open_at(local).round_trip()


def test_a_remote_that_does_not_answer_is_sent_no_more(start_router, false_router):
    remote = false_router()
    local = start_router(node(link_to(remote, calls_max=10)))
    await_there(local)
    created = remote.subscriptions["wamp.subscription.on_create"]
    entered = remote.subscriptions["wamp.subscription.on_subscribe"]
    entry = {"id": 1, "uri": "com.topic", "match": "exact", "created": ""}
    remote.say(EVENT, created, 1, {}, [99, entry])
    remote.say(EVENT, entered, 2, {}, [99, 1])
    held = {"link": "rlink1", "side": "local", "kind": "subscription"}
    await_true("the topic is mirrored", lambda: local.metric("rlink_mirrors", **held) == 1)
    here = open_at(local)
    for number in range(50):
        publish(here, "com.topic", number)
    dropped = {"link": "rlink1", "kind": "event", "outcome": "dropped"}
    await_true(
        "what is beyond is dropped", lambda: local.metric("rlink_messages_total", **dropped) == 40
    )
    here.round_trip()


def test_a_remote_that_does_not_read_costs_a_bounded_queue(start_router, false_router):
    remote = false_router()
    bounds = {"queue_bytes_max": 1 << 20, "calls_max": 1_000_000}
    local = start_router(node(link_to(remote, **bounds)))
    await_there(local)
    created = remote.subscriptions["wamp.subscription.on_create"]
    entered = remote.subscriptions["wamp.subscription.on_subscribe"]
    entry = {"id": 1, "uri": "com.topic", "match": "exact", "created": ""}
    remote.say(EVENT, created, 1, {}, [99, entry])
    remote.say(EVENT, entered, 2, {}, [99, 1])
    held = {"link": "rlink1", "side": "local", "kind": "subscription"}
    await_true("the topic is mirrored", lambda: local.metric("rlink_mirrors", **held) == 1)
    remote.is_reading.clear()
    here = open_at(local)
    register(here, "com.unrelated")
    for number in range(600):
        publish(here, "com.topic", number, "x" * 100_000)
    assert local.metric("rlink_queued_bytes", link="rlink1") < 3 << 20
    assert local.metric("events_dropped_full_total") > 0
    here.round_trip()
    remote.is_reading.set()
    await_true("it is taken", lambda: local.metric("rlink_queued_bytes", link="rlink1") == 0)
