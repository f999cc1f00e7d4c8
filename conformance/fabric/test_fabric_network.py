"""Lines between machines that are cut, both ways and one way, under numbered calls and events."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from rig.nats import jetstream
from rig.plain import ClosedError
from rig.router import Router
from rig.session import GOODBYE, REGISTERED, RESULT, UNREGISTERED
from rig.waiting import await_true

from fabric.load import moves_to_another_server, server_of
from fabric.stage import Session, await_neighbours, node_config

LOST = ("wamp.error.network_failure", "wamp.error.no_such_procedure")


@pytest.fixture
def at(start, servers) -> Callable[..., object]:
    """Start a node that knows those servers."""

    def started(*numbers: int, **fabric: object) -> Router:
        return start(node_config([servers[number].url for number in numbers], **fabric))

    return started


@pytest.mark.parametrize("cut", ["line", "answers"])
def test_a_node_whose_server_is_cut_off_goes_to_another(cut, network, servers, at, load) -> None:
    moves = at(0, 1, 2)
    doomed = server_of(moves, servers)
    cuts = {
        "line": lambda: network.unplug(doomed),
        # It hears the node, which hears nothing.
        "answers": lambda: network.lose(doomed, None),
    }
    others = [at(index) for index in range(3) if index != doomed]
    moves_to_another_server(moves, others, load, cuts[cut])


def test_servers_of_which_one_does_not_hear_the_other(network, at, load) -> None:
    found = [at(index) for index in range(3)]
    await_neighbours(found)
    across, beside = load(found[0], found[1]), load(found[1], found[2])
    for each in (across, beside):
        each.goes_on()
    failed = len(across.failed)
    network.lose(0, 1)
    await_true("calls across end", lambda: len(across.failed) > failed)
    beside.goes_on()
    network.lose_none(0, 1)
    await_neighbours(found)
    for each in (across, beside):
        each.goes_on()
    for each in (across, beside):
        each.end()
    assert beside.failed == {}


def test_both_sides_of_a_cut_go_on_and_agree_when_it_is_over(network, at, session) -> None:
    here, near, alone = found = [at(index) for index in range(3)]
    await_neighbours(found)
    cuts = [(2, 0), (0, 2), (2, 1), (1, 2)]
    for one, other in cuts:
        network.lose(one, other)
    await_neighbours([here, near], 1)
    await_neighbours([alone], 0)
    callees = [session(near), session(alone)]
    for callee in callees:
        callee.register("com.single")
    subscriber, publisher = session(here), session(near)
    subscriber.subscribe("com.topic")
    publisher.publish("com.topic", 1)
    assert subscriber.event()[4] == [1]
    caller = session(here)
    caller.call("com.single", 1)
    callees[0].answer(callees[0].invocation(), "near")
    assert caller.result()[3] == ["near"]
    told: dict[int, list] = {}
    for index, callee in enumerate(callees):

        def hear(index: int = index, callee: Session = callee) -> None:
            told[index] = callee.peer.hear_any()

        threading.Thread(target=hear, daemon=True).start()
    for one, other in cuts:
        network.lose_none(one, other)
    await_neighbours(found)
    # One of both stays, and who loses it is told.
    await_true("one is told", lambda: bool(told))
    ((lost, message),) = told.items()
    assert message[0] in (GOODBYE, UNREGISTERED)
    kept = callees[1 - lost]
    for node in found:
        caller = session(node)
        caller.call("com.single", 2)
        await_true("it is called", lambda: len(told) == 2)
        invocation = told[1 - lost] if node is found[0] else kept.invocation()
        kept.answer(invocation, "kept")
        assert caller.result()[3] == ["kept"]


def answer_all(callee: Session, result: str) -> None:
    """Answer every call until the session is over."""
    with suppress(OSError, ClosedError):
        while True:
            callee.answer(callee.invocation(), result)


@pytest.mark.parametrize("servers", [jetstream], indirect=True)
def test_one_side_of_a_cut_has_what_is_granted_strictly(network, at, session) -> None:
    found = [at(index, single="strict") for index in range(3)]
    here, near, alone = found
    await_neighbours(found)
    old, other, taker = session(alone), session(alone), session(near)
    old.register("com.single")
    cuts = [(2, 0), (0, 2), (2, 1), (1, 2)]
    for one, another in cuts:
        network.lose(one, another)
    await_neighbours([here, near], 1)
    await_neighbours([alone], 0)

    def is_granted(procedure: str) -> bool:
        taker.tell_register(procedure)
        return taker.peer.hear_any()[0] == REGISTERED

    # The many wait until its lease is over; their servers may have to elect a leader first.
    await_true("it is granted to another node", lambda: is_granted("com.single"), 60)
    # Before that its node has served it no more, which later takes it from its callee.
    assert other.refused("com.single") in LOST
    assert old.is_sent_away()
    assert other.refused("com.single") == "wamp.error.no_such_procedure"
    # The few are granted nothing more.
    assert other.not_registered("com.new") == "wamp.error.network_failure"
    await_true("the many are granted", lambda: is_granted("com.new"), 30)
    for one, another in cuts:
        network.lose_none(one, another)
    await_neighbours(found)
    threading.Thread(target=answer_all, args=(taker, "taken"), daemon=True).start()

    def is_answered() -> bool:
        other.call("com.single")
        answer = other.peer.hear_any()
        if answer[0] == RESULT:
            return answer[3] == ["taken"]
        assert answer[4] in LOST
        return False

    # Servers that meet again may elect a leader, and nobody serves what no leader has confirmed.
    await_true("calls go to the callee that has it", is_answered)
