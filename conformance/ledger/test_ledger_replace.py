"""A machine is lost for good, and another one takes its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rig.nats import NatsServer
from rig.ports import free_ports
from rig.router import Router
from rig.waiting import await_true

from ledger.created import ELECTION_S, Machine, command, made, run
from ledger.stage import Publisher, at_owner, await_owner, check, declare, role, take_all


def await_finished(cluster: Path, old: str, *more: object) -> None:
    """Remove the lost server from JetStream; wait for elections that are under way."""

    def is_removed() -> bool:
        done = run("replace", cluster, "--finish", "--timeout", 60, *more)
        if done.returncode == 0:
            assert f"{old} is removed from JetStream" in done.stdout
            return True
        assert "no leader" in done.stderr, done.stderr
        return False

    await_true("it is removed", is_removed, ELECTION_S)


def await_refused(cluster: Path, reason: str) -> None:
    """Wait until the removal is refused for that reason; an election may be under way."""

    def is_refused() -> bool:
        refused = command("replace", cluster, "--finish", code=1)
        if reason in refused:
            return True
        assert "no leader" in refused, refused
        return False

    await_true(f"refused: {reason}", is_refused, ELECTION_S)


@pytest.mark.timeout(600)
def test_a_lost_machine_is_replaced_and_then_another_one_is_lost(tmp_path: Path, request) -> None:
    """Nothing confirmed is lost, although two of the first three machines are."""
    machines = made(tmp_path, request, "abc")
    cluster = tmp_path / "cluster"
    nodes = [machine.node for machine in machines]
    at_owner(nodes, declare, ELECTION_S)
    publisher = Publisher(nodes, 1)
    publisher.await_more(50, ELECTION_S)
    owner = await_owner(nodes, ELECTION_S)
    lost = next(machine for machine in machines if machine.node is owner)
    place = machines.index(lost)
    name, old = "abc"[place], f"nats{place + 1}"
    port, route = free_ports(2)
    words = ["--node", f"{name}=d", "--server", f"{old}=127.0.0.1:{port}", "--route-port", route]
    said = command("replace", cluster, *words)
    assert f"1. {name}: if it runs, crosstie amqp move its vhosts, and stop it" in said
    assert f"crosstie cluster replace {cluster} --finish: removes the lost server" in said
    assert "is not replaced yet: first run" in command(
        "replace", cluster, "--server", f"nats4=127.0.0.1:{port}", code=2
    )
    rest = [machine for machine in machines if machine is not lost]
    for machine in rest:
        machine.server.reload()
    # It is not lost yet.
    await_refused(cluster, f"{old} runs: stop it")
    lost.kill()
    shutil.rmtree(cluster / old)
    publisher.await_more(50, ELECTION_S)
    await_refused(cluster, "start the new server first")
    server = NatsServer.configured(cluster / "nats4", port)
    request.addfinalizer(server.close)
    # A second machine is away: no majority of the three would be left.
    rest[0].kill()
    refused = command("replace", cluster, "--finish", code=1)
    assert "no leader" in refused or "a removal needs" in refused
    rest[0].start()
    publisher.nodes[machines.index(rest[0])] = rest[0].node
    publisher.await_more(50, ELECTION_S)
    await_finished(cluster, old)
    assert "no server with streams was replaced" in command("replace", cluster, "--finish", code=2)
    joined = Machine(Router(cluster / "d", "--cbdir", "."), server)
    request.addfinalizer(lambda: joined.node.kill())
    await_true("it stands by", lambda: role(joined.node) == "standby", ELECTION_S)
    publisher.nodes[place] = joined.node
    publisher.await_more(50, ELECTION_S)
    rest[1].kill()
    publisher.await_more(50, ELECTION_S)
    publisher.stop()
    check(take_all([joined.node, rest[0].node]), [publisher])


def test_a_server_that_runs_gives_its_copies_away_first(tmp_path: Path, request) -> None:
    """A planned replacement; publishing never stops."""
    machines = made(tmp_path, request, "abc")
    cluster = tmp_path / "cluster"
    nodes = [machine.node for machine in machines]
    at_owner(nodes, declare, ELECTION_S)
    publisher = Publisher(nodes, 1)
    publisher.await_more(50, ELECTION_S)
    port, route = free_ports(2)
    command("replace", cluster, "--server", f"nats1=127.0.0.1:{port}", "--route-port", route)
    for machine in machines[1:]:
        machine.server.reload()
    server = NatsServer.configured(cluster / "nats4", port)
    request.addfinalizer(server.close)
    publisher.await_more(50, ELECTION_S)
    await_refused(cluster, "nats1 runs: stop it")
    await_finished(cluster, "nats1", "--while-alive")
    publisher.await_more(50, ELECTION_S)
    machines[0].server.stop()
    publisher.await_more(50, ELECTION_S)
    publisher.stop()
    check(take_all(nodes), [publisher])


def test_a_node_keeps_its_name_and_has_new_keys(tmp_path: Path) -> None:
    """The servers know the new key alone, and the former machine is no longer listed."""
    cluster = tmp_path / "cluster"
    command("init", cluster)
    key = cluster / "node1/realm1.nk"
    before, others = key.read_text(), (cluster / "node2/realm1.nk").read_text()
    servers = (cluster / "nats1/nats.conf").read_text()
    assert "replaced: node1/realm1.nk" in command(
        "replace", cluster, "--node", "node1", "--dry-run"
    )
    assert key.read_text() == before
    said = command("replace", cluster, "--node", "node1")
    assert "1. node1: if it runs, stop it" in said
    assert "5. node1: put fabric.json into the node's configuration" in said
    assert "6." not in said, "no other node is restarted"
    assert "refuse the keys of the lost node1" in said
    assert key.read_text() != before
    assert (cluster / "node2/realm1.nk").read_text() == others
    after = (cluster / "nats1/nats.conf").read_text()
    assert after.count("nkey: U") == servers.count("nkey: U")
    assert after != servers


def test_replacements_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    """Unknown names, names in use, nothing to finish."""
    cluster = tmp_path / "cluster"
    command("init", cluster, "--vhost", "/")
    for words, complaint in [
        (["--node", "x"], "--node x: expected one of node1, node2, node3"),
        (["--node", "x=node4"], "--node x: expected one of node1, node2, node3"),
        (["--node", "node1=node2"], "--node node2: that name is in use"),
        (["--node", "node1=nats2"], "--node nats2: that name is in use"),
        (["--server", "nats9=h:4222"], "--server nats9: expected one of nats1, nats2, nats3"),
        (["--server", "nats1=h"], "--server h: expected HOST:PORT"),
        (["--server", "nats1=127.0.0.1:4223"], "port 4223 of 127.0.0.1 is taken twice"),
        (["--server", "nats1"], "expected OLD=NEW"),
        (["--finish"], "no server with streams was replaced"),
        ([], "--node"),
    ]:
        assert complaint in command("replace", cluster, *words, code=2), words
    assert "expected a directory that" in command("replace", tmp_path, "--finish", code=2)
