"""Calls that wait for a callee that is free."""

from __future__ import annotations

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, INVOCATION, REGISTER, REGISTERED, RESULT, YIELD
from rig.waiting import await_true

BUSY = "crossbar.error.max_concurrency_reached"


def queueing(**queue: object) -> dict:
    """Return a node with a realm in which calls of com.slow wait."""
    store = {"type": "memory", "call-queue": [{"uri": "com.slow", **queue}]}
    realms = [{"name": "realm1", "roles": [config.role("anonymous")], "store": store}]
    return config.node(realms, [config.universal("tcp", config.tcp())])


@pytest.fixture
def connect(request):
    """Open connections by RawSocket, and close them at the end."""

    def opened(node, serializer: str = "json") -> RawSocket:
        peer = RawSocket.tcp(node.address("tcp")).shake_hands(serializer)
        request.addfinalizer(peer.close)
        return peer

    return opened


def serving(peer: RawSocket, **options: object) -> RawSocket:
    """Register a procedure that is answered once at a time."""
    peer.ask(REGISTER, {"concurrency": 1, **options}, "com.slow")
    peer.hear(REGISTERED)
    return peer


def waiting(node, count: int) -> None:
    """Await that so many calls wait."""

    def reached() -> bool:
        return node.metric("realm_calls_waiting", realm="realm1") == count

    await_true(f"{count} calls that wait", reached)


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_in_order_and_unharmed(start_router, connect, serializer):
    node = start_router(queueing(limit=3))
    callee = serving(connect(node).join())
    caller = connect(node, serializer).join()
    payloads = [["a" * 2_000, None], [1.5, {"k": [True, "ä"]}], [], [0]]
    calls = [caller.ask(CALL, {}, "com.slow", payload) for payload in payloads]
    waiting(node, 3)
    assert node.metric("realm_kept_call_bytes", realm="realm1") > 0
    one_more = caller.ask(CALL, {}, "com.slow")
    assert caller.hear(ERROR)[2:5:2] == [one_more, BUSY]
    for call, payload in zip(calls, payloads, strict=True):
        invocation = callee.hear(INVOCATION)
        assert (invocation[4:] or [[]])[0] == payload
        callee.say(YIELD, invocation[1], {}, [call])
        assert caller.hear(RESULT)[1:4:2] == [call, [call]]
    waiting(node, 0)
    assert node.metric("realm_kept_call_bytes", realm="realm1") == 0


def test_a_callee_that_dies_and_one_that_replaces_it(start_router, connect):
    node = start_router(queueing())
    callee = serving(connect(node).join())
    caller = connect(node).join()
    first = caller.ask(CALL, {}, "com.slow", [1])
    callee.hear(INVOCATION)
    second = caller.ask(CALL, {}, "com.slow", [2])
    waiting(node, 1)
    other = serving(connect(node).join(), force_reregister=True)
    invocation = other.hear(INVOCATION)
    other.say(YIELD, invocation[1], {}, ["done"])
    assert caller.hear(RESULT)[1] == second
    third = caller.ask(CALL, {}, "com.slow", [3])
    other.hear(INVOCATION)
    fourth = caller.ask(CALL, {}, "com.slow", [4])
    waiting(node, 1)
    callee.close()
    assert caller.hear(ERROR)[2] == first
    other.close()
    ended = {tuple(caller.hear(ERROR)[2:5:2]) for _ in range(2)}
    assert ended == {
        (third, "wamp.error.canceled"),
        (fourth, "wamp.error.no_such_procedure"),
    }


def test_a_flooding_caller_does_not_shut_others_out(start_router, connect):
    node = start_router(queueing(limit=8))
    callee = serving(connect(node).join())
    flooding, other = connect(node).join(), connect(node).join()
    flooding.ask(CALL, {}, "com.slow", ["first"])
    held = callee.hear(INVOCATION)
    patient = other.ask(CALL, {}, "com.slow", ["patient"])
    waiting(node, 1)
    calls = [flooding.ask(CALL, {}, "com.slow", [n]) for n in range(200)]
    refused = [flooding.hear(ERROR) for _ in range(195)]
    assert {error[4] for error in refused} == {BUSY}
    assert {error[2] for error in refused} == set(calls[5:])
    second = other.ask(CALL, {}, "com.slow", ["patient, too"])
    waiting(node, 7)
    callee.say(YIELD, held[1], {})
    said = []
    for _ in range(4):
        invocation = callee.hear(INVOCATION)
        said.append(invocation[4][0])
        callee.say(YIELD, invocation[1], {})
    assert said == ["patient", 0, 1, "patient, too"]
    assert [other.hear(RESULT)[1] for _ in range(2)] == [patient, second]
    flooding.close()
    waiting(node, 0)


def test_more_bytes_than_may_wait(start_router, connect):
    node_config = queueing()
    node_config["limits"] = {"kept_call_bytes_max": 4_096, "kept_calls_bytes_max": 16_384}
    node = start_router(node_config)
    callee = serving(connect(node).join())
    caller = connect(node).join()
    caller.ask(CALL, {}, "com.slow")
    callee.hear(INVOCATION)
    caller.ask(CALL, {}, "com.slow", ["x" * 5_000])
    assert caller.hear(ERROR)[4] == "crosstie.error.kept_call_bytes_max"
    for _ in range(10):
        caller.ask(CALL, {}, "com.slow", ["x" * 3_000])
    assert caller.hear(ERROR)[4] == "crosstie.error.kept_calls_bytes_max"
    assert node.metric("realm_kept_call_bytes", realm="realm1") <= 16_384
