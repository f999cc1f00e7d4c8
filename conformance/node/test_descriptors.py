"""A node with few descriptors, and peers that take all they can get: others are served."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Iterator

import pytest
from rig import config
from rig.plain import ClosedError, Plain
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.waiting import await_true

DESCRIPTORS = 200
# Not for connections; what the node has open itself; and what one address may have of the rest.
RESERVE = DESCRIPTORS // 4
OWN = DESCRIPTORS // 4
OF_ADDRESS = (DESCRIPTORS - RESERVE - OWN) - (DESCRIPTORS - RESERVE - OWN) // 8


GUEST = {
    "type": "guest",
    "executable": "/bin/sh",
    "arguments": ["-c", "echo soft limit $(ulimit -Sn); exec sleep 3600"],
}


@pytest.fixture
def router(tmp_path) -> Iterator[Router]:
    """A node that may have few descriptors, and has not asked for all of them."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS // 2, DESCRIPTORS))

    configuration = config.plain()
    configuration["workers"].append(GUEST)
    started = Router(tmp_path, config=configuration, preexec=limit)
    yield started
    started.stop()


def connect(router: Router, source: str) -> RawSocket:
    return RawSocket.tcp(router.address("tcp"), source=source)


def fill(router: Router, source: str, peers: contextlib.ExitStack) -> int:
    """Join with one session after another until no more are let in; return how many were."""
    for count in range(DESCRIPTORS):
        peer = peers.enter_context(connect(router, source))
        try:
            peer.shake_hands().join()
        except (ClosedError, OSError, AssertionError):
            return count
    raise AssertionError("everybody was let in")


def test_the_limit_is_raised(router):
    assert f"process_max_fds {DESCRIPTORS}" in router.page("/metrics")
    line = router.await_log(lambda line: line.text.startswith("File descriptors"))
    assert f"{DESCRIPTORS} may be open" in line.text
    assert f"last {RESERVE} are not" in line.text
    # Of the node, and not of its children.
    router.await_log(lambda line: f"soft limit {DESCRIPTORS // 2}" in line.text)


def test_one_address_leaves_room_for_others(router):
    with contextlib.ExitStack() as peers:
        assert fill(router, "127.0.0.2", peers) == OF_ADDRESS
        assert router.metric("connections_refused_of_address_total") >= 1
        router.await_fault(0, "session refused")
        with RawSocket.tcp(router.address("tcp")).shake_hands().join() as other:
            other.round_trip()
    # Closed connections have left room.
    await_true("they are gone", lambda: router.metric("connections") <= 1)
    with connect(router, "127.0.0.2").shake_hands().join() as again:
        again.round_trip()


def test_pages_are_served_from_the_reserve(router):
    with contextlib.ExitStack() as peers:
        joined = [fill(router, f"127.0.0.{number}", peers) for number in (2, 3, 4)]
        assert sum(joined) < DESCRIPTORS - RESERVE
        assert router.metric("connections_refused_for_descriptors_total") >= 1
        assert router.page("/health").strip() == "ok"
        # Far more than there are descriptors for: each is told, or sees its end.
        for _ in range(DESCRIPTORS):
            with connect(router, "127.0.0.5") as late:
                assert ends(late)
        assert router.page("/health").strip() == "ok"
        # Operators are let in over the node's own socket.
        asked = [str(binary()), "sessions", "--cbdir", str(router.directory)]
        listed = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert len(listed.stdout.splitlines()) > sum(joined)
    await_true("they are gone", lambda: router.metric("connections") <= 1)
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as newcomer:
        newcomer.round_trip()


def ends(peer: Plain) -> bool:
    """Whether a peer is refused at once."""
    try:
        peer.shake_hands()
    except (ClosedError, OSError, AssertionError):
        return True
    return False


@pytest.mark.parametrize("most", [1, 3])
def test_the_bound_by_address_can_be_said(start_router, most):
    router = start_router(config.plain(limits={"address_connections_max": most}))
    with contextlib.ExitStack() as peers:
        assert fill(router, "127.0.0.2", peers) == most
        assert fill(router, "127.0.0.3", peers) == most
