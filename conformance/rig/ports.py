"""Ports for servers that must know them before they start."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

# From here on the system gives ports to clients, also between the choice of one and its use.
OF_CLIENTS = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
# A server of NATS that `crosstie cluster init` writes has a monitor 4,000 ports above its own.
FIRST, LAST = 10_000, max(OF_CLIENTS - 4_000, 12_000)


def free_ports(count: int) -> list[int]:
    """Return different ports on which nothing listens; other tests choose others at random."""
    candidates = random.sample(range(FIRST, LAST), LAST - FIRST)
    found: list[int] = []
    for port in candidates:
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count} ports are free from {FIRST} to {LAST}")
