"""Three machines on a switch, and a server of NATS on each, which know each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.nats import NatsServer, await_routes
from rig.network import Network, obstacle

PORT, ROUTES = 4222, 6222


@pytest.fixture
def network() -> Iterator[Network]:
    """Return three machines on a switch, or skip where there can be none."""
    if why := obstacle():
        pytest.skip(why)
    made = Network(3)
    yield made
    made.close()


@pytest.fixture
def servers(network: Network, tmp_path: Path, request) -> Iterator[list[NatsServer]]:
    """Start a server of NATS on each machine; a test may say more of each, by its name."""
    more = getattr(request, "param", lambda _: "")

    class There(NatsServer):
        """One on another machine."""

        def __init__(self, index: int):
            self.host = network.address(index)
            self.within = network.within(index)
            others = ", ".join(f'"nats://{network.address(n)}:{ROUTES}"' for n in range(3))
            known = f'cluster {{ name: t, listen: "{self.host}:{ROUTES}", routes: [{others}] }}\n'
            name = f"nats{index + 1}"
            super().__init__(tmp_path, name, PORT, known, more(name))

    with contextlib.ExitStack() as started:
        servers = []
        for index in range(3):
            servers.append(There(index))
            started.callback(servers[-1].close)
        for server in servers:
            await_routes(server, servers)
        yield servers
