"""`crosstie log-level`: how much a running node logs, for a time or until it ends."""

from __future__ import annotations

import socket
import subprocess

from rig import config
from rig.amqp_peer import Peer
from rig.router import Router, binary
from rig.waiting import DEADLINE_S

ENTERED = "AMQP connection opened"


def node() -> dict:
    """Return a node that logs each AMQP connection at level `info`."""
    return config.plain({"type": "amqp", "id": "amqp", "endpoint": config.tcp()})


def log_level(router: Router, *arguments: str, code: int = 0) -> str:
    """Run the command; return all that it says."""
    command = [str(binary()), "log-level", "--cbdir", str(router.directory), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
    assert done.returncode == code, done
    return done.stdout + done.stderr


def connect(router: Router) -> int:
    """Open and leave a connection; return its port, which the log has."""
    connected = socket.create_connection(router.address("amqp"))
    port = connected.getsockname()[1]
    Peer(connected).open("guest", "guest").leave()
    return port


def await_entered(router: Router, port: int) -> None:
    """Wait until the log has the connection."""
    router.await_log(lambda line: line.text == ENTERED and str(port) in str(line.fields))


def has_entered(router: Router, port: int) -> bool:
    """Whether the log has the connection by now."""
    return any(line.text == ENTERED and str(port) in str(line.fields) for line in router.log)


def test_a_level_lasts_until_the_next(start_router):
    router = start_router(node())
    await_entered(router, connect(router))
    assert "Log level: warn; before: info" in log_level(router, "warn")
    unseen = connect(router)
    assert "Log level: info; before: warn" in log_level(router, "info")
    await_entered(router, connect(router))
    assert not has_entered(router, unseen)


def test_a_level_for_a_time_ends(start_router):
    router = start_router(node())
    log_level(router, "error", "--for", "100ms")
    router.await_log(lambda line: line.text == "Log level 'info' again")
    await_entered(router, connect(router))
    assert "before: info" in log_level(router, "info")


def test_a_later_change_replaces_one_for_a_time(start_router):
    router = start_router(node())
    log_level(router, "none", "--for", "1h")
    assert "Log level: debug; before: none" in log_level(router, "debug", "--for", "1h")
    assert "Log level: info; before: debug" in log_level(router, "info")
    await_entered(router, connect(router))


def test_an_unknown_level_is_refused(start_router):
    router = start_router(node())
    said = log_level(router, "loud", code=2)
    assert "possible values: none, error, warn, info, debug, trace" in said
