"""A vhost of several nodes: confirmed messages are there for the next owner."""

from __future__ import annotations

import signal

import pika.exceptions
import pytest
from rig.nats import NatsServer
from rig.waiting import await_true

from ledger.stage import (
    ENDED,
    Publisher,
    at_owner,
    await_end,
    await_owner,
    check,
    connect,
    declare,
    files,
    leader,
    refusal,
    role,
    take_all,
)

# An election takes 4 to 9 s, and then the node's own.
ELECTION_S = 120.0


def test_confirmed_messages_survive_their_owner(nats, start):
    """One node owns the vhost; when it is killed another one has what was confirmed, in order."""
    servers = nats()
    nodes = [start(servers, "node_a"), start(servers, "node_b", standby="cold")]
    for _ in range(2):
        owner, _ = at_owner(nodes, declare)
        other = next(node for node in nodes if node is not owner)
        elsewhere = f"is on node {owner.directory.name}/worker1"
        await_true("it knows", lambda said=elsewhere, node=other: said in refusal(node))
        publishers = [Publisher(nodes, name) for name in (1, 2)]
        for publisher in publishers:
            publisher.await_more(30)
        owner.kill()
        for publisher in publishers:
            publisher.await_more(30)
            publisher.stop()
        assert await_owner([other]) is other
        assert any(ENDED in line.text for line in other.log)
        assert other.metric("ledger_takeovers_total") >= 1
        # A killed node stands by when it is back, and then the other one is killed.
        back = start(servers, owner.directory.name)
        await_true("it stands by", lambda back=back: role(back) == "standby")
        check(take_all([other]), publishers)
        nodes = [back, other]
        other.await_log(lambda line: "owns it, epoch" in line.text)
    known = files(other.directory)
    assert "=2F.known" in known
    assert any(name.endswith(".store") for name in known), known


def test_an_owner_that_stops_hands_over(nats, start):
    """A node that ends in good order leaves the vhost to the next one, with all that is in it."""
    servers = nats()
    first = start(servers, "node_a")
    assert await_owner([first]) is first
    second = start(servers, "node_b")
    declare(first)
    publisher = Publisher([first], 1)
    publisher.await_more(20)
    publisher.stop()
    await_true("it stands by", lambda: role(second) == "standby")
    # What it has read along is on its memory's account: some 60 bytes a message, and the message.
    await_true(
        "it has read along", lambda: second.metric("amqp_memory_bytes") > 60 * publisher.confirmed
    )
    assert second.health() == (200, "ok\n")
    first.stop()
    assert await_owner([second]) is second
    check(take_all([second]), [publisher])


def test_an_owner_that_sleeps_is_deposed(nats, start):
    """A node that is stopped and goes on confirms nothing, and sends its clients away."""
    servers = nats()
    nodes = [start(servers, "node_a"), start(servers, "node_b")]
    at_owner(nodes, declare)
    publisher = Publisher(nodes, 1)
    publisher.await_more(20)
    owner, idle = at_owner(nodes, connect)
    with idle:
        other = next(node for node in nodes if node is not owner)
        owner.signal(signal.SIGSTOP)
        await_owner([other])
        second = Publisher([other], 2)
        second.await_more(20)
        owner.signal(signal.SIGCONT)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            await_end(idle)
        assert closed.value.reply_code == 320
    await_owner(nodes)
    for each in (publisher, second):
        each.await_more(20)
        each.stop()
    check(take_all(nodes), [publisher, second])


def test_an_owner_without_servers_sends_its_clients_away(nats, start):
    """A node that has lost NATS is no owner for long; all is there when it has it again."""
    servers = nats()
    nodes = [start(servers, "node_a"), start(servers, "node_b")]
    at_owner(nodes, declare)
    publisher = Publisher(nodes, 1)
    publisher.await_more(20)
    owner, idle = at_owner(nodes, connect)
    with idle:
        servers[0].kill()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            await_end(idle)
        assert closed.value.reply_code == 320
    await_true("it says so", lambda: "no NATS server is reached" in refusal(owner))
    (code, why) = owner.health()
    assert code == 503
    assert "is on no node that is known: no NATS server is reached" in why
    servers[0].start()
    publisher.await_more(20)
    publisher.stop()
    check(take_all(nodes), [publisher])


def test_an_owner_between_two_servers_stays_the_owner(nats, start):
    """Its server is killed: it connects to another one, and no node claims the vhost."""
    servers = nats(3)
    nodes = [start(servers, "node_a"), start(servers, "node_b")]
    owner = await_owner(nodes, ELECTION_S)
    declare(owner)
    publisher = Publisher([owner], 1)
    publisher.await_more(20)
    (said,) = [line.text for line in owner.log if "on NATS server" in line.text]
    name = said.split("'")[-2]
    at = len(owner.log)
    next(server for server in servers if server.name == name).kill()
    owner.await_log(lambda line: "on NATS server" in line.text, at)
    publisher.await_more(20, ELECTION_S)
    publisher.stop()
    assert await_owner(nodes) is owner
    assert [node.metric("ledger_takeovers_total") for node in nodes].count(0) == 1
    check(take_all([owner]), [publisher])


def test_confirmed_messages_survive_a_server(nats, start):
    """Of three servers the one that leads the stream is killed, and then one is stopped."""
    servers = nats(3)
    nodes = [start(servers, "node_a"), start(servers, "node_b")]
    at_owner(nodes, declare, ELECTION_S)
    publishers = [Publisher(nodes, name) for name in (1, 2)]
    for publisher in publishers:
        publisher.await_more(30)
    killed = leader(servers)
    killed.kill()
    for publisher in publishers:
        publisher.await_more(10, ELECTION_S)
    killed.start()
    pause(leader(servers), publishers)
    for publisher in publishers:
        publisher.stop()
    check(take_all(nodes), publishers)


def pause(server: NatsServer, publishers: list[Publisher]) -> None:
    """Stop a server until all goes on without it, and let it go on."""
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        for publisher in publishers:
            publisher.await_more(10, ELECTION_S)
    finally:
        server.process.send_signal(signal.SIGCONT)
