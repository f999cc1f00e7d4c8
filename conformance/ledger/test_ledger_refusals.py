"""A vhost whose log is not what it was is not opened, and says why."""

from __future__ import annotations

import contextlib
import json
import shutil

import pika.exceptions
import pytest
from rig.ports import free_ports
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import (
    ERRORS,
    PERSISTENT,
    QUEUE,
    STREAM,
    Publisher,
    await_alarm,
    await_owner,
    beats,
    check,
    connect,
    declare,
    files,
    node_config,
    role,
    take_all,
)


def filled(node, count: int = 10) -> Publisher:
    """Publish so many messages."""
    declare(node)
    publisher = Publisher([node], 1)
    publisher.await_more(count)
    publisher.stop()
    return publisher


def test_a_log_that_is_missing_is_not_begun_anew(nats, start):
    """Neither by who knows it, nor by who hears of it."""
    servers = nats()
    node = start(servers, "node_a")
    publisher = filled(await_owner([node]))
    node.stop()
    with servers[0].client() as client:
        assert client.ask(f"$JS.API.STREAM.DELETE.{STREAM}", {})["success"]
    node = start(servers, "node_a")
    await_alarm(node, "its log is missing: this node knows one of")
    new = start(servers, "node_b")
    await_alarm(new, "its log is missing: node node_a/worker")
    for each in (node, new):
        assert_on_no_node(each)
    node.stop()
    # The second has its knowledge from the first, which has gone, and looks again and again.
    with servers[0].client() as client:
        client.subscribe("A1.=2F.beat")
        await_true("it has looked again", lambda: len(beats(client, "node_b")) >= 3)
    assert_on_no_node(new)
    new.stop()
    # The owner's own copy is an ordinary store.
    copy = next(name for name in files(node.directory) if name.endswith(".store"))
    settings = node_config(servers)
    amqp = settings["workers"][0]["amqp"]
    del amqp["vhosts"][0]["replicated"]
    amqp["store"] = f"{node.directory}/amqp.store.replicated/{copy}"
    plain = Router(new.directory, config=settings)
    try:
        check(take_all([plain]), [publisher])
    finally:
        plain.stop()


def assert_on_no_node(node) -> None:
    """It admits no client, and shows the reason."""
    with pytest.raises(pika.exceptions.AMQPConnectionError, match="is on no node at present"):
        connect(node)
    assert node.metric("ledger_alarm") == 1


def test_messages_of_strangers_are_ignored(nats, start):
    """A writer to its subjects can end a vhost's service; its messages are ignored."""
    servers = nats()
    nodes = [start(servers, "node_a"), start(servers, "node_b")]
    owner = await_owner(nodes)
    publisher = filled(owner)
    (other,) = (node for node in nodes if node is not owner)
    beat = {"node": "evil", "incarnation": "1", "owner": True, "leaving": False, "address": "x"}
    long = {"epoch": f"{1:016x}", "log": "0", "sequence": "f" * 16}
    far = long | {"epoch": "f" * 16, "log": "1"}
    with servers[0].client() as client:
        # A node that has listened longer than an owner may be silent has heard it.
        client.subscribe("A1.=2F.beat")
        client.publish("A1.=2F.beat", json.dumps(beat | long).encode())
        name = other.directory.name
        await_true("it has looked for it", lambda: len(beats(client, name)) >= 3)
        assert (role(owner), role(other)) == ("owner", "standby")
        assert other.metric("ledger_takeovers_total") == 0
        for payload in (b"", b"{}", b"[" * 5000, json.dumps(beat | far).encode()):
            client.publish("A1.=2F.beat", payload)
        client.flush()
        # It has looked into the log, which no other node owns.
        await_true("it looked", lambda: owner.metric("ledger_resynchronizations_total") > 0)
        assert role(owner) == "owner"
        check(take_all([owner]), [publisher])
        client.publish("A1.=2F.log", b"nonsense")
        client.flush()
    with contextlib.suppress(*ERRORS), connect(owner) as connection:
        connection.channel().basic_publish("", QUEUE, b"1 1", PERSISTENT)
    await_true(
        "nobody opens it",
        lambda: all("its log is broken at entry" in node.health()[1] for node in nodes),
    )


def test_a_log_that_is_shorter_is_not_opened(nats, start):
    """The servers' disks are as before, and the node has seen more."""
    servers = nats()
    server = servers[0]
    node = start(servers, "node_a")
    filled(await_owner([node]))
    node.stop()
    server.kill()
    store = server.file.parent / f"js-{server.name}"
    shutil.copytree(store, server.file.parent / "before")
    server.start()
    node = start(servers, "node_a")
    publisher = Publisher([await_owner([node])], 1)
    publisher.await_more(10)
    publisher.stop()
    node.stop()
    server.kill()
    after = server.file.parent / "after"
    store.rename(after)
    (server.file.parent / "before").rename(store)
    server.start()
    node = start(servers, "node_a")
    await_alarm(node, "its log is shorter than it was")
    # When the servers have it again, it opens.
    server.kill()
    shutil.rmtree(store)
    after.rename(store)
    server.start()
    check(take_all([await_owner([node])]), [])


@pytest.mark.parametrize("sync", ["always", "2m"])
def test_servers_must_write_what_they_acknowledge(nats, start, sync):
    """The monitors are asked before the vhost is opened."""
    (port,) = free_ports(1)
    servers = nats(sync=sync, monitor=port)
    node = start(servers, "node_a", monitor=[f"http://127.0.0.1:{port}"])
    if sync == "always":
        check(take_all([filled_owner(node)]), [])
    else:
        await_alarm(node, 'sync_interval must be "always"')


def filled_owner(node):
    """Return a node that owns its vhost, with an empty queue."""
    declare(await_owner([node]))
    return node


def test_a_stream_must_be_fit(nats, start):
    """A stream of other settings, in memory, is no log."""
    servers = nats()
    wanted = {"name": STREAM, "subjects": ["A1.=2F.log", "A1.=2F.own"], "storage": "memory"}
    with servers[0].client() as client:
        assert client.ask(f"$JS.API.STREAM.CREATE.{STREAM}", wanted)["config"]
    await_alarm(start(servers, "node_a"), "its stream has no files")
