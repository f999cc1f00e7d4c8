"""Servers with streams, and nodes of a vhost that they keep."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.nats import NatsServer, cluster, jetstream
from rig.router import Router

from ledger.stage import node_config

# What it says of each node that refuses it would hide everything else.
logging.getLogger("pika").setLevel(logging.CRITICAL)


@pytest.fixture
def nats(tmp_path: Path, request) -> Callable[..., list[NatsServer]]:
    """Start servers that have streams."""

    def started(count: int = 1, more: str = "", **how: object) -> list[NatsServer]:
        directory = tmp_path / "nats"
        directory.mkdir()
        servers = cluster(directory, count, more, each=lambda name: jetstream(name, **how))
        for server in servers:
            request.addfinalizer(server.close)
        return servers

    return started


@pytest.fixture
def start(tmp_path: Path, request) -> Callable[..., Router]:
    """Start a node, in a directory of its own or in one that it had before."""

    def start(servers: list[NatsServer], name: str, **replicated: object) -> Router:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        settings = node_config(servers, **replicated)
        settings["controller"] = {"id": name}
        router = Router(directory, config=settings)

        def end() -> None:
            if router.process.poll() is None:
                # A failed test may have left it stopped.
                router.signal(signal.SIGCONT)
                router.stop()

        request.addfinalizer(end)
        return router

    return start
