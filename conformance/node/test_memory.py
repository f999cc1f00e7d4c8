"""Memory of a started node, and of idle sessions."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import certificates, config
from rig.plain import Plain
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.waiting import await_true
from rig.websocket import WebSocket

# The first sessions make room for others, in tables and buffers.
FEW, MANY = 300, 2_300


def held(router: Router) -> int:
    """Return a node's bytes of memory apart from its program's file."""
    rollup = Path(f"/proc/{router.process.pid}/smaps_rollup").read_text()
    found = re.search(r"^Anonymous:\s+(\d+) kB$", rollup, re.MULTILINE)
    assert found, rollup
    return int(found[1]) * 1024


@pytest.fixture
def many_descriptors():
    """Let this process open as many sockets as the system allows."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def per_session(router: Router, connect: Callable[[], Plain]) -> float:
    """Return the bytes of an idle session with a topic of its own."""
    sessions: list[Plain] = []

    def grow(count: int) -> int:
        while len(sessions) < count:
            session = connect().join()
            session.subscribe(f"com.example.topic.{len(sessions)}")
            sessions.append(session)
        return held(router)

    few = grow(FEW)
    many = grow(MANY)
    for session in sessions:
        session.close()
    return (many - few) / (MANY - FEW)


@pytest.mark.parametrize(
    ("transport", "bytes_max"),
    [("rawsocket", 1_320), ("websocket", 1_320), ("websocket over tls", 5_200)],
)
def test_an_idle_session_is_small(tmp_path, many_descriptors, transport, bytes_max):
    authority = certificates.write(tmp_path)
    router = Router(
        tmp_path,
        config=config.plain(
            config.universal("unix", config.unix()),
            config.universal("tcp", config.tcp()),
            config.universal("tls", config.tls(tmp_path)),
        ),
    )
    connect = {
        "rawsocket": lambda: RawSocket.unix(tmp_path / "router.sock").shake_hands(),
        "websocket": lambda: WebSocket.tcp(router.address("tcp")).open(),
        "websocket over tls": lambda: WebSocket.tls(router.address("tls"), authority).open(),
    }
    try:
        found = per_session(router, connect[transport])
        assert found <= bytes_max, f"{found:,.0f} bytes"
    finally:
        router.stop()


def test_a_started_node_maps_little_of_its_program(tmp_path):
    router = Router(tmp_path, config=config.plain())
    code = re.compile(r" r-xp .*/crosstie\nSize:\s+(\d+) kB\n(?:\w+:.*\n)*?Rss:\s+(\d+) kB")

    def is_small() -> bool:
        found = code.search(Path(f"/proc/{router.process.pid}/smaps").read_text())
        assert found, "the program has code"
        return int(found[2]) <= 0.3 * int(found[1])

    try:
        await_true("most of the code is unmapped", is_small)
    finally:
        router.stop()
