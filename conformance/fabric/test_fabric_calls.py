"""Calls between nodes: whose callees serve them, and what becomes of them when something fails."""

from __future__ import annotations

import pytest
from rig.links import Link
from rig.puppet import failure
from rig.session import CANCEL, ERROR, INTERRUPT, REGISTERED
from rig.waiting import await_true

from fabric.stage import await_neighbours


def served(callee, *results: object) -> list:
    """Answer the next invocation; return it."""
    invocation = callee.invocation()
    callee.answer(invocation, *(results or invocation[4]))
    return invocation


def test_a_procedure_is_found_on_all_nodes_once_registered(nats, nodes, session) -> None:
    here, there, elsewhere = nodes(3, nats(3))
    callee = session(here)
    callers = [session(node) for node in (here, there, elsewhere)]
    for number in range(50):
        registration = callee.register(f"com.p{number}")
        for caller in callers:
            caller.call(f"com.p{number}", number)
        for _ in callers:
            served(callee)
        assert [caller.result()[3] for caller in callers] == [[number]] * 3
        callee.unregister(registration)
        # The next callee may register it at once, on any node.
        again = session((here, there, elsewhere)[number % 3])
        again.unregister(again.register(f"com.p{number}"))
        again.close()
    assert callers[1].refused("com.p1") == "wamp.error.no_such_procedure"


def test_autobahns_clients_on_two_nodes(nats, nodes, new_session, place_of) -> None:
    here, there = nodes(2, nats(3))
    caller, callee = (
        new_session(client).open(place_of(Link(client, "rs", "tcp", serializer), of=node))
        for client, serializer, node in (
            ("asyncio", "msgpack", here),
            ("twisted", "cbor", there),
        )
    )
    callee.register("com.echo", {"do": "echo"})
    reply = caller.call("com.echo", 1, b"\x00\xff", a="b")
    assert (reply.args, reply.kwargs) == ([1, b"\x00\xff"], {"a": "b"})
    raising = {"do": "raise", "uri": "com.error.x", "args": [1], "kwargs": {"b": 2}}
    callee.register("com.raise", raising)
    error = failure(caller.start_call("com.raise"))
    assert (error.uri, error.arguments, error.kwargs) == ("com.error.x", [1], {"b": 2})


def test_attributes_cross_with_a_call(nats, nodes, session) -> None:
    here, there = nodes(2, nats(3))
    caller, callee = session(here), session(there)
    callee.register("com.", match="prefix")
    passed = [{"session": 5, "authid": "joe", "authrole": "user"}]
    caller.call("com.a", {"b": None}, disclose_me=True, forward_for=passed)
    details = served(callee, [1, "\N{LATIN SMALL LETTER E WITH ACUTE}"])[3]
    assert details["procedure"] == "com.a"
    assert details["caller"] == caller.id
    assert details["forward_for"] == passed
    assert caller.result()[3] == [[1, "\N{LATIN SMALL LETTER E WITH ACUTE}"]]
    caller.call("com.b")
    callee.fail(callee.invocation(), "com.error.mine", 7)
    error = caller.peer.hear(ERROR)
    assert error[4:6] == ["com.error.mine", [7]]


def test_one_procedure_is_one_callees(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    first, second = session(here), session(there)
    first.register("com.single")
    assert second.not_registered("com.single") == "wamp.error.procedure_already_exists"
    first.register("com.shared", invoke="roundrobin")
    refused = second.not_registered("com.shared", invoke="random")
    assert refused == "wamp.error.procedure_exists_with_different_invocation_policy"
    # Those who ask at once are told one after the other.
    for number in range(100):
        for each in (first, second):
            each.tell_register(f"com.race{number}")
        answers = [each.peer.hear_any()[0] for each in (first, second)]
        assert sorted(answers) == [ERROR, REGISTERED], number


def test_shared_registrations_over_three_nodes(nats, nodes, session) -> None:
    found = nodes(3, nats(3))
    callees = [session(node) for node in found]
    for callee in callees:
        for policy in ("first", "last", "roundrobin", "random"):
            callee.register(f"com.{policy}", invoke=policy)
    for name, callee in zip("abc", callees, strict=True):
        callee.serve(name)
    caller = session(found[1])
    expected = {
        "first": {"a"},
        "last": {"c"},
        "roundrobin": {"a", "b", "c"},
        "random": {"a", "b", "c"},
    }
    for policy, who in expected.items():
        for _ in range(60):
            caller.call(f"com.{policy}")
        results = [caller.result()[3][0] for _ in range(60)]
        assert set(results) == who
        if policy == "roundrobin":
            assert [results.count(name) for name in "abc"] == [20, 20, 20]


def test_the_least_busy_callee_of_two_nodes(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    near, far, caller = session(here), session(there), session(here)
    for callee in (near, far):
        callee.register("com.least", invoke="x_least_busy")
    # Without an answer: a node knows the calls that it passed to the other one.
    for callee in (near, far, near, far):
        caller.call("com.least")
        callee.invocation()
    refused = near.not_registered("com.sticky", invoke="x_sticky")
    assert refused == "wamp.error.option_not_allowed"


def test_definitions_in_a_realm_of_several_nodes(nats, nodes, session) -> None:
    (node,) = nodes(1, nats())
    refused = session(node).refused("wamp.reflect.define", "com.add", "adds")
    assert refused == "wamp.error.no_such_procedure"


def test_a_node_may_prefer_its_own(nats, nodes, session) -> None:
    here, there = nodes(2, nats(), locality="prefer")
    near, far, caller = session(here), session(there), session(here)
    far.register("com.a", invoke="roundrobin")
    registration = near.register("com.a", invoke="roundrobin")
    for _ in range(4):
        caller.call("com.a")
        served(near, "near")
        assert caller.result()[3] == ["near"]
    near.unregister(registration)
    caller.call("com.a")
    served(far, "far")
    assert caller.result()[3] == ["far"]


def test_progress_both_ways(nats, nodes, session) -> None:
    here, there = nodes(2, nats(3))
    caller, callee = session(here), session(there)
    callee.register("com.sum")
    request = caller.call("com.sum", 0, progress=True, receive_progress=True)
    first = callee.invocation()
    assert first[3]["progress"] is True
    for number in range(1, 20):
        caller.call_on(request, "com.sum", number, progress=number < 19)
        invocation = callee.invocation()
        assert invocation[1] == first[1]
        assert invocation[4] == [number]
        callee.answer(invocation, number, progress=number < 19)
        result = caller.result()
        assert result[3] == [number]
        assert bool(result[2].get("progress")) == (number < 19)


@pytest.mark.parametrize(("mode", "interrupts"), [("skip", 0), ("kill", 1), ("killnowait", 1)])
def test_calls_are_cancelled(mode, interrupts, nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    caller, callee = session(here), session(there)
    callee.register("com.slow")
    request = caller.call("com.slow")
    invocation = callee.invocation()
    caller.peer.say(CANCEL, request, {"mode": mode})
    if interrupts:
        interrupt = callee.peer.hear(INTERRUPT)
        assert interrupt[1] == invocation[1]
        assert interrupt[2]["mode"] == mode
    if mode == "kill":
        callee.fail(invocation, "wamp.error.canceled")
    assert caller.peer.hear(ERROR)[4] == "wamp.error.canceled"
    await_true("nothing is open", lambda: there.metric("fabric_calls") == 0)
    assert here.metric("fabric_calls") == 0


def test_a_calls_time_is_kept_where_its_callee_is(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    caller, callee = session(here), session(there)
    callee.register("com.slow")
    caller.call("com.slow", timeout=200)
    invocation = callee.invocation()
    assert callee.peer.hear(INTERRUPT)[1] == invocation[1]
    assert caller.peer.hear(ERROR)[4] == "wamp.error.timeout"


def test_callers_and_callees_that_leave(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    caller, callee = session(here), session(there)
    callee.register("com.slow")
    caller.call("com.slow")
    callee.invocation()
    leaving = session(here)
    leaving.call("com.slow")
    invocation = callee.invocation()
    leaving.peer.close()
    assert callee.peer.hear(INTERRUPT)[1] == invocation[1]
    callee.peer.close()
    assert caller.peer.hear(ERROR)[4] == "wamp.error.canceled"
    await_true("it is gone", lambda: here.metric("fabric_registrations") == 0)
    assert caller.refused("com.slow") == "wamp.error.no_such_procedure"


def test_calls_end_with_their_node(nats, nodes, session) -> None:
    here, there, doomed = nodes(3, nats(3))
    caller, stays = session(here), session(there)
    stays.register("com.shared", invoke="first")
    lost = session(doomed)
    lost.register("com.a")
    lost.register("com.shared", invoke="first")
    stays.register("com.mine")
    caller.call("com.a")
    lost.invocation()
    of_lost = session(doomed)
    of_lost.call("com.mine")
    invocation = stays.invocation()
    doomed.kill()
    assert caller.peer.hear(ERROR)[4] == "wamp.error.network_failure"
    assert stays.peer.hear(INTERRUPT)[1] == invocation[1]
    # Another callee serves it now.
    stays.register("com.a")
    for procedure in ("com.a", "com.shared"):
        caller.call(procedure)
        served(stays, procedure)
        assert caller.result()[3] == [procedure]
    assert here.metric("fabric_pair_resets_total", cause="silent") == 1


def test_calls_end_with_their_server_of_nats(nats, nodes, session) -> None:
    (server,) = servers = nats()
    here, there = nodes(2, servers)
    caller, callee, near = session(here), session(there), session(here)
    callee.register("com.a")
    near.register("com.near")
    caller.call("com.a")
    invocation = callee.invocation()
    server.kill()
    assert caller.peer.hear(ERROR)[4] == "wamp.error.network_failure"
    assert callee.peer.hear(INTERRUPT)[1] == invocation[1]
    # Each node goes on alone, and both may have what only one can have.
    caller.call("com.near")
    served(near, "near")
    assert caller.result()[3] == ["near"]
    assert caller.refused("com.a") == "wamp.error.no_such_procedure"
    other = session(here)
    other.register("com.a")
    server.start()
    await_neighbours([here, there])
    # The one that was there before stays.
    assert other.is_sent_away()
    caller.call("com.a")
    served(callee, "back")
    assert caller.result()[3] == ["back"]


def test_calls_that_are_too_long_are_refused(nats, nodes, session) -> None:
    here, there = nodes(2, nats(1, "max_payload: 64KB\n"))
    caller, callee = session(here), session(there)
    callee.register("com.a")
    assert caller.refused("com.a", "x" * 100_000) == "wamp.error.payload_size_exceeded"
    caller.call("com.a", 1)
    served(callee)
    assert caller.result()[3] == [1]
