"""Fixtures: the two brokers; rig/broker.py says how a test uses them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest

from rig import rabbitmq as judge
from rig.broker import OPERATOR_POLICIES, POLICIES, Broker, Crosstie, policies
from rig.rabbitmq import RabbitMq


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory) -> Iterator[RabbitMq]:
    """The judge, one for the whole session."""
    if not judge.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    running = RabbitMq(tmp_path_factory.mktemp("rabbitmq"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def crosstie_broker(tmp_path_factory) -> Iterator[Crosstie]:
    """The broker under test, one for the whole session; its clean exit is a test of its own."""
    directory = tmp_path_factory.mktemp("crosstie")
    given = {"vhosts": [{"name": "/"}], **policies(POLICIES, OPERATOR_POLICIES)}
    (directory / "definitions.json").write_text(json.dumps(given))
    running = Crosstie(directory, amqp={"definitions": "definitions.json"})
    yield running
    running.stop()


@pytest.fixture(params=["rabbitmq", "crosstie"])
def broker(request) -> Broker:
    """Each of them in turn."""
    return request.getfixturevalue("rabbitmq" if request.param == "rabbitmq" else "crosstie_broker")


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., Crosstie]]:
    """Start brokers of the test's own; they must end cleanly with it."""
    running: list[Crosstie] = []

    def start(**more: dict) -> Crosstie:
        directory = tmp_path / f"broker{len(running)}"
        directory.mkdir()
        started = Crosstie(directory, **more)
        running.append(started)
        return started

    yield start
    for each in running:
        each.stop()


def connect(broker: Broker) -> pika.BlockingConnection:
    """Connect; a client that is blocked for long fails."""
    parameters = pika.URLParameters(broker.url())
    parameters.blocked_connection_timeout = 30
    return pika.BlockingConnection(parameters)
