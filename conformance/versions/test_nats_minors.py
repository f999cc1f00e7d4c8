"""Servers of NATS of the last two minor versions, beside each other in one cluster."""

from __future__ import annotations

import contextlib
import os
import urllib.request
from pathlib import Path

from rig.nats import BEFORE, PROGRAM, NatsServer, cluster, jetstream, lead
from rig.ports import free_ports
from rig.waiting import DEADLINE_S, await_true

from versions.stage import PATIENCE_S, STREAMS, Cluster, loads

# The way back takes as long again.
WAYS = [PROGRAM, BEFORE] if os.environ.get("CROSSTIE_WHOLE") else [PROGRAM]


def test_servers_are_upgraded_one_by_one(tmp_path: Path, request) -> None:
    """Each kind of server leads each stream while the other kind is there."""
    ports = {f"nats{number}": port for number, port in enumerate(free_ports(3), 1)}
    servers = cluster(
        tmp_path, 3, each=lambda name: jetstream(name, monitor=ports[name]), program=BEFORE
    )
    for server in servers:
        request.addfinalizer(server.close)
    whole = Cluster(tmp_path, servers)
    request.addfinalizer(whole.close)
    whole.begin()
    driven = loads(whole.nodes, [(0, 1), (1, 2)])
    seen = [release(servers)]
    for program in WAYS:
        for place, server in enumerate(servers):
            server.stop()
            server.program = program
            server.start()
            await_true(
                f"{server.name} has caught up",
                lambda name=server.name: has_caught_up(ports[name]),
                PATIENCE_S,
            )
            seen.append(release(servers))
            whole.go_on()
            for each in driven:
                each.goes_on()
            for leader in (server, servers[(place + 1) % 3]):
                for stream in STREAMS:
                    lead(leader, stream, PATIENCE_S)
                whole.go_on()
    for each in driven:
        each.end()
    whole.end()
    old, new = seen[0][0], seen[3][0]
    assert old < new
    upgraded = [[old] * 3, [new, old, old], [new, new, old], [new] * 3]
    back = [[old, new, new], [old, old, new], [old] * 3]
    assert seen == upgraded + back * (len(WAYS) - 1)


def has_caught_up(monitor: int) -> bool:
    """Ask a server what docs/tasks/upgrade.md has operators ask."""
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{monitor}/healthz", timeout=DEADLINE_S).close()
        return True
    return False


def release(servers: list[NatsServer]) -> list[list[int]]:
    """Return the major and minor version of each server."""
    found = []
    for server in servers:
        with server.client() as client:
            found.append([int(number) for number in client.info["version"].split(".")[:2]])
    return found
