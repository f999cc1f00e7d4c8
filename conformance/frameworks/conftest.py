"""Fixtures: names of the test's own on either broker, and a record that workers write."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import kombu
import pytest
from record import Record
from rig.broker import Broker


@pytest.fixture
def connection(broker: Broker) -> Iterator[kombu.Connection]:
    """A connection of kombu's."""
    with kombu.Connection(broker.url()) as opened:
        yield opened


@pytest.fixture
def new_name(connection: kombu.Connection) -> Iterator[Callable[[str], str]]:
    """Make names of queues; all of them are deleted after the test."""
    made: list[str] = []

    def name(what: str) -> str:
        made.append(f"{what}-{uuid.uuid4()}")
        return made[-1]

    yield name
    with connection.channel() as channel:
        for each in made:
            channel.queue_delete(each)


@pytest.fixture
def queue(new_name) -> str:
    """The name of the test's queue."""
    return new_name("tasks")


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Return the workers' records, in order."""
    return Record(tmp_path / "record")
