"""The files of `crosstie cluster init --vhost` are enough to start, and survive a machine."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pika
from rig.router import Router
from rig.waiting import await_true

from ledger.created import ELECTION_S, made, servers_of
from ledger.stage import (
    Publisher,
    at_owner,
    await_owner,
    check,
    declare,
    moved,
    node_config,
    role,
    survives_its_owner,
    take_all,
)


def test_created_files_work(tmp_path: Path, request) -> None:
    """Three servers, two nodes, keys of their own; servers are asked whether they write at once."""
    machines = made(tmp_path, request, "ab")
    survives_its_owner([machine.node for machine in machines], Router.kill)


def test_the_written_user_may_use_the_vhost(tmp_path: Path, request) -> None:
    """Without `--config` the nodes' part has a user with a new password."""
    cluster = tmp_path / "cluster"
    servers = servers_of(cluster, request, "a")
    part = json.loads((cluster / "a/fabric.json").read_text())
    config = node_config(servers)
    config["controller"] = part["controller"]
    config["workers"][0]["amqp"] = {**part["amqp"], "store": "amqp.store"}
    node = Router(cluster / "a", config=config)
    request.addfinalizer(node.kill)
    user = part["amqp"]["users"][0]
    assert user["name"] == "app"
    await_owner([node], ELECTION_S)
    host, port = node.address("amqp")
    credentials = pika.PlainCredentials("app", user["password"])
    parameters = pika.ConnectionParameters(host, port, credentials=credentials)
    with pika.BlockingConnection(parameters) as connection:
        assert connection.channel().queue_declare("jobs", durable=True).method.queue == "jobs"


def test_a_vhost_survives_every_machine_in_turn(tmp_path: Path, request) -> None:
    """The owner's node dies with its server, whose monitor then does not answer."""
    machines = made(tmp_path, request, "abc")
    at_owner([machine.node for machine in machines], declare, ELECTION_S)
    publisher = Publisher([machine.node for machine in machines], 1)
    for _ in range(3):
        publisher.await_more(20, ELECTION_S)
        owner = await_owner([machine.node for machine in machines], ELECTION_S)
        lost = next(machine for machine in machines if machine.node is owner)
        rest = [machine.node for machine in machines if machine is not lost]
        began = time.monotonic()
        lost.kill()
        await_owner(rest, ELECTION_S)
        print(f"another node owns the vhost after {time.monotonic() - began:.1f} s")
        publisher.await_more(20, ELECTION_S)
        lost.start()
        # The publisher has the list of nodes that it began with.
        publisher.nodes[machines.index(lost)] = lost.node
        node = lost.node
        await_true("it stands by", lambda node=node: role(node) == "standby", ELECTION_S)
    publisher.stop()
    check(take_all([machine.node for machine in machines]), [publisher])


def test_a_dead_server_delays_neither_a_move_nor_a_takeover(tmp_path: Path, request) -> None:
    """One server of three ends, and stays away; the vhost moves, and then its owner is killed."""
    machines = made(tmp_path, request, "abc")
    nodes = [machine.node for machine in machines]
    owner, _ = at_owner(nodes, declare, ELECTION_S)
    publisher = Publisher(nodes, 1)
    publisher.await_more(20, ELECTION_S)
    next(machine for machine in machines if machine.node is not owner).server.kill()
    publisher.await_more(20, ELECTION_S)
    owner = await_owner(nodes, ELECTION_S)
    standing_by = [node for node in nodes if node is not owner]
    for node in standing_by:
        await_true("it stands by", lambda node=node: role(node) == "standby", ELECTION_S)
    target = f"node_{standing_by[0].directory.name}"
    moved(owner, "--to", target)
    publisher.await_more(20, ELECTION_S)
    await_owner(nodes, ELECTION_S).kill()
    rest = [node for node in nodes if node.process.poll() is None]
    await_owner(rest, ELECTION_S)
    publisher.await_more(20, ELECTION_S)
    publisher.stop()
    check(take_all(rest), [publisher])
