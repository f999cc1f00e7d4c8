"""An owner whose server is cut off from the others: another node has the vhost then."""

from __future__ import annotations

import pika.exceptions
import pytest
from rig.nats import jetstream
from rig.waiting import await_true

from ledger.stage import (
    Publisher,
    await_end,
    await_owner,
    check,
    connect,
    crosstie,
    declare,
    role,
    take_all,
)

# Servers elect who leads the stream, a node notices, and claims it.
PATIENCE_S = 120.0


@pytest.mark.parametrize("servers", [jetstream], indirect=True)
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

        await_move(many, lone)
    for publisher in publishers:
        publisher.stop()
    check(take_all(nodes), publishers)


def await_move(many, lone) -> None:
    """Move the vhost, again and again; a move that is not confirmed in time may have happened."""

    def is_moved() -> bool:
        if role(lone) != "owner":
            done = crosstie(many, "amqp", "move", "/", "--to", "node_a")
            print(done.stdout, done.stderr)
        return role(lone) == "owner"

    await_true("it is moved back", is_moved, PATIENCE_S)
