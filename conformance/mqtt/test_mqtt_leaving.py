"""MQTT clients of a node that drains or stops: they are closed without a packet, and come back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.mqtt_broker import Node
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5, V311, Will
from rig.router import binary
from rig.waiting import DEADLINE_S

LONG_S = 100_000
CLIENTS = 12


def command(directory: Path, name: str, *arguments: str) -> str:
    """Run a command about the node in a directory; return its answer."""
    ended = subprocess.run(
        [str(binary()), name, "--cbdir", str(directory), *arguments],
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
    )
    assert ended.returncode == 0, ended
    return ended.stdout


@pytest.fixture
def mortals(start_node) -> tuple[Node, list[Peer], Callable[[], list[bytes]]]:
    """Start a node with clients that have wills; with a function that returns published ones."""
    started = start_node()
    place = started.broker()
    heir = place.client("heir", session_expiry=LONG_S)
    heir.subscribe("will/#", "end", qos=1)
    heir.leave()
    clients = []
    for number in range(CLIENTS):
        will = Will(f"will/{number}", b"gone", 1)
        version = (V5, V311)[number % 2]
        kept = {"session_expiry": LONG_S} if version == V5 else {}
        client = place.client(f"c{number}", version, clean=False, will=will, **kept)
        client.subscribe(f"to/{number}", qos=1)
        clients.append(client)

    def published() -> list[bytes]:
        back = place.client("heir", clean=False, session_expiry=LONG_S)
        back.publish("end", b"end", 1)
        heard = []
        while not heard or heard[-1] != b"end":
            heard.append(back.message().payload)
        back.leave()
        return heard[:-1]

    return started, clients, published


def test_a_drain(mortals) -> None:
    """The node counts them, and publishes no will: their sessions go on."""
    started, clients, published = mortals
    answer = command(started.directory, "drain", "--over", "1s", "--grace", "0s")
    assert f"clients that left: {CLIENTS}" in answer
    for client in clients:
        client.expect_end()
    command(started.directory, "undrain")
    place = started.broker()
    for number in range(CLIENTS):
        version = (V5, V311)[number % 2]
        kept = {"session_expiry": LONG_S} if version == V5 else {}
        back = place.peer(version)
        assert back.connect(f"c{number}", clean=False, **kept).present
        back.publish(f"to/{number}", b"back", 1)
        assert back.message().payload == b"back"
        back.leave()
    assert published() == []


def test_a_client_that_is_lost_during_a_drain(mortals) -> None:
    """Its will counts."""
    started, clients, published = mortals
    clients[0].reset()
    command(started.directory, "drain", "--over", "0s", "--grace", "0s")
    command(started.directory, "undrain")
    assert published() == [b"gone"]


def test_a_stop(mortals) -> None:
    """A node that is started again on the same port has them back."""
    started, clients, _ = mortals
    started.stop()
    for client in clients:
        client.expect_end()
    started.start()
    place = started.broker()
    for number in range(CLIENTS):
        place.client(f"c{number}", (V5, V311)[number % 2]).round_trip()
