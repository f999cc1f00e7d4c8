"""Limits of a role's sessions, and of their rates."""

from __future__ import annotations

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    EVENT,
    GOODBYE,
    HELLO,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    ROLES,
    SUBSCRIBE,
    WELCOME,
)
from rig.waiting import await_true
from wamp.test_authentication import closed

BURST = 20


def limited(limits: dict, authid: str | None = None) -> dict:
    """Return a node with a bounded role at its first listener, and none at its second."""
    node = closed(config.static("user", authid))
    role = node["workers"][0]["realms"][0]["roles"][0]
    role["limits"] = limits
    return node


@pytest.fixture
def connect(request):
    """Open connections by RawSocket, and close them at the end."""

    def opened(node, transport: str = "tcp") -> RawSocket:
        peer = RawSocket.tcp(node.address(transport)).shake_hands()
        request.addfinalizer(peer.close)
        return peer

    return opened


def refused(peer: RawSocket) -> str:
    """Return why it is not let in."""
    peer.say(HELLO, "realm1", {"roles": ROLES})
    return peer.hear(ABORT)[2]


def is_let_in(peer: RawSocket) -> bool:
    """Say HELLO; return whether it is welcome."""
    peer.say(HELLO, "realm1", {"roles": ROLES})
    return peer.hear_any()[0] == WELCOME


def test_sessions_of_a_role(start_router, connect):
    node = start_router(limited({"sessions_max": 2}))
    first, _ = connect(node).join(), connect(node).join()
    assert refused(connect(node)) == "crosstie.error.role_sessions_max"
    connect(node, "open").join()
    first.say(GOODBYE, {}, "wamp.close.normal")
    first.hear(GOODBYE)
    connect(node).join()
    assert node.metric("role_sessions_refused_total") == 1


def test_sessions_of_an_authid(start_router, connect):
    node = start_router(limited({"authid_sessions_max": 1}, "joe"))
    connect(node).join()
    assert refused(connect(node)) == "crosstie.error.authid_sessions_max"
    assert node.metric("authid_sessions_refused_total") == 1


def test_sessions_of_an_authid_by_a_listener(start_router, connect):
    """Sessions of every realm count; those that left, were killed or were refused do not."""
    configured = closed(config.static("user", "joe"))
    worker = configured["workers"][0]
    worker["transports"][0]["limits"] = {"authid_sessions_max": 2}
    worker["realms"].append({"name": "strange", "roles": [config.role("nobody")]})
    node = start_router(configured)
    for _ in range(3):
        stranger = connect(node)
        stranger.say(HELLO, "strange", {"roles": ROLES})
        assert stranger.hear(ABORT)[2] == "wamp.error.no_such_role"
    first, second = connect(node).join(), connect(node).join("realm2")
    assert refused(connect(node)) == "crosstie.error.authid_sessions_max"
    connect(node, "open").join()
    first.say(GOODBYE, {}, "wamp.close.normal")
    first.hear(GOODBYE)
    connect(node).join()
    assert refused(connect(node)) == "crosstie.error.authid_sessions_max"
    second.close()
    await_true("a place is free", lambda: is_let_in(connect(node)))
    assert node.metric("authid_sessions_refused_total") >= 2


def test_limits_of_one_session(start_router, connect):
    limits = {"subscriptions_max": 1, "registrations_max": 0, "calls_pending_max": 1}
    node = start_router(limited(limits))
    bounded, free = connect(node).join(), connect(node, "open").join()
    bounded.subscribe("com.a")
    bounded.ask(SUBSCRIBE, {}, "com.b")
    assert bounded.hear(ERROR)[4] == "crosstie.error.subscriptions_max"
    bounded.ask(REGISTER, {}, "com.p")
    assert bounded.hear(ERROR)[4] == "crosstie.error.registrations_max"
    free.subscribe("com.a")
    free.subscribe("com.b")
    free.register("com.p")
    bounded.ask(CALL, {}, "com.p")
    bounded.ask(CALL, {}, "com.p")
    assert bounded.hear(ERROR)[4] == "crosstie.error.calls_max"
    for what in ("subscriptions", "registrations", "calls"):
        assert node.metric(f"role_{what}_refused_total") == 1, what


@pytest.mark.parametrize(
    "limits",
    [{"messages_per_second_max": BURST}, {"bytes_per_second_max": BURST * 100}],
    ids=["messages", "bytes"],
)
def test_a_session_that_is_too_fast(start_router, connect, limits):
    node = start_router(limited(limits))
    slow, free = connect(node).join(), connect(node, "open").join()
    free.subscribe("com.news")
    for number in range(2 * BURST):
        slow.ask(PUBLISH, {"acknowledge": True}, "com.news", [number, "x" * 60])
    # All of it comes, in order, no faster than it may; others are not held up.
    assert [free.hear(EVENT)[4][0] for _ in range(2 * BURST)] == list(range(2 * BURST))
    for _ in range(2 * BURST):
        slow.hear(PUBLISHED)
    assert node.metric("sessions_slowed_total") >= 1
    slow.say(GOODBYE, {}, "wamp.close.normal")
    slow.hear(GOODBYE)


def test_a_session_that_is_slowed_and_goes(start_router, connect):
    node = start_router(limited({"messages_per_second_max": 1}))
    free = connect(node, "open").join()
    left = free.subscribe("wamp.session.on_leave")
    slow = connect(node).join()
    for _ in range(10):
        slow.ask(PUBLISH, {}, "com.news", [1])
    slow.close()
    # It is seen to be gone though nothing of it is read for a while.
    assert free.hear(EVENT)[1] == left


def test_a_session_that_is_slowed_and_killed(start_router, connect):
    node = start_router(limited({"messages_per_second_max": 1}))
    free, slow = connect(node, "open").join(), connect(node).join()
    for _ in range(10):
        slow.ask(PUBLISH, {}, "com.news", [1])
    free.ask(CALL, {}, "wamp.session.kill", [slow.id])
    free.hear_any()
    assert slow.hear(GOODBYE)[2] == "wamp.close.killed"
