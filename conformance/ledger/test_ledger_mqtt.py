"""MQTT in a vhost of several nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rig import config
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5
from rig.plain import ClosedError
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import await_owner, node_config

LOGIN = {"user": "test", "password": b"test"}


@pytest.fixture
def start_with_mqtt(tmp_path: Path, request) -> Callable[..., Router]:
    """Start a node whose vhost has MQTT clients, too."""

    def start(servers: list, name: str) -> Router:
        directory = tmp_path / name
        directory.mkdir()
        settings = node_config(servers)
        settings["controller"] = {"id": name}
        listener = {"type": "mqtt", "id": "mqtt", "endpoint": config.tcp()}
        listener["options"] = {"vhost": "/"}
        settings["workers"][0]["transports"].append(listener)
        router = Router(directory, config=settings)
        request.addfinalizer(lambda: router.process.poll() is None and router.stop())
        return router

    return start


def test_retained_messages_survive_their_owner(nats, start_with_mqtt) -> None:
    servers = nats()
    nodes = [start_with_mqtt(servers, name) for name in ("node_a", "node_b")]
    owner = await_owner(nodes)
    with Peer.to(owner.address("mqtt"), V5) as sender:
        sender.connect("sender", **LOGIN)
        for topic, payload in (("a", b"old"), ("b", b"x"), ("a", b"new"), ("b", b"")):
            assert sender.publish(topic, payload, 1, retain=True) == 0
        owner.kill()
    (other,) = (node for node in nodes if node is not owner)
    assert await_owner([other]) is other
    found: list[bytes] = []

    def is_in() -> bool:
        with Peer.to(other.address("mqtt"), V5) as reader:
            try:
                reader.connect("reader", **LOGIN)
            except ClosedError:
                return False
            reader.subscribe("b", "a", "end", qos=1)
            reader.publish("end", b"end", 1)
            while (payload := reader.message().payload) != b"end":
                found.append(payload)
            return True

    await_true("a client is let in", is_in)
    assert found == [b"new"]
