"""Fixtures of the MQTT suite: both brokers, nodes of a test's own, and names that no other has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import mosquitto as judge
from rig import mqtt_broker
from rig import mqtt_wire as wire
from rig.failing import HAS_FAILED
from rig.mosquitto import Mosquitto
from rig.mqtt_broker import Broker, Node
from rig.router import Router

from mqtt.judged import DIFFERENT, SLOW, UNSTEADY

# How long a scenario waits for what mosquitto is known not to do.
IN_VAIN_S = 1.5


@dataclass
class Names:
    """Names of a test's own."""

    root: str

    def topic(self, rest: str = "topic") -> str:
        """Return a topic or a filter."""
        return f"{self.root}/{rest}"

    def client(self, name: str = "client") -> str:
        """Return a client id."""
        return f"{self.root}-{name}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the scenarios of the table to fail on mosquitto, and to pass nowhere else."""
    for item in items:
        if reason := why_left_out(item):
            item.add_marker(pytest.mark.skip(reason=f"mosquitto {reason}"))
        if does := known_difference(item):
            item.add_marker(pytest.mark.xfail(reason=f"mosquitto: {does}", strict=True))


def why_left_out(item: pytest.Item) -> str | None:
    """Return why a scenario is not played on mosquitto, if it is not."""
    call = getattr(item, "callspec", None)
    if call is None or call.params.get("broker") != "mosquitto":
        return None
    if item.originalname in SLOW and "CROSSTIE_WHOLE" not in os.environ:
        return "looks for silent clients every few seconds: make test-all"
    return UNSTEADY.get(item.originalname)


def known_difference(item: pytest.Item) -> str | None:
    """Return what mosquitto does in place of what the scenario asks for."""
    call = getattr(item, "callspec", None)
    if call is None or call.params.get("broker") != "mosquitto":
        return None
    name = item.originalname
    version = call.params.get("version")
    return DIFFERENT.get(item.name) or DIFFERENT.get((name, version)) or DIFFERENT.get(name)


@pytest.fixture(scope="session")
def mosquitto(tmp_path_factory) -> Iterator[Mosquitto]:
    """The judge, one for the whole session."""
    if not judge.is_installed():
        pytest.skip("mosquitto is not installed")
    running = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory) -> Iterator[Router]:
    """The node under test, one for the whole session; its clean exit is a test of its own."""
    directory = tmp_path_factory.mktemp("crosstie")
    listeners = (mqtt_broker.transport(), mqtt_broker.transport("strict", realm="strict"))
    running = Router(directory, config=mqtt_broker.configuration(*listeners))
    yield running
    running.stop()


@pytest.fixture(params=["mosquitto", "crosstie"])
def broker(request) -> Iterator[Broker]:
    """Each of them in turn."""
    yield from place_of(request, "mqtt")


@pytest.fixture
def strict(broker: Broker, request) -> Iterator[Broker]:
    """The same one, with the topics that are forbidden."""
    yield from place_of(request, "strict")


def place_of(request, transport: str) -> Iterator[Broker]:
    """Return the broker of this test, at that transport if it is Crosstie."""
    if request.node.callspec.params["broker"] == "crosstie":
        router = request.getfixturevalue("shared_node")
        place = Broker("crosstie", lambda: router.address(transport))
    else:
        address = request.getfixturevalue("mosquitto").address
        patience = {"patience_s": IN_VAIN_S} if known_difference(request.node) else {}
        place = Broker("mosquitto", lambda: address, **patience)
    yield place
    place.close()


@pytest.fixture
def crosstie(shared_node: Router) -> Iterator[Broker]:
    """The shared node alone."""
    place = Broker("crosstie", lambda: shared_node.address("mqtt"))
    yield place
    place.close()


@pytest.fixture(params=[wire.V31, wire.V311, wire.V5], ids=["3.1", "3.1.1", "5"])
def version(request) -> int:
    """Every version in turn."""
    return request.param


@pytest.fixture
def names(request) -> Names:
    """Names of this test's own."""
    # Client ids of MQTT 3.1 have 23 characters at most.
    return Names(f"t{hash(request.node.nodeid) & 0xFFFFFFFF:x}")


@pytest.fixture
def await_seconds(broker: Broker, names) -> Callable[[int], None]:
    """Let the broker wait: a will with a delay is its clock."""

    def wait(seconds: int) -> None:
        heir = broker.client(names.client("heir"), wire.V5)
        heir.subscribe(names.topic("clock"))
        will = wire.Will(names.topic("clock"), properties={"will_delay": seconds})
        mortal = broker.client(names.client("clock"), wire.V5, will=will, session_expiry=1000)
        mortal.close()
        heir.message()

    return wait


@pytest.fixture
def start_node(tmp_path: Path, request) -> Iterator[Callable[..., Node]]:
    """Start nodes of the test's own; they must end cleanly with it."""
    running: list[Node] = []

    def start(settings: dict | None = None) -> Node:
        directory = tmp_path / f"node{len(running)}"
        directory.mkdir()
        running.append(Node(directory, settings or mqtt_broker.configuration()))
        return running[-1]

    yield start
    if request.node.stash.get(HAS_FAILED, False):
        for each in running:
            print(each.router.told())
    for each in running:
        each.stop()
