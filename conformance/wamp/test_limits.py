"""Limits of sessions by realm and listener, and the treatment of slow ones."""

from __future__ import annotations

import json

import pytest
from rig import config
from rig.plain import Plain
from rig.rawsocket import RawSocket
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    EVENT,
    HELLO,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    ROLES,
    SUBSCRIBE,
)
from rig.waiting import await_true

FLOOD = "com.flood"
QUEUE = 65_536
EVENT_BYTES = 16_000


def node(of_realm: dict, of_listener: dict, **of_role: object) -> dict:
    """Return a node whose realm, first listener and role have these limits."""
    role = {**config.role("anonymous"), "limits": of_role}
    realms = [{"name": "realm1", "limits": of_realm, "roles": [role, config.role("free")]}]
    free = {"auth": config.static("free")}
    transports = [
        config.universal("tcp", config.tcp(), limits=of_listener),
        config.universal("free", config.tcp(), rawsocket=free, websocket={"ws": free}),
    ]
    return config.node(realms, transports, limits={"queue_stall_timeout_ms": 3_600_000})


@pytest.fixture
def connect(request):
    """Open sessions by RawSocket, and close them at the end."""

    def opened(router, transport: str = "tcp", **more: int) -> RawSocket:
        peer = RawSocket.tcp(router.address(transport), **more).shake_hands()
        request.addfinalizer(peer.close)
        return peer

    return opened


def test_sessions_of_a_realm(start_router, connect):
    router = start_router(node({"sessions_max": 3, "authid_sessions_max": 1}, {}))
    connect(router).join()
    connect(router, "free").join()
    connect(router).join()
    full = connect(router)
    full.say(HELLO, "realm1", {"roles": ROLES})
    assert full.hear(ABORT)[2] == "crosstie.error.sessions_max"


def refuses(peer: RawSocket) -> dict:
    """Return the errors of one subscription, registration and call."""
    errors = {}
    for what, kind in (("subscription", SUBSCRIBE), ("registration", REGISTER), ("call", CALL)):
        peer.ask(kind, {}, "com.a")
        message = peer.hear_any()
        is_error = message[0] == ERROR
        errors[what] = message[4].removeprefix("crosstie.error.") if is_error else None
    return errors


NOTHING = {"subscriptions_max": 0, "registrations_max": 0}


def test_the_realm_bounds_every_session(start_router, connect):
    router = start_router(node(NOTHING, {}))
    for transport in ("tcp", "free"):
        errors = refuses(connect(router, transport).join())
        assert errors["subscription"] == "subscriptions_max", transport
        assert errors["registration"] == "registrations_max", transport
    assert router.metric("role_subscriptions_refused_total") == 2


def test_the_listener_bounds_those_who_come_by_it(start_router, connect):
    router = start_router(node({}, {**NOTHING, "calls_pending_max": 0}))
    bounded, free = connect(router).join(), connect(router, "free").join()
    errors = refuses(bounded)
    assert errors["subscription"] == "subscriptions_max"
    assert errors["registration"] == "registrations_max"
    assert refuses(free)["subscription"] is None
    # Now there is a callee.
    assert refuses(bounded)["call"] == "calls_max"


def test_all_sessions_of_a_realm_together(start_router, connect):
    router = start_router(node({"realm_subscriptions_max": 1}, {}))
    connect(router).join().subscribe("com.a")
    other = connect(router).join()
    other.ask(SUBSCRIBE, {}, "com.b")
    assert other.hear(ERROR)[4] == "crosstie.error.realm_subscriptions_max"


@pytest.mark.parametrize("place", ["realm", "listener"])
def test_a_session_that_sends_too_fast_is_read_more_slowly(start_router, connect, place):
    slow = {"messages_per_second_max": 20}
    router = start_router(node(*((slow, {}) if place == "realm" else ({}, slow))))
    peer = connect(router).join()
    for number in range(30):
        peer.ask(PUBLISH, {"acknowledge": True}, "com.news", [number])
    for _ in range(30):
        peer.hear(PUBLISHED)
    assert router.metric("sessions_slowed_total") >= 1


def test_connections_that_come_too_fast(start_router, connect):
    router = start_router(node({}, {"connections_per_second_max": 1}))
    refused = "connections_refused_for_rate_total"

    def is_refused() -> bool:
        with Plain.tcp(router.address("tcp")) as peer:
            peer.send(b"\x7f\xf1\0\0")
            peer.finish()
            peer.receive_all()
        return router.metric(refused) > 0

    await_true("one too many is turned away", is_refused)
    # The others' listener has no such bound.
    for _ in range(5):
        connect(router, "free").join()


@pytest.mark.parametrize("place", ["realm", "listener", "role"])
def test_a_message_that_is_too_long(start_router, connect, place):
    short = {"message_bytes_max": 2_000}
    limits = {name: short if name == place else {} for name in ("realm", "listener", "role")}
    router = start_router(node(limits["realm"], limits["listener"], **limits["role"]))
    peer = connect(router).join()
    peer.publish("com.news", "x" * 1_500)
    peer.round_trip()
    peer.ask(PUBLISH, {}, "com.news", ["x" * 2_500])
    assert "2000" in str(peer.hear(ABORT)[1]), "it is said how long it may be"


def flood(router, publisher: RawSocket, metric: str) -> int:
    """Publish until something has been counted often; return how many events that took."""
    published = 0

    def is_counted() -> bool:
        nonlocal published
        for _ in range(64):
            publisher.ask(PUBLISH, {}, FLOOD, [published, "x" * EVENT_BYTES])
            published += 1
        return router.metric(metric) >= 64

    await_true("it is counted", is_counted)
    return published


@pytest.mark.parametrize("place", ["realm", "listener", "role"])
def test_the_oldest_events_go(start_router, connect, place):
    newest = {"queue_bytes_max": QUEUE, "slow_consumer": "drop-oldest"}
    limits = {name: newest if name == place else {} for name in ("realm", "listener", "role")}
    router = start_router(node(limits["realm"], limits["listener"], **limits["role"]))
    stuck = connect(router, receive_buffer=4096).join()
    publisher = connect(router, "free").join()
    stuck.subscribe(FLOOD)
    published = flood(router, publisher, "events_dropped_oldest_total")
    publisher.round_trip()
    assert router.metric("queued_bytes") <= 2 * QUEUE
    # An answer waits with them, in its place.
    stuck.ask(SUBSCRIBE, {}, "com.other")
    await_true("subscribed", lambda: router.metric("realm_subscriptions", realm="realm1") == 2)
    publisher.publish(FLOOD, published)
    publisher.round_trip()
    heard = []
    while not heard or heard[-1] != published:
        message = stuck.hear_any()
        heard.append(message[4][0] if message[0] == EVENT else "subscribed")
    assert heard[-2] == "subscribed", heard[-9:]
    numbers = heard[:-2] + heard[-1:]
    assert numbers == sorted(numbers), "the order stays"
    assert numbers[-2] == published - 1, "the newest stay"
    assert len(numbers) < published + 1, "some are lost"
    assert router.metric("events_dropped_full_total") == 0
    await_true("nothing waits", lambda: router.metric("queued_bytes") == 0)
    publisher.publish(FLOOD, "again")
    assert stuck.hear(EVENT)[4] == ["again"]


SLOW = [
    ("drop-new", "events_dropped_full_total"),
    ("drop-oldest", "events_dropped_oldest_total"),
    ("disconnect", "sessions_closed_for_slowness_total"),
]


@pytest.mark.parametrize(("policy", "metric"), SLOW, ids=[policy for policy, _ in SLOW])
def test_one_that_never_reads_among_many(start_router, connect, policy, metric):
    router = start_router(node({"slow_consumer": policy, "queue_bytes_max": QUEUE}, {}))
    stuck = connect(router, receive_buffer=4096).join()
    others = [connect(router, "free").join() for _ in range(20)]
    for peer in (stuck, *others):
        peer.subscribe(FLOOD)
    publisher = connect(router, "free").join()
    published = 0
    # Each of the others has taken what came before the next is published: they are not slow.
    while router.metric(metric) == 0:
        for _ in range(16):
            publisher.publish(FLOOD, published, "x" * EVENT_BYTES)
            for peer in others:
                assert peer.hear(EVENT)[4][0] == published
            published += 1
    assert router.metric("queued_bytes") <= 2 * QUEUE
    if policy != "disconnect":
        return
    heard = 0
    while (message := stuck.hear_any())[0] == EVENT:
        assert message[4][0] == heard
        heard += 1
    assert message[0] == ABORT
    assert message[2] == "crosstie.error.slow_consumer"
    stuck.close()
    await_true("it has left", lambda: router.metric("realm_sessions", realm="realm1") == 21)


def framed(message: list) -> bytes:
    """Return a message as RawSocket has it, in JSON."""
    octets = json.dumps(message).encode()
    return len(octets).to_bytes(4, "big") + octets


def test_publishers_wait_for_a_slow_session(start_router, connect):
    router = start_router(node({}, {}, queue_bytes_max=4 * QUEUE, slow_consumer="back-pressure"))
    slow = connect(router, receive_buffer=4096).join()
    publisher, other = connect(router, "free").join(), connect(router, "free").join()
    slow.subscribe(FLOOD)
    count = 1_000
    publisher.socket.setblocking(False)
    frames = b"".join(
        framed([PUBLISH, number + 1, {}, FLOOD, [number, "x" * EVENT_BYTES]])
        for number in range(count)
    )
    sent = 0

    def is_held_back() -> bool:
        nonlocal sent
        try:
            while sent < len(frames):
                sent += publisher.socket.send(frames[sent : sent + 65_536])
        except BlockingIOError:
            pass
        return sent < len(frames) and router.metric("publishers_held_back_total") > 0

    await_true("the publisher is not read", is_held_back)
    other.round_trip()
    for number in range(count):
        if sent < len(frames):
            is_held_back()
        assert slow.hear(EVENT)[4][0] == number, "nothing is lost"
    assert router.metric("events_dropped_full_total") == 0


def test_a_publisher_that_waits_goes(start_router, connect):
    router = start_router(node({}, {}, queue_bytes_max=QUEUE, slow_consumer="back-pressure"))
    slow = connect(router, receive_buffer=4096).join()
    publisher = connect(router, "free").join()
    watcher = connect(router, "free").join()
    left = watcher.subscribe("wamp.session.on_leave")
    slow.subscribe(FLOOD)
    publisher.socket.setblocking(False)
    frame = framed([PUBLISH, 1, {}, FLOOD, ["x" * EVENT_BYTES]])

    def is_held_back() -> bool:
        try:
            for _ in range(64):
                publisher.socket.send(frame)
        except BlockingIOError:
            pass
        return router.metric("publishers_held_back_total") > 0

    await_true("the publisher is not read", is_held_back)
    publisher.close()
    assert watcher.hear(EVENT)[1] == left
