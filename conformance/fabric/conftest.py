"""Nodes of one realm on servers of NATS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rig.failing import HAS_FAILED
from rig.nats import NatsServer, cluster
from rig.router import Router

from fabric.load import Load
from fabric.stage import Session, await_neighbours, node_config


@pytest.fixture
def nats(tmp_path: Path, request) -> Callable[..., list[NatsServer]]:
    """Start servers, which know each other."""

    def started(count: int = 1, more: str = "", **each: Callable[[str], str]) -> list[NatsServer]:
        directory = tmp_path / "nats"
        directory.mkdir()
        servers = cluster(directory, count, more, **each)
        for server in servers:
            request.addfinalizer(server.close)
        return servers

    return started


@pytest.fixture
def start(tmp_path: Path, request) -> Callable[..., Router]:
    """Start a node; it is ended in good order unless it has been killed."""
    started: list[Router] = []

    def start(node: dict) -> Router:
        directory = tmp_path / f"node{len(started)}"
        directory.mkdir()
        router = Router(directory, config=node)
        started.append(router)

        def end() -> None:
            if request.node.stash.get(HAS_FAILED, False):
                print(router.told())
            if router.process.returncode != -9:
                router.stop()

        request.addfinalizer(end)
        return router

    return start


@pytest.fixture
def nodes(nats, start) -> Callable[..., list[Router]]:
    """Start nodes that see each other, each on a server of its own where there are enough."""

    def started(count: int, servers: list[NatsServer], **fabric: object) -> list[Router]:
        found = []
        for index in range(count):
            url = servers[index % len(servers)].url
            found.append(start(node_config([url], **fabric)))
        await_neighbours(found)
        return found

    return started


@pytest.fixture
def session(request) -> Callable[..., Session]:
    """Open sessions, and close them at the end."""

    def opened(*args: object) -> Session:
        joined = Session(*args)
        request.addfinalizer(joined.peer.close)
        return joined

    return opened


@pytest.fixture
def load(session) -> Callable[..., Load]:
    """Begin a load between two nodes."""

    def begun(here, there) -> Load:
        return Load(session(here), session(there))

    return begun
