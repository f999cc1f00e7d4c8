"""Joints that are listed, started and stopped while their worker runs."""

from __future__ import annotations

import pytest
from rig.container import RefusedError
from rig.node import management
from rig.puppet import failure
from rig.waiting import await_true

from joined.conftest import JOINT
from joined.test_calls import inward, outward, refused


def test_joints_come_and_go(joined, oslo_server, topic):
    router = joined()
    oslo_server(router)
    session = router.session()
    manager = management(router.router.directory)

    def ask(what: str, *args: object):
        return manager.call(f"crossbar.worker.worker1.{what}", *args)

    def no_such() -> bool:
        return refused(session, "com.real.echo").uri == "wamp.error.no_such_procedure"

    assert ask("get_router_joints") == []
    for _ in range(2):
        # The second time as if it had never been.
        assert no_such()
        ask("start_router_joint", "one", {**JOINT, **outward(topic)})
        assert ask("get_router_joints") == ["one"]
        await_true("it is there", lambda: ask("get_router_joint", "one")["connected"])
        assert session.call("com.real.echo", b=1).args[0]["args"] == {"b": 1}
        about = ask("get_router_joint", "one")
        assert (about["type"], about["passed"], about["trouble"]) == (
            "procedure-to-target",
            1,
            None,
        )
        pending = session.start_call("com.real.sleep", timeout=30, reply=1)
        await_true("it is called", lambda: ask("get_router_realm", "realm1")["calls"] == 1)
        ask("stop_router_joint", "one")
        # No call waits for an answer that cannot come.
        assert failure(pending).uri
        assert ask("get_router_joints") == []
        await_true("its session has left", no_such)


def test_an_invalid_joint_is_not_started(joined, topic):
    router = joined(outward(topic))
    manager = management(router.router.directory)

    def fails(what: str, *args: object) -> str:
        with pytest.raises(RefusedError) as raised:
            manager.call(f"crossbar.worker.worker1.{what}", *args)
        return raised.value.uri

    again = {**JOINT, **outward(topic)}
    assert fails("start_router_joint", "joint_0", again) == "crossbar.error.already_running"
    back = {**JOINT, **inward(topic, procedure="com.real.{method}")}
    invalid = "crossbar.error.invalid_configuration"
    assert fails("start_router_joint", "back", back) == invalid
    assert fails("start_router_joint", "odd", {**again, "type": "odd"}) == invalid
    for verb in ("get", "stop"):
        assert fails(f"{verb}_router_joint", "none") == "crossbar.error.no_such_object"
    assert manager.call("crossbar.worker.worker1.get_router_joints") == ["joint_0"]
