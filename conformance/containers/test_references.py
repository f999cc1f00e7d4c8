"""Components that refer to others of their worker: started once these are ready."""

from __future__ import annotations

import pytest
from rig import config
from rig.container import HOSTED, Controller, RefusedError
from rig.hosting import of_class
from rig.node import Node
from rig.waiting import await_true


def states(container) -> dict[str, str]:
    return {each["id"]: each["state"] for each in container.call("get_components")}


def test_one_that_waits_is_started_when_the_other_is_ready(start_container, unix):
    container = start_container("--shutdown", "manual", "--expose-shared")
    container.start(of_class("order.First", unix), "first")
    container.start(of_class("order.Second", unix, references=["component:first"]), "second")
    third = {"type": "function", "callbacks": {"join": "order.joined"}}
    third |= {"realm": "realm1", "transport": unix, "references": ["component:second"]}
    container.start(third, "third")
    assert container.says("'second' waits for 'first' to be ready").level == 6
    await_true("the first one waits", lambda: subscribed(container.node, "com.order.go"))
    assert states(container) == {"first": "joined", "second": "waiting", "third": "waiting"}
    container.node.publish("com.order.go")
    for each in ("first", "second", "third"):
        container.event("on_component_ready", each)
    assert container.node.call("com.order.third") == ["first", "EPollReactor"]
    # Ready components stay ready: a second start does not wait.
    container.call("restart_component", "second")
    container.event("on_component_ready", "second")


def test_one_that_waits_can_be_stopped_and_goes_on_waiting_for_the_next_start(container, unix):
    container.start(of_class("order.First", unix), "first")
    for name in ("second", "other"):
        container.start(of_class("order.Second", unix, references=["component:first"]), name)
    container.call("stop_component", "other")
    container.event("on_component_stopped", "other")
    container.call("stop_component", "first")
    assert container.says("'first' has ended: 'second' waits for it").level == 4
    assert states(container) == {"second": "waiting"}
    container.start(of_class("order.First", unix), "first")
    await_true("the first one waits", lambda: subscribed(container.node, "com.order.go"))
    container.node.publish("com.order.go")
    container.event("on_component_ready", "second")
    assert container.node.call("com.order.second") == ["first", None]
    assert container.terminate() == 0


@pytest.mark.parametrize(
    ("references", "says"),
    [
        (["component:nobody"], "it refers to component 'nobody', which is not there"),
        (["connection:db"], "is 'component:ID', not 'connection:db'"),
        ("component:first", "'references' is a list of strings"),
    ],
)
def test_invalid_references_are_refused(container, unix, references, says):
    with pytest.raises(RefusedError) as refused:
        container.start(of_class("order.Second", unix, references=references), "second")
    assert refused.value.uri == "crossbar.error.invalid_configuration"
    assert says in refused.value.text


def test_components_of_a_router(tmp_path):
    first = {"type": "class", "id": "first", "classname": "order.First"}
    second = {"type": "class", "id": "second", "classname": "order.Second"}
    second |= {"references": ["component:first", "connection:db"]}
    router = {
        "type": "router",
        "options": {"pythonpath": [str(HOSTED)], "expose_shared": True},
        "realms": [{"name": "realm1", "roles": [config.role("anonymous")]}],
        "transports": [{"type": "rawsocket", "id": "unix", "endpoint": config.unix("node.sock")}],
        "components": [
            {**each, "realm": "realm1", "role": "anonymous"} for each in (first, second)
        ],
    }
    node = Node(tmp_path, {"version": 2, "workers": [router]})
    try:
        node.says('"connection:db" in "references" is left out')
        node.says("Component 'second' waits for 'first' to be ready")
        node.says("^Ready")
        peer = Controller.unix(tmp_path / "node.sock").sit_down("realm1")
        await_true("the first one waits", lambda: subscribed(peer, "com.order.go"))
        peer.publish("com.order.go")
        await_true("the second one is ready", lambda: answer(peer) == ["first", "EPollReactor"])
        peer.close()
    finally:
        node.close()


def subscribed(peer: Controller, topic: str) -> bool:
    return peer.call("wamp.subscription.lookup", topic) is not None


def answer(peer: Controller) -> list | None:
    if peer.call("wamp.registration.match", "com.order.second") is None:
        return None
    return peer.call("com.order.second")
