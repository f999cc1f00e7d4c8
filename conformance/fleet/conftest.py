"""Fixtures: both brokers, one for the whole session each, and nodes of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import rabbitmq

from fleet.places import Crosstie, Judge, Place


@pytest.fixture(scope="session")
def judge(tmp_path_factory) -> Iterator[Judge]:
    """RabbitMQ with its MQTT plugin."""
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    running = Judge(tmp_path_factory.mktemp("rabbitmq"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def crosstie(tmp_path_factory) -> Iterator[Crosstie]:
    """The node under test; its clean exit is a test of its own."""
    running = Crosstie(tmp_path_factory.mktemp("crosstie"))
    yield running
    running.stop()


@pytest.fixture(params=["rabbitmq", "crosstie"])
def place(request) -> Place:
    """Each of them in turn."""
    return request.getfixturevalue("judge" if request.param == "rabbitmq" else "crosstie")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Crosstie]]:
    """Start nodes of the test's own; they must end cleanly with it."""
    running: list[Crosstie] = []

    def one(**more: object) -> Crosstie:
        directory = tmp_path / f"node{len(running)}"
        directory.mkdir()
        running.append(Crosstie(directory, **more))
        return running[-1]

    yield one
    for each in running:
        each.stop()
