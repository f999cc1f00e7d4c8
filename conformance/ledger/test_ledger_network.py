"""An owner whose server is cut off from the others: another node has the vhost then."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pika.exceptions
import pytest
from rig.nats import NatsServer, await_routes, jetstream
from rig.network import Network, obstacle
from rig.waiting import await_true

from ledger.stage import (
    Publisher,
    await_end,
    await_owner,
    check,
    connect,
    declare,
    role,
    take_all,
    told,
)

PORT, ROUTES = 4222, 6222
# Servers elect who leads the stream, a node notices, and claims it.
PATIENCE_S = 60.0


@pytest.fixture
def network() -> Iterator[Network]:
    """Return three machines on a switch, or skip where there can be none."""
    if why := obstacle():
        pytest.skip(why)
    made = Network(3)
    yield made
    made.close()


@pytest.fixture
def servers(network: Network, tmp_path: Path) -> Iterator[list[NatsServer]]:
    """Start a server of NATS on each machine."""

    class There(NatsServer):
        """One on another machine."""

        def __init__(self, index: int):
            self.host = network.address(index)
            self.within = ("ip", "netns", "exec", network.namespace(index))
            others = ", ".join(f'"nats://{network.address(n)}:{ROUTES}"' for n in range(3))
            known = f'cluster {{ name: t, listen: "{self.host}:{ROUTES}", routes: [{others}] }}\n'
            name = f"nats{index + 1}"
            super().__init__(tmp_path, name, PORT, known, jetstream(name))

    with contextlib.ExitStack() as started:
        servers = []
        for index in range(3):
            servers.append(There(index))
            started.callback(servers[-1].close)
        for server in servers:
            await_routes(server, servers)
        yield servers


@pytest.mark.timeout(180)
def test_an_owner_that_is_cut_off_from_the_many(network, servers, start):
    """It confirms nothing, and closes its clients at the latest when it hears the others again."""
    lone = start(servers, "node_a", nats={"urls": [servers[0].url]})
    assert await_owner([lone], PATIENCE_S) is lone
    many = start(servers, "node_b", nats={"urls": [server.url for server in servers[1:]]})
    await_true("it stands by", lambda: role(many) == "standby")
    declare(lone)
    nodes = [lone, many]
    publishers = [Publisher(nodes, 1), Publisher([many], 2)]
    cuts = {
        "both ways": [(0, 1), (0, 2), (1, 0), (2, 0)],
        "what its server says": [(0, 1), (0, 2)],
    }
    for cut in cuts.values():
        publishers[0].await_more(10, PATIENCE_S)
        with connect(lone) as idle:
            for one, other in cut:
                network.lose(one, other)
            await_true("the many have it", lambda: role(many) == "owner", PATIENCE_S)
            publishers[1].await_more(10, PATIENCE_S)
            for one, other in cut:
                network.lose_none(one, other)
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
                await_end(idle)
            assert closed.value.reply_code == 320
        await_true("it stands by", lambda: role(lone) == "standby", PATIENCE_S)

        def is_back() -> bool:
            return "Moved" in told_if(many, "amqp", "move", "/", "--to", "node_a")

        await_true("it is moved back", is_back, PATIENCE_S)
    for publisher in publishers:
        publisher.stop()
    check(take_all(nodes), publishers)


def told_if(node, *words: object) -> str:
    """Say something that may be refused yet."""
    try:
        return told(node, *words)
    except AssertionError:
        return ""
