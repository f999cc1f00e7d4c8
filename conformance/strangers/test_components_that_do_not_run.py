"""A component that cannot be loaded or connected is seen wherever an operator looks."""

from __future__ import annotations

import json
import subprocess
import urllib.request

import pytest
from rig import config
from rig.node import Node, component, container, node
from rig.router import binary
from rig.waiting import await_true

NOWHERE = {"type": "rawsocket", "serializer": "json", "endpoint": config.unix("nobody.sock")}


@pytest.fixture
def started(tmp_path):
    """A node with components that do not run, each in its way."""
    components = [
        component("NoSuchClass", id="missing"),
        component("Echo", id="lonely", transport=NOWHERE),
        component("Raising", id="raises"),
        component("Echo", id="good"),
    ]
    configuration = node(container(*components, options={"needs_components": False}))
    pages = config.universal("tcp", config.tcp())
    configuration["workers"][0]["transports"].append(pages)
    running = Node(tmp_path, configuration)
    running.says("Ready; to stop")
    yield running
    running.close()


def states(session) -> dict:
    """Return the states of the container's components."""
    about = session.call("crossbar.get_worker", "worker2")
    return {each["id"]: each["state"] for each in about["components"]}


def page(url: str, path: str) -> str:
    """Return a page of the node."""
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        assert answer.status == 200
        return answer.read().decode()


def status(started: Node, *more: str) -> str:
    """Return what `crosstie status` prints."""
    command = [binary(), "status", "--cbdir", started.directory, *more]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_status_the_pages_and_the_metrics_say_which_component_does_not_run(started):
    expected = {"missing": "failed", "lonely": "waiting", "raises": "failed", "good": "started"}
    with started.management() as session:
        await_true("all have shown what they are", lambda: states(session) == expected)
        urls = session.call("crossbar.worker.worker1.get_router_transport", "tcp")["urls"]
    url = next(url for url in urls if url.startswith("ws:")).replace("ws:", "http:")
    url = url.rstrip("/").removesuffix("/ws")
    told = page(url, "/health")
    assert told.startswith("ok\n")
    for line in (
        "Component 'missing' of worker 'worker2' has failed: ",
        "Component 'lonely' of worker 'worker2' has no session: ",
        "Component 'raises' of worker 'worker2' has failed: ",
    ):
        assert line in told
    assert "'good'" not in told
    html = page(url, "/")
    assert "<td>component missing<td>failed" in html
    assert "<td>component good<td>started" in html
    metrics = page(url, "/metrics")
    assert 'crosstie_component_failures_total{worker="worker2"} 2\n' in metrics
    for state, count in (("failed", 2), ("waiting", 1), ("started", 1), ("starting", 0)):
        assert f'crosstie_components{{worker="worker2",state="{state}"}} {count}\n' in metrics
    assert 'crosstie_worker_running{worker="worker2",type="container"} 1\n' in metrics
    text = status(started)
    assert "component: missing of worker2 has failed: " in text
    assert "component: lonely of worker2 has no session: " in text
    told = json.loads(status(started, "--json"))
    assert told["state"] == "running"
    assert told["process"] == started.process.pid
    assert len(told["problems"]) == 3
    workers = {worker["id"]: worker for worker in told["workers"]}
    assert {each["id"]: each["state"] for each in workers["worker2"]["components"]} == expected
    assert any(url.startswith("ws:") for url in told["wamp"])


def test_a_component_that_connects_later_is_no_trouble_any_more(tmp_path):
    lonely = component("Echo", transport=NOWHERE)
    started = Node(tmp_path, node(container(lonely, options={"needs_components": False})))
    try:
        started.says("Ready; to stop")
        with started.management() as session:
            await_true("it waits", lambda: states(session)["component1"] == "waiting")
            endpoint = config.unix("nobody.sock")
            late = {"type": "rawsocket", "endpoint": endpoint, "auth": config.static("anonymous")}
            session.call("crossbar.worker.worker1.start_router_transport", "late", late)
            await_true("it has joined", lambda: states(session)["component1"] == "started")
        assert json.loads(status(started, "--json"))["problems"] == []
        assert started.stop() == 0
    finally:
        started.close()


def test_status_of_a_node_that_does_not_run_is_json_too(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(node()))
    command = [binary(), "status", "--cbdir", tmp_path, "--json"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60)
    told = json.loads(done.stdout)
    assert (told["state"], told["process"], told["wamp"]) == ("stopped", None, [])
