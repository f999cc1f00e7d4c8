"""Fixtures of several of these suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.node import Node


@pytest.fixture
def start_node() -> Iterator[Callable[..., Node]]:
    """Start nodes, which end with the test."""
    nodes: list[Node] = []

    def start(configuration: dict, directory: Path, **environment: str) -> Node:
        node = Node(directory, configuration, environment=environment)
        nodes.append(node)
        node.says("Ready")
        return node

    yield start
    for node in nodes:
        node.close()
