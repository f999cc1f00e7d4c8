"""Nodes with Python components: containers beside routers, and components in routers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.container import HOSTED, Controller, RefusedError
from rig.node import Node, component, container, node
from rig.router import ROOT
from rig.waiting import await_true

EXAMPLE = ROOT / "examples/rpc_roundtrip"


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Start nodes in directories of their own; nothing of them is left after the test."""
    running: list[Node] = []

    def start(configuration: dict | None = None, *arguments: str, **more: object) -> Node:
        directory = Path(more.pop("directory", tmp_path / f"node{len(running)}"))
        directory.mkdir(exist_ok=True)
        running.append(Node(directory, configuration, *arguments, **more))
        return running[-1]

    yield start
    for each in running:
        each.close()


def wait_for(session: Controller, procedure: str, *args: object):
    """Call as soon as the procedure is there: a component joins after it was started."""
    answers: list[object] = []

    def answered() -> bool:
        try:
            answers.append(session.call(procedure, *args))
        except RefusedError as refused:
            if refused.uri != "wamp.error.no_such_procedure":
                raise
        return bool(answers)

    await_true(f"{procedure} can be called", answered)
    return answers[0]


def joined(started: Node, realm: str = "realm1"):
    """Join the realm of the components."""
    started.says("transport 'unix' started")
    return started.join(realm=realm)


def test_a_workers_own_extra_is_seen_by_its_components_only(start_node):
    # Longer than an argument of a program may be.
    extra = {"secret": "x" * 200_000}
    asking = {**component("any"), "classname": "asking.make"}
    started = start_node(node(container(asking, options={"extra": extra})))
    assert wait_for(joined(started), "com.hosted.shared") == extra
    line = started.says(r"Container with ID 'worker2' and PID (\d+) started")
    pid = int(re.search(r"PID (\d+)", line.text)[1])
    assert b"xxx" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_container_starts_serves_and_ends(start_node):
    started = start_node(node(container(component("Echo", extra={"one": [1, None]}))))
    session = joined(started)
    assert wait_for(session, "com.hosted.echo", 1, "ä")["args"] == [1, "ä"]
    assert wait_for(session, "com.hosted.extra") == {
        "one": [1, None],
        "cbdir": str(started.directory),
    }
    assert wait_for(session, "com.hosted.places")[0] == str(started.directory)
    line = started.says(r"Container with ID 'worker2' and PID (\d+) started")
    pid = int(re.search(r"PID (\d+)", line.text)[1])
    assert started.says("Worker process starting", "Container").pid == pid
    assert started.stop() == 0
    for text in (
        f"sending TERM to subprocess {pid}",
        f"waiting for {pid} to exit",
        "Node worker worker2 ended successfully",
    ):
        started.says(text)
    started.says("Native worker received SIGTERM - shutting down ..", "Container")


def test_function_components_and_environment(start_node):
    function = {**component("x"), "type": "function", "callbacks": {"join": "parts.joined"}}
    del function["classname"]
    options = {"env": {"inherit": ["PATH", "PYTHONPATH"], "vars": {"COLOUR": "green"}}}
    started = start_node(
        node(container(function, component("Echo"), options=options)),
        environment={"SECRET": "not for components"},
    )
    session = joined(started)
    assert wait_for(session, "com.hosted.function") == "function"
    environment = wait_for(session, "com.hosted.environment")
    assert environment["COLOUR"] == "green"
    assert "SECRET" not in environment
    started.says("joined by function", "Container")


def test_an_endless_on_join_does_not_keep_others_from_starting(start_node):
    started = start_node(
        node(
            container(component("Endless"), component("Looping")),
            container(component("Echo")),
        )
    )
    session = joined(started)
    assert wait_for(session, "com.hosted.endless") == "here"
    assert wait_for(session, "com.hosted.echo", 1)["args"] == [1]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("parts.Missing", "cannot load 'parts.Missing'"),
        ("nowhere.Class", "No module named 'nowhere'"),
        ("broken.Class", "broken on purpose"),
        ("parts.Raising", "not today"),
        ("parts.Unmakeable", "cannot be made"),
    ],
)
def test_a_component_that_fails(start_node, name, says):
    bad = component("x", classname=name)
    options = {"needs_components": False}
    started = start_node(node(container(bad, options=options), container(component("Echo"))))
    started.says(re.escape(says))
    session = joined(started)
    assert wait_for(session, "com.hosted.echo", 1)["args"] == [1]


def test_a_component_that_blocks_its_thread(start_node):
    started = start_node(node(container(component("Blocking")), container(component("Echo"))))
    started.says("blocking now", "Container")
    assert wait_for(joined(started), "com.hosted.echo", 1)["args"] == [1]
    assert started.stop() == 0


def test_a_flood_of_lines_is_bounded(start_node):
    started = start_node(node(container(component("Flooding")), container(component("Echo"))))
    started.says("flood flood", "Container")
    assert wait_for(joined(started), "com.hosted.echo", 1)["args"] == [1]
    started.says(r"\d+ .*lines", "Container")
    assert started.stop() == 0


def test_exits_at_once_in_a_loop(start_node, tmp_path):
    interpreter = tmp_path / "exits"
    interpreter.write_text("#!/bin/sh\necho gone >&2\nexit 3\n")
    interpreter.chmod(0o755)
    worker = container(
        component("Echo"), options={"python": str(interpreter), "restart": "restart-always"}
    )
    started = start_node(node(worker, container(component("Echo", extra={"prefix": "com.b"}))))
    for number in range(3):
        started.awaits(
            lambda _, number=number: sum(line.text == "gone" for line in started.log) > number
        )
    assert wait_for(joined(started), "com.b.echo", 1)["args"] == [1]


def test_killed(start_node):
    worker = container(component("Echo"), options={"restart": "restart-always"})
    started = start_node(node(worker))
    session = joined(started)
    wait_for(session, "com.hosted.echo", 1)
    first = started.says("Worker process starting", "Container")
    since = len(started.log)
    os.kill(first.pid, signal.SIGKILL)
    started.says(r"Node worker worker2 ended with error: signal 9 \(SIGKILL\)", since=since)
    started.says("Worker process starting", "Container", since)
    assert wait_for(session, "com.hosted.echo", 2)["args"] == [2]


def test_a_killed_node_leaves_no_process(start_node):
    started = start_node(node(container(component("Echo"))))
    wait_for(joined(started), "com.hosted.echo", 1)
    started.kill()


def test_a_transport_that_is_started_again(start_node):
    started = start_node(node(container(component("Echo"))))
    wait_for(joined(started), "com.hosted.echo", 1)
    management = started.management()
    management.call("crossbar.worker.worker1.stop_router_transport", "unix")
    started.says("trying again", "Container")
    settled = json.loads((started.directory / "config.json").read_text())
    (transport,) = settled["workers"][0]["transports"]
    management.call("crossbar.worker.worker1.start_router_transport", "unix", transport)
    assert wait_for(started.join(), "com.hosted.echo", 1)["args"] == [1]


def test_components_in_a_router(start_node):
    embedded = {
        "id": "inside",
        "type": "class",
        "classname": "parts.Echo",
        "realm": "realm1",
        "role": "red",
    }
    started = start_node(node(components=[embedded], options={"pythonpath": [str(HOSTED)]}))
    assert wait_for(joined(started), "com.hosted.way")[2] == "red"
    assert started.stop() == 0


def outside(classname: str) -> dict:
    """Return a component of a router that is not there, or that raises."""
    return {"id": "inside", "type": "class", "classname": classname, "realm": "realm1"}


def test_a_router_that_lacks_a_component_ends_the_node(start_node):
    options = {"pythonpath": [str(HOSTED)]}
    started = start_node(node(components=[outside("nowhere.Class")], options=options))
    started.says("component 'inside' failed to start: ")
    started.says("Router 'worker1' lacks a component: the node ends")
    assert started.exit_code() == 1


def test_a_router_that_lacks_a_component_by_option_goes_on(start_node):
    options = {"pythonpath": [str(HOSTED)], "needs_components": False}
    started = start_node(node(components=[outside("nowhere.Class")], options=options))
    started.says("component 'inside' failed to start: ")
    started.says("^Ready")
    joined(started)
    assert started.stop() == 0


def test_a_router_whose_host_of_components_cannot_begin_ends_the_node(start_node):
    options = {"python": "/nowhere/python"}
    started = start_node(node(components=[outside("parts.Echo")], options=options))
    started.says("Router 'worker1' lacks a component: the node ends")
    assert started.exit_code() == 1


def test_a_component_that_is_asked_for_later_ends_nothing(start_node):
    started = start_node(node(options={"pythonpath": [str(HOSTED)]}))
    started.says("^Ready")
    management = started.management()
    with pytest.raises(RefusedError):
        management.call(
            "crossbar.worker.worker1.start_router_component", "inside", outside("nowhere.Class")
        )
    joined(started)
    assert started.stop() == 0


def test_components_managed(start_node):
    started = start_node(node(container(component("Echo"))))
    wait_for(joined(started), "com.hosted.echo", 1)
    management = started.management()
    prefix = "crossbar.worker.worker2"
    (described,) = management.call(f"{prefix}.get_components")
    assert described["id"] == "component1"
    management.call(f"{prefix}.restart_component", "component1")
    management.call(f"{prefix}.start_component", "second", component("Modern"))
    assert wait_for(started.join(), "com.hosted.modern") == "modern"
    management.call(f"{prefix}.stop_component", "second")
    with pytest.raises(RefusedError) as refused:
        management.call(f"{prefix}.stop_component", "second")
    assert refused.value.uri == "crossbar.error.no_such_object"


def test_the_last_component_ends_the_node(start_node):
    worker = container(
        component("Leaving"), options={"shutdown": "shutdown-on-last-component-stopped"}
    )
    started = start_node(node(worker, shutdown="shutdown_on_worker_exit"))
    assert started.exit_code() == 1
    for text in (
        "Container is hosting no more components: shutting down.",
        "Node worker worker2 ended successfully",
        "Node worker ended, and trigger 'shutdown_on_worker_exit' active",
    ):
        started.says(text)


@pytest.mark.parametrize("second", [None, "Leaving"])
def test_the_last_component_that_cannot_start_ends_the_node(start_node, second):
    components = [component("x", classname="nowhere.Class")]
    components += [component(second)] if second else []
    options = {"shutdown": "shutdown-on-last-component-stopped", "needs_components": False}
    worker = container(*components, options=options)
    started = start_node(node(worker, shutdown="shutdown_on_worker_exit"))
    assert started.exit_code() == 1
    started.says("Container is hosting no more components: shutting down.")
    started.says("Node worker worker2 ended with error: exit code 1")


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_the_example(start_node, tmp_path):
    directory = tmp_path / "rpc_roundtrip"
    # Without what nodes that ran there have left.
    shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns("key.*", "*.sock", "node.*"))
    file = directory / ".crossbar/config.json"
    # The one change: a free port.
    file.write_text(file.read_text().replace("9000", str(free_port())))
    started = start_node(directory=directory / ".crossbar")
    for title in ("WAMP-UDS-RawSocket-MessagePack", "WAMP-TCP-WebSocket-JSON"):
        form = rf"\[{title}\] - average round-trip time \(ms\): \d+\.\d+"
        first = started.says(form, "Container")
        started.says(form, "Container", started.log.index(first) + 1)
    assert started.stop() == 0
    controller = [
        "Controller process starting",
        r"Node configuration loaded from 'config.json'",
        r"Node ID '.+' set from hostname",
        r"Using default node shutdown triggers \['shutdown_on_worker_exit'\]",
        r"Joined realm 'crossbar' on node management router",
        r"Starting Router with ID 'worker1'\.\.\.",
        r"Router with ID 'worker1' and PID \d+ started",
        r"Router 'worker1': realm 'realm1' \(named 'realm1'\) started",
        r"Router 'worker1': role 'role1' \(named 'anonymous'\) started on realm 'realm1'",
        r"Router 'worker1': transport 'transport1' started",
        r"Router 'worker1': transport 'transport2' started",
        r"Received SIGINT, shutting down\.",
        r"Node shutting down \.\.",
    ]
    at = 0
    for pattern in controller:
        found = started.says(pattern, "Controller", at)
        at = started.log.index(found, at)
    for worker in ("worker2", "worker3", "worker4", "worker5"):
        for pattern in (
            rf"Starting Container with ID '{worker}'\.\.\.",
            rf"Container with ID '{worker}' and PID \d+ started",
            rf"Container '{worker}': component 'component1' started",
            rf"Node worker {worker} ended successfully",
        ):
            started.says(pattern, "Controller")
    for pattern in (
        r"Worker process starting \(\w+-EPollReactor\) \.\.",
        "Ready!",
        r"Native worker received SIGTERM - shutting down \.\.",
        "Shutdown of worker requested!",
        "Connection to node controller closed cleanly",
        r"Container is hosting no more components: shutting down\.",
    ):
        assert sum(bool(re.search(pattern, line.text)) for line in started.log) >= 2, pattern
    wrong = [line for line in started.log if re.search("WARN|rror|Traceback", line.text)]
    # On a busy machine a goodbye may take longer than it is waited for, which is no fault.
    assert [line for line in wrong if "does not leave: cut off" not in line.text] == []
