"""`crosstie amqp move`: a vhost goes to another node, with all that was confirmed."""

from __future__ import annotations

import json
import signal

import pika
import pika.exceptions
import pytest
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import (
    Publisher,
    await_end,
    await_owner,
    check,
    connect,
    crosstie,
    declare,
    node_config,
    role,
    take_all,
    told,
)


def await_standing_by(*nodes: Router) -> None:
    """Wait until the owner has heard of the others."""
    for node in nodes:
        await_true("it stands by", lambda node=node: role(node) == "standby")


def moved(owner: Router, *words: str) -> dict:
    """Move the vhost, once the owner has heard that the other one stands by."""
    said: list[dict] = []

    def is_moved() -> bool:
        done = crosstie(owner, "amqp", "move", "/", *words, "--json")
        if "standing by" in done.stderr or "does not stand by" in done.stderr:
            return False
        assert done.returncode == 0, done.stderr
        said.append(json.loads(done.stdout))
        return True

    await_true("it is moved", is_moved)
    return said[0]


def test_a_vhost_is_moved_under_load(nats, start):
    """Between three nodes; what was confirmed is there, in order, and clients are told 320."""
    servers = nats()
    names = ["node_a", "node_b", "node_c"]
    nodes = [start(servers, name, standby="cold" if name[-1] == "c" else "warm") for name in names]
    owner = await_owner(nodes)
    declare(owner)
    await_standing_by(*(node for node in nodes if node is not owner))
    publishers = [Publisher(nodes, name) for name in (1, 2)]
    idle = connect(owner)
    for turn in range(4):
        for publisher in publishers:
            publisher.await_more(15)
        others = [node for node in nodes if node is not owner]
        # Any standby, one by its node's name, the one that has read nothing.
        wanted = [[], ["--to", others[0].directory.name], ["--to", "node_c/worker1"]][turn % 3]
        if wanted and owner.directory.name in wanted[1]:
            wanted = ["--to", f"{others[1].directory.name}/worker1"]
        said = moved(owner, *wanted)
        assert said["from"] == f"{owner.directory.name}/worker1"
        owner = await_owner(nodes)
        assert said["to"] == f"{owner.directory.name}/worker1"
        if wanted:
            assert wanted[1] in said["to"]
        if turn == 0:
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
                await_end(idle)
            assert closed.value.reply_code == 320
            assert f"it is handed to node {said['to']}" in closed.value.reply_text
        else:
            assert owner.metric("ledger_takeovers_total") >= 1
    for publisher in publishers:
        publisher.await_more(15)
        publisher.stop()
    check(take_all(nodes), publishers)


def test_a_refused_move_leaves_the_vhost(nats, start, tmp_path, request):
    """Each by its reason; who does not take it in time loses it again to the node that had it."""
    servers = nats()
    first = start(servers, "node_a")
    assert await_owner([first]) is first
    declare(first)

    def refused(node: Router, vhost: str, *words: object) -> str:
        return told(node, "amqp", "move", vhost, *words, code=1)

    assert "vhost '/': no node is standing by" in refused(first, "/")
    assert "node node_x is not heard, and no node is standing by" in refused(
        first, "/", "--to", "node_x"
    )
    assert "node node_a/worker1 owns it already" in refused(first, "/", "--to", "node_a")
    assert "no worker of the node has a vhost 'other'" in refused(first, "other")
    second = start(servers, "node_b")
    await_standing_by(second)
    said = "node node_x is not heard; standing by: node_b/worker1"
    await_true("it is heard", lambda: said in refused(first, "/", "--to", "node_x"))
    said = "this node does not own it: node node_a/worker1 does"
    await_true("it knows who does", lambda: said in refused(second, "/"))
    publisher = Publisher([first], 1)
    publisher.await_more(10)
    second.signal(signal.SIGSTOP)
    said = refused(first, "/", "--to", "node_b", "--timeout", 0.5)
    assert "node node_b/worker1 has not taken it within 0.5 s: this node takes it back" in said
    publisher.await_more(10)
    second.signal(signal.SIGCONT)
    publisher.stop()
    await_true("one has it", lambda: {role(first), role(second)} == {"owner", "standby"})
    check(take_all([first, second]), [publisher])
    rows = json.loads(told(second, "amqp", "list", "--json"))
    assert [(row["name"], row["role"], row["owner"]) for row in rows] == [
        ("/", "standby", "node_a/worker1")
    ]
    assert "node_a/worker1" in told(second, "amqp", "list")
    # A backup of the worker's store has nothing of it, and says so.
    saved = crosstie(second, "backup", tmp_path / "copy.store")
    assert (saved.returncode, "vhost '/' is replicated, and not in it" in saved.stderr) == (0, True)
    # One that only this node has.
    settings = node_config(servers)
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    directory = tmp_path / "plain"
    directory.mkdir()
    plain = Router(directory, config=settings)
    request.addfinalizer(plain.kill)
    assert "vhost '/' is not replicated" in refused(plain, "/")
    assert crosstie(plain, "backup", tmp_path / "plain.store").stderr == ""


def test_redelivered_is_exact_after_a_move_and_a_stop(nats, start):
    """The next owner knows which messages were delivered; after a kill any may have been."""
    servers = nats()
    nodes = [start(servers, name) for name in ("node_a", "node_b")]
    owner = await_owner(nodes)
    connection = connect(owner)
    channel = connection.channel()
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    for queue in ("held", "never"):
        channel.queue_declare(queue, durable=True)
        for number in range(3):
            channel.basic_publish("", queue, b"%d" % number, persistent)
    assert channel.basic_get("held")[2] == b"0"
    await_standing_by(*(node for node in nodes if node is not owner))
    moved(owner)
    owner = await_owner(nodes)
    assert marked(owner, "held", 2) == [True, False]
    (other,) = (node for node in nodes if node is not owner)
    await_standing_by(other)
    owner.stop()
    owner = await_owner([other])
    assert marked(owner, "held", 3) == [True, True, False]
    assert marked(owner, "never", 1) == [False]
    owner.kill()
    owner = await_owner([start(servers, owner.directory.name)])
    assert marked(owner, "never", 3) == [True, True, True]


def marked(owner: Router, queue: str, count: int) -> list[bool]:
    """Have so many delivered, and give them back by closing the connection."""
    with connect(owner) as connection:
        channel = connection.channel()
        return [channel.basic_get(queue)[0].redelivered for _ in range(count)]
