"""Nodes of one realm that speak different versions of their protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rig.router import Router
from rig.waiting import await_true

from fabric.stage import await_neighbours, node_config


@pytest.fixture
def start_speaking(nats, start, monkeypatch) -> Callable[[str], Router]:
    """Start a node of one realm that says that it speaks these versions."""
    (server,) = nats()

    def started(versions: str) -> Router:
        monkeypatch.setenv("CROSSTIE_TEST_FABRIC_VERSIONS", versions)
        return start(node_config([server.url]))

    return started


def unread(node: Router) -> float:
    """Return how many messages were of another version."""
    return node.metric("fabric_frames_refused_total", cause="version")


def await_refused(node: Router, count: int) -> None:
    """Wait until the node refuses so many others."""
    await_true(
        f"{count} refused",
        lambda: node.metric("fabric_neighbours", state="refused") == count,
    )


def test_nodes_with_a_version_in_common_are_one_realm(start_speaking, session) -> None:
    found = [start_speaking(versions) for versions in ("1-2", "2-3", "1-4")]
    await_neighbours(found)
    # Until they knew each other they may have said what not all take.
    before = [unread(node) for node in found]
    sessions = [session(node) for node in found]
    callee = sessions[1]
    for each in sessions:
        each.subscribe("com.a")
    callee.register("com.p")
    for each in (sessions[0], sessions[2]):
        each.call("com.p", 1)
        callee.answer(callee.invocation(), "served")
        assert each.result()[3] == ["served"]
        each.publish("com.a", each.id)
        heard = [other.event()[4] for other in sessions if other is not each]
        assert heard == [[each.id]] * 2
    for node in found:
        await_refused(node, 0)
    assert [unread(node) for node in found] == before


def test_a_node_that_speaks_none_of_theirs_is_refused_by_name(start_speaking, session) -> None:
    here, there, stranger = (start_speaking(versions) for versions in ("1-1", "1-2", "3-4"))
    await_neighbours([here, there], 1)
    await_refused(here, 1)
    await_refused(there, 1)
    await_refused(stranger, 2)
    told = "it speaks versions 3 to 4 of the nodes' protocol, this one version 1"
    assert told in here.page("/health")
    assert told in here.page("/")
    here.await_log(lambda line: told in line.text)
    assert "version 1 of the nodes' protocol, this one versions 3 to 4" in (
        stranger.page("/health")
    )
    # No node waits for it, and nothing of it arrives.
    publisher, subscriber, outside = session(here), session(there), session(stranger)
    subscriber.subscribe("com.a")
    outside.register("com.p")
    publisher.register("com.p")
    outside.publish("com.a", 1)
    publisher.publish("com.a", 2)
    assert subscriber.event()[4] == [2]
    # It is replaced, and the realm is whole.
    stranger.stop()
    again = start_speaking("1-3")
    await_neighbours([here, there, again])
    await_refused(here, 0)
    session(again).publish("com.a", 3)
    assert subscriber.event()[4] == [3]
