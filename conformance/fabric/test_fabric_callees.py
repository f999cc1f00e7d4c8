"""Which callees of all nodes a call goes to: the next in order, a free one, a resource's shard."""

from __future__ import annotations

import pytest
from rig.session import CANCEL, ERROR, GOODBYE
from rig.waiting import await_true

from fabric.stage import await_neighbours, node_config

QUEUES = {"type": "memory", "call-queue": [{"uri": "com.report", "limit": 4}]}
UNAVAILABLE = "wamp.error.unavailable"


@pytest.mark.parametrize("policy", ["first", "last"])
def test_a_call_goes_on_in_the_order_of_all_nodes(policy, nats, nodes, session) -> None:
    found = nodes(3, nats())
    places = (0, 1, 0, 2, 1)
    callees = [session(found[place]) for place in places]
    for callee in callees:
        callee.register("com.order", invoke=policy)
    asked = callees if policy == "first" else callees[::-1]
    for caller in [session(node) for node in found]:
        caller.call("com.order", 7, timeout=30_000)
        for callee in asked:
            invocation = callee.invocation()
            assert invocation[4] == [7]
            callee.fail(invocation, UNAVAILABLE)
        assert caller.peer.hear(ERROR)[4] == "wamp.error.no_available_callee"
        caller.call("com.order", 8)
        for callee in asked[:3]:
            callee.fail(callee.invocation(), UNAVAILABLE)
        asked[3].answer(asked[3].invocation(), "served")
        assert caller.result()[3] == ["served"]
    for node in found:
        await_true("nothing is kept", lambda node=node: node.metric("realm_kept_call_bytes") == 0)


def test_every_callee_is_asked_once(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    callees = [session(node) for node in (here, here, there)]
    for callee in callees:
        callee.register("com.turn", invoke="roundrobin")
    caller = session(there)
    # The first callee is not known; all are called in the end.
    for number in range(3):
        caller.call("com.turn", number)
    for callee in callees * 3:
        callee.fail(callee.invocation(), UNAVAILABLE)
    errors = [caller.peer.hear(ERROR)[4] for _ in range(3)]
    assert errors == ["wamp.error.no_available_callee"] * 3


def test_calls_wait_at_a_node_of_their_callees(nats, start, session) -> None:
    (server,) = nats()
    found = [start(node_config([server.url], {"store": QUEUES})) for _ in range(3)]
    await_neighbours(found)
    here, *elsewhere = found
    callees = [session(node) for node in elsewhere]
    for callee in callees:
        callee.register("com.report", invoke="roundrobin", concurrency=1)
        callee.register("com.busy", invoke="roundrobin", concurrency=1)
    caller, other = session(here), session(here)

    def await_waiting(calls: int) -> None:
        def waiting() -> float:
            return sum(node.metric("realm_calls_waiting") for node in found)

        await_true(f"{calls} calls wait", lambda: waiting() == calls)

    for _ in callees:
        caller.call("com.busy")
        caller.call("com.report")
    # Each was given one of both: who is free goes before who is next.
    invocations = [(callee, [callee.invocation() for _ in range(2)]) for callee in callees]
    assert caller.refused("com.busy") == "crossbar.error.max_concurrency_reached"
    waits = caller.call("com.report", 1)
    await_waiting(1)
    assert here.metric("realm_calls_waiting") == 0
    # The caller ends it, by cancelling, by its timeout or by leaving.
    caller.peer.say(CANCEL, waits, {"mode": "kill"})
    assert caller.peer.hear(ERROR)[4] == "wamp.error.canceled"
    waits = caller.call("com.report", 2)
    await_waiting(1)
    caller.peer.say(CANCEL, waits, {"mode": "skip"})
    assert caller.peer.hear(ERROR)[4] == "wamp.error.canceled"
    await_waiting(0)
    caller.call("com.report", 3, timeout=50)
    assert caller.peer.hear(ERROR)[4] == "wamp.error.timeout"
    # Its caller's node may have said so before the one that it waits at.
    await_waiting(0)
    other.call("com.report", 4)
    await_waiting(1)
    other.peer.close()
    await_waiting(0)
    # There is a bound, that of each node.
    for _ in range(8):
        caller.call("com.report", 5)
    await_waiting(8)
    assert caller.refused("com.report") == "crossbar.error.max_concurrency_reached"
    for callee, served in invocations:
        for invocation in served:
            callee.answer(invocation, "served")
        callee.serve("waited")
    results = [caller.result()[3][0] for _ in range(12)]
    assert (results.count("served"), results.count("waited")) == (4, 8)
    for node in found:
        assert node.metric("realm_kept_call_bytes") == 0


def test_calls_that_wait_on_a_node_that_dies_end(nats, start, session) -> None:
    (server,) = nats()
    here, doomed = (start(node_config([server.url], {"store": QUEUES})) for _ in range(2))
    await_neighbours([here, doomed])
    callee, caller = session(doomed), session(here)
    callee.register("com.report", concurrency=1)
    for _ in range(2):
        caller.call("com.report")
    callee.invocation()
    await_true("it waits", lambda: doomed.metric("realm_calls_waiting") == 1)
    doomed.kill()
    errors = [caller.peer.hear(ERROR)[4] for _ in range(2)]
    assert errors == ["wamp.error.network_failure"] * 2


def test_a_resource_has_the_same_shard_on_every_node(nats, nodes, session) -> None:
    found = nodes(3, nats())
    callees = {f"n{place}": session(found[place % 3]) for place in range(5)}
    again = session(found[0])
    for name, callee in callees.items():
        callee.register("com.shard", invoke="random", nkey=name)
        callee.serve(name)
    # The second one of a shard serves it when the first one is gone.
    again.register("com.shard", invoke="random", nkey="n1")
    again.serve("again")
    callers = [session(node) for node in found]

    def shard(caller, key: int) -> str:
        caller.call("com.shard", runmode="partition", rkey=f"k{key}")
        return caller.result()[3][0]

    before = {}
    for key in range(24):
        (before[key],) = {shard(caller, key) for caller in callers}
    assert set(before.values()) == set(callees)
    for name in ("n1", "n4"):
        callees[name].peer.say(GOODBYE, {}, "wamp.close.normal")
    # Both were on one node, which has a caller beside them.
    await_true("they are gone", lambda: found[1].metric("realm_sessions", realm="realm1") == 1)
    for key, name in before.items():
        (now,) = {shard(caller, key) for caller in callers}
        assert now == "again" if name == "n1" else now == name or name == "n4"
