"""A fourth node and a fourth server of NATS join a cluster that serves."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rig.nats import NatsServer
from rig.ports import free_ports
from rig.router import Router
from rig.waiting import await_true

from ledger.created import ELECTION_S, Machine, command, made, restart
from ledger.stage import (
    Publisher,
    at_owner,
    await_owner,
    check,
    declare,
    moved,
    role,
    take_all,
)


def test_a_fourth_machine_joins_under_publishing(tmp_path: Path, request) -> None:
    """Its node takes over the vhost; then two machines of four are lost, and come back."""
    machines = made(tmp_path, request, "abc")
    cluster = tmp_path / "cluster"
    nodes = [machine.node for machine in machines]
    at_owner(nodes, declare, ELECTION_S)
    publisher = Publisher(nodes, 1)
    publisher.await_more(20, ELECTION_S)
    # An operator's own line, which the change does not touch.
    conf = cluster / "nats2/nats.conf"
    conf.write_text(conf.read_text().replace("\n\n", "\nmax_connections: 5000\n\n", 1))
    port, route = free_ports(2)
    words = ["add", cluster, "--node", "d", "--server", f"127.0.0.1:{port}", "--route-port", route]
    before = conf.read_text()
    shown = command(*words, "--dry-run")
    assert f'+    "nats-route://routes:…@127.0.0.1:{route}"' in shown
    assert "new: d/vhost-=2F.nk" in shown
    assert conf.read_text() == before
    assert not (cluster / "d").exists()
    said = command(*words)
    assert re.search(r"5\. d: copy d to its machine; start: crosstie start --cbdir d\n", said), said
    assert "6. One node after the other (a, b, c): if the node owns a vhost" in said
    assert "max_connections: 5000" in conf.read_text()
    for machine in machines:
        machine.server.reload()
        publisher.await_more(20)
    server = NatsServer.configured(cluster / "nats4", port)
    request.addfinalizer(server.close)
    machines.append(Machine(Router(cluster / "d", "--cbdir", "."), server))
    joined = machines[-1]
    request.addfinalizer(lambda: joined.node.kill())
    await_true("it stands by", lambda: role(joined.node) == "standby", ELECTION_S)
    publisher.nodes.append(joined.node)
    for place, machine in enumerate(machines[:3]):
        restart(machines, machine)
        publisher.nodes[place] = machine.node
        publisher.await_more(20, ELECTION_S)
    nodes = [machine.node for machine in machines]
    owner = await_owner(nodes, ELECTION_S)
    if owner is not joined.node:
        moved(owner, "--to", "node_d")
    publisher.await_more(20, ELECTION_S)
    config = json.loads((cluster / "a/config.json").read_text())
    replicated = config["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    assert replicated["monitor"][3] == f"http://127.0.0.1:{port + 4000}"
    assert replicated["nats"]["urls"][3] == f"nats://127.0.0.1:{port}"
    # Two of four servers would have no majority: one machine at a time.
    for lost in (joined, machines[0]):
        lost.kill()
        publisher.await_more(20, ELECTION_S)
        lost.start()
        publisher.nodes[machines.index(lost)] = lost.node
        node = lost.node
        await_true("it stands by", lambda node=node: role(node) == "standby", ELECTION_S)
    publisher.stop()
    check(take_all([machine.node for machine in machines]), [publisher])
