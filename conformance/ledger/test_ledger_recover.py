"""`crosstie amqp recover` and `release`: logs that are not what they were, stores that fill one."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess

import pytest
from rig.nats import NatsServer
from rig.router import Router, binary
from rig.waiting import await_true

from ledger.stage import (
    ERRORS,
    PERSISTENT,
    QUEUE,
    STREAM,
    Publisher,
    await_alarm,
    await_owner,
    check,
    connect,
    declare,
    files,
    moved,
    node_config,
    role,
    take_all,
    told,
)


def recover(node: Router, *words: object, code: int = 0) -> str:
    """Have a log recovered."""
    return told(node, "amqp", "recover", "/", *words, code=code)


def filled(owner: Router, count: int = 10) -> Publisher:
    """Publish so many messages, which are in the owner's copy too."""
    declare(owner)
    publisher = Publisher([owner], 1)
    publisher.await_more(count)
    publisher.stop()
    return publisher


def delete(server: NatsServer) -> None:
    """Take the stream away."""
    with server.client() as client:
        assert client.ask(f"$JS.API.STREAM.DELETE.{STREAM}", {})["success"]


def await_taken(node: Router) -> None:
    """Wait until a node that knew the former log stands by for the new one."""
    await_true("it stands by", lambda: role(node) == "standby" and not node.metric("ledger_alarm"))


def test_a_log_that_is_missing_is_written_from_the_copy(nats, start):
    """On the node that has it; the other one, which knew what is lost, takes what is there now."""
    servers = nats()
    first = start(servers, "node_a")
    publisher = filled(await_owner([first]))
    second = start(servers, "node_b")
    await_true("it stands by", lambda: role(second) == "standby")
    said = "node node_a/worker1 owns it: its log is whole, and in use"
    assert said in recover(second, "--accept-loss", "--yes", code=1)
    assert "this node owns it" in recover(first, "--empty", "--yes", code=1)
    moved(first)
    # It has a copy once it owns the vhost.
    await_true("the other node owns it", lambda: role(second) == "owner")
    second.stop()
    first.stop()
    delete(servers[0])
    nodes = [start(servers, name) for name in ("node_a", "node_b")]
    for node in nodes:
        await_alarm(node, "its log is missing")
    first, second = nodes
    assert "nothing is left of its log" in recover(first, "--accept-loss", "--yes", code=1)
    assert "there is no such file" in recover(
        first, "--from", "store", "--store", first.directory / "none", "--yes", code=1
    )
    said = recover(second, "--from", "store", code=1)
    assert "the servers have none" in said
    assert "Nothing was done" in said
    held = f"1 queues, 0 exchanges, 0 bindings, {publisher.confirmed} messages"
    assert held in said
    await_alarm(second, "its log is missing")
    said = recover(second, "--from", "store", "--yes")
    assert "Recovered" in said
    assert ".store" in said
    owner = await_owner(nodes)
    more = Publisher([owner], 2)
    more.await_more(5)
    more.stop()
    other = next(node for node in nodes if node is not owner)
    await_taken(other)
    owner.kill()
    assert await_owner([other]) is other
    check(take_all([other]), [publisher, more])
    assert "this node owns it" in recover(other, "--empty", "--yes", code=1)


def test_a_log_that_is_shorter_is_taken_as_it_is(nats, start):
    """Missing entries are reported; a node that was away and knew more accepts the log, too."""
    servers = nats()
    server = servers[0]
    store = server.file.parent / f"js-{server.name}"
    first = start(servers, "node_a")
    publisher = filled(await_owner([first]))
    first.stop()
    server.kill()
    shutil.copytree(store, server.file.parent / "before")
    server.start()
    first, away = start(servers, "node_a"), start(servers, "node_b")
    lost = Publisher([await_owner([first, away])], 2)
    lost.await_more(10)
    lost.stop()
    for node in (away, first):
        node.stop()
    server.kill()
    shutil.rmtree(store)
    (server.file.parent / "before").rename(store)
    server.start()
    first = start(servers, "node_a")
    said = recover(first, "--accept-loss", code=1)
    assert "it is shorter than it was" in said
    assert "are missing" in said
    assert f"{publisher.confirmed} messages, from what is left of its log" in said
    assert "Recovered" in recover(first, "--accept-loss", "--yes")
    assert await_owner([first]) is first
    away = start(servers, "node_b")
    await_taken(away)
    moved(first)
    assert await_owner([first, away]) is away
    check(take_all([away]), [publisher])


def test_a_log_that_is_broken_is_written_anew(nats, start):
    """From what can be read of it, behind what a stranger has said too; twice, if it must be."""
    servers = nats()
    nodes = [start(servers, "node_a"), start(servers, "node_b")]
    publisher = filled(await_owner(nodes))
    for _ in range(2):
        with servers[0].client() as client:
            client.publish("A1.=2F.log", b"nonsense")
            client.flush()
        # An owner finds it when it has something to write.
        with contextlib.suppress(*ERRORS), connect(await_owner(nodes)) as connection:
            connection.channel().basic_publish("", QUEUE, b"1 1", PERSISTENT)
        for node in nodes:
            await_alarm(node, "its log is broken at entry")
        said = recover(nodes[1], "--accept-loss", code=1)
        assert "it is broken at entry" in said
        assert "1 cannot be read" in said
        assert "Recovered" in recover(nodes[1], "--accept-loss", "--yes")
        owner = await_owner(nodes)
        await_taken(next(node for node in nodes if node is not owner))
        with connect(owner) as connection:
            found = connection.channel().queue_declare(QUEUE, passive=True)
            assert found.method.message_count == publisher.confirmed
    check(take_all(nodes), [publisher])


@pytest.mark.parametrize("is_taken", [True, False])
def test_content_from_before_the_replication(nats, start, tmp_path, is_taken):
    """Is in its log when an operator says so, or is not; it is not lost sight of before that."""
    servers = nats()
    directory = tmp_path / "node_a"
    directory.mkdir()
    settings = node_config(servers)
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    plain = Router(directory, config=settings)
    declare(plain)
    with connect(plain) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.exchange_declare("logs", "fanout", durable=True)
        channel.queue_bind(QUEUE, "logs")
        for number in range(1, 6):
            channel.basic_publish("logs", "", f"1 {number}".encode(), PERSISTENT)
    plain.stop()
    first = start(servers, "node_a")
    await_alarm(first, "1 queues and 5 messages of it, from before it was replicated")
    assert "crosstie amqp recover / --from store" in first.health()[1]
    # Another node does not begin without them.
    second = start(servers, "node_b")
    await_alarm(second, "node node_a/worker1 has what it held before it was replicated")
    nodes = [first, second]
    if is_taken:
        assert "5 messages" in recover(first, "--from", "store", "--yes")
        assert sorted(number for _, number in take_all(nodes)) == [1, 2, 3, 4, 5]
    else:
        assert "0 messages, from nothing" in recover(first, "--empty", "--yes")
        owner = await_owner(nodes)
        declare(owner)
        assert take_all([owner]) == []
    names = files(first.directory)
    assert "=2F.known" in names
    assert not any("taken" in name for name in names), names
    # The store's content is not asked about again.
    first.stop()
    second.stop()
    first = start(servers, "node_a")
    assert await_owner([first]) is first


def test_a_vhost_that_is_replicated_no_more(nats, start, tmp_path):
    """Its contents are put into the worker's store; the node does not start without that."""
    servers = nats()
    node = start(servers, "node_a")
    publisher = filled(await_owner([node]))
    directory, store = node.directory, node.directory / "amqp.store"
    release = ["amqp", "release", "/", "--store", str(store)]
    node.stop()
    settings = node_config(servers)
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    (directory / "config.json").write_text(json.dumps(settings))
    command = [str(binary()), "start", "--config", "config.json"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "crosstie amqp release / --store amqp.store" in done.stderr + done.stdout
    assert "cannot be used with" in told(node, *release, code=2)
    done = subprocess.run([str(binary()), *release], capture_output=True, text=True, timeout=60)
    assert f"1 queues with {publisher.confirmed} messages" in done.stdout, done.stderr
    plain = Router(directory, config=settings)
    try:
        check(take_all([plain]), [publisher])
        done = subprocess.run([str(binary()), *release], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, "it runs"
    finally:
        plain.stop()
