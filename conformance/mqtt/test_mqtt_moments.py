"""Moments of a node: its stop, a kill, a reload, a drain; what MQTT clients are told, and keep."""

from __future__ import annotations

import copy
import json
import subprocess

import pytest
from rig import config, mqtt_broker
from rig.mqtt_broker import Broker, Node
from rig.mqtt_wire import V5, V31, V311
from rig.plain import ClosedError
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true


def run(node: Node, verb: str, *arguments: str) -> str:
    """Run a command about the node; return what it says."""
    command = [str(binary()), verb, "--cbdir", str(node.directory), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def change(node: Node, settings: dict) -> None:
    """Write a configuration, and have the node read it."""
    (node.directory / "config.json").write_text(json.dumps(settings))
    run(node, "reload")


@pytest.fixture
def place(start_node):
    """A node, and its clients."""
    node = start_node()
    found = node.broker()
    found.node = node
    yield found
    found.close()


def test_a_stop_says_nothing(place: Broker, names) -> None:
    """After a refusal or a DISCONNECT some clients never come back; after a bare end all do."""
    clients = [place.client(names.client(str(version)), version) for version in (V31, V311, V5)]
    waiting = place.peer(V5)
    for each in clients:
        each.subscribe(names.topic("#"))
    place.node.stop()
    for each in (*clients, waiting):
        assert each.receive_all() == b""


def test_a_kill_closes(place: Broker, names) -> None:
    client = place.client(names.client())
    place.node.kill()
    client.expect_end()
    place.node.start()
    place.client(names.client()).round_trip()


def test_a_reload_keeps_clients(place: Broker, names) -> None:
    """Permissions of clients that are there change with it."""
    client = place.client(names.client(), session_expiry=1000)
    client.subscribe(names.topic())
    settings = copy.deepcopy(place.node.written)
    realm, _ = settings["workers"][0]["realms"]
    realm["roles"][0]["permissions"].append(
        config.permission(f"{names.root}.no", publish=False, subscribe=False)
    )
    change(place.node, settings)

    def is_refused() -> bool:
        return client.publish(names.topic("no"), b"", 1) == 0x87

    await_true("the permission counts", is_refused)
    client.publish(names.topic(), b"heard", 1)
    assert client.message().payload == b"heard"


def test_a_listener_that_a_reload_ends(start_node, names) -> None:
    """Its clients are closed, those of others stay; a session goes on by another listener."""
    settings = mqtt_broker.configuration(mqtt_broker.transport(), mqtt_broker.transport("other"))
    node = start_node(settings)
    settings = copy.deepcopy(node.written)
    place, other = node.broker(), Broker("crosstie", lambda: node.address("other"))
    leaving = place.client(names.client("a"), session_expiry=1000)
    leaving.subscribe(names.topic(), qos=1)
    staying = other.client(names.client("b"))
    staying.round_trip()
    del settings["workers"][0]["transports"][0]
    change(node, settings)
    leaving.receive_all()
    staying.publish(names.topic(), b"kept", 1)
    back = other.peer()
    assert back.connect(names.client("a"), clean=False).present
    assert back.message().payload == b"kept"
    place.close()
    other.close()


def test_a_drain(start_node, names) -> None:
    """Clients are closed in slices, and nobody is let in until its end."""
    admin = config.universal("admin", config.unix("admin.sock"))
    settings = mqtt_broker.configuration(mqtt_broker.transport())
    settings["workers"][0]["transports"].append(admin)
    node = start_node(settings)
    place = node.broker()
    clients = [place.client(names.client(str(number))) for number in range(10)]
    run(node, "drain", "--grace", "0s", "--over", "1s")
    for each in clients:
        each.receive_all()
    with pytest.raises((OSError, ClosedError)):
        place.client(names.client("new"))
    run(node, "undrain")
    place.client(names.client("new")).round_trip()
    place.close()


def test_clients_as_an_operator_sees_them(place: Broker, names) -> None:
    """`crosstie sessions` lists them, and closes one; the metrics count them."""
    client = place.client(names.client())

    def listed() -> list[int]:
        rows = json.loads(run(place.node, "sessions", "--json"))
        return [row["session"] for row in rows if row["authrole"] == "anonymous"]

    (session,) = listed()
    router = place.node.router
    assert router.metric("mqtt_connections") == 1
    assert router.metric("mqtt_packets_total", direction="received", type="CONNECT") == 1
    run(place.node, "sessions", "close", str(session))
    client.expect_disconnect(0x98)
    await_true("it is gone", lambda: not listed())
