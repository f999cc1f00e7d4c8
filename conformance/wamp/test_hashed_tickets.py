"""Tickets that are configured as hashes, which cost a while to be compared."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import argon2
from rig.session import WELCOME
from rig.waiting import await_true
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, closed, hello

PATIENCE_S = 90.0


def hashed(ticket: str) -> str:
    """Return a hash that takes a moment, in the common form.

    A short one: the lowest niceness gets next to nothing of a busy machine.
    """
    return argon2.PasswordHasher(time_cost=1, memory_cost=4 * 1024, parallelism=1).hash(ticket)


def niceness(process: int, thread: str) -> set[int]:
    """Return how willing the threads of that name are to wait for others."""
    found = set()
    for task in Path(f"/proc/{process}/task").iterdir():
        # It may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name, _, rest = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
            if name == thread:
                found.add(int(rest.split()[16]))
    return found


def test_key_derivation_yields_to_serving_threads(start_router):
    principals = {"joe": {"ticket_hash": hashed("hunter2"), "role": "user"}}
    auth = {"ticket": {"type": "static", "principals": principals}}
    node = start_router(closed(auth, limits={"handshake_timeout_ms": 60_000}))

    def log_in(_: int) -> int:
        with hello(node, authmethods=["ticket"], authid="joe") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "hunter2", {})
            return peer.hear_any()[0]

    with ThreadPoolExecutor(8) as pool:
        logins = [pool.submit(log_in, number) for number in range(8)]
        assert {login.result(PATIENCE_S) for login in logins} == {WELCOME}
    # They are kept for a while, for the next login.
    await_true("it is seen", lambda: niceness(node.process.pid, "keys") == {19}, PATIENCE_S)
