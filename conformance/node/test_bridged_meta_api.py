"""A realm's meta API in the management realm (`bridge_meta_api`), under Crossbar.io's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.container import RefusedError
from rig.node import Node, node
from rig.session import GOODBYE

BEGIN = "crossbar.worker.worker1.realm.realm1.root."


def bridged() -> dict:
    """Return a node whose realm is seen from the management realm."""
    configuration = node()
    configuration["workers"][0]["realms"][0]["options"] = {"bridge_meta_api": True}
    return configuration


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Callable[[dict], Node]]:
    """Start a node in a directory."""
    running: list[Node] = []

    def start(configuration: dict) -> Node:
        running.append(Node(tmp_path, configuration))
        running[-1].says("^Ready")
        return running[-1]

    yield start
    for each in running:
        each.close()


def test_procedures_and_events(start_node):
    started = start_node(bridged())
    with started.management() as manager:
        assert manager.call(f"{BEGIN}wamp.session.list") == [], "whoever bridges is not seen"
        for topic in ("wamp-session-on_join", "wamp-subscription-on_create"):
            manager.listen(BEGIN + topic)
        manager.listen(f"{BEGIN}wamp-session-on_leave")
        peer = started.join()
        [details] = manager.await_event(f"{BEGIN}wamp-session-on_join")
        assert details["session"] == peer.id
        subscription = peer.subscribe("com.topic")
        session, about = manager.await_event(f"{BEGIN}wamp-subscription-on_create")
        assert (session, about["id"], about["uri"]) == (peer.id, subscription, "com.topic")
        # Arguments go there by place and by name, and results and errors come back as they are.
        assert manager.call(f"{BEGIN}wamp.session.count", ["anonymous"]) == 1
        assert manager.call(f"{BEGIN}wamp.session.count", filter_authroles=["red"]) == 0
        found = manager.call(f"{BEGIN}wamp.subscription.lookup", "com.topic")
        assert found == subscription
        with pytest.raises(RefusedError) as refused:
            manager.call(f"{BEGIN}wamp.session.get", 17)
        assert refused.value.uri == "wamp.error.no_such_session"
        manager.call(f"{BEGIN}wamp.session.kill", peer.id, reason="com.enough")
        assert peer.hear(GOODBYE)[2] == "com.enough"
        peer.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
        assert manager.await_event(f"{BEGIN}wamp-session-on_leave")[0] == peer.id
        peer.close()


def test_missing_objects_are_named(start_node):
    started = start_node(bridged())
    with started.management() as manager:
        for procedure, uri in (
            # A testament is its caller's own, and the caller is in another realm.
            (f"{BEGIN}wamp.session.add_testament", "wamp.error.no_such_procedure"),
            (f"{BEGIN}com.procedure", "wamp.error.no_such_procedure"),
            (BEGIN.replace("realm1", "realm2") + "wamp.session.list", "no_such_object"),
        ):
            with pytest.raises(RefusedError) as refused:
                manager.call(procedure)
            assert refused.value.uri.endswith(uri), refused.value


def test_a_realm_that_is_stopped_and_comes_again(start_node):
    started = start_node(bridged())
    realm = {
        "name": "com.other",
        "roles": [{"name": "anonymous"}],
        "options": {"bridge_meta_api": True},
    }
    begin = BEGIN.replace("realm1", "other")
    with started.management() as manager:
        for _ in range(3):
            manager.call("crossbar.worker.worker1.start_router_realm", "other", realm)
            assert manager.call(f"{begin}wamp.session.count") == 0
            manager.call("crossbar.worker.worker1.stop_router_realm", "other")
            with pytest.raises(RefusedError) as refused:
                manager.call(f"{begin}wamp.session.count")
            assert refused.value.uri == "crossbar.error.no_such_object"
