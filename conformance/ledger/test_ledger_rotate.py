"""Keys of nodes and of the operator are renewed under load."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

import pytest
from rig import certificates
from rig.waiting import DEADLINE_S

from ledger.created import ELECTION_S, command, made
from ledger.stage import (
    PERSISTENT,
    QUEUE,
    Publisher,
    at_owner,
    await_owner,
    check,
    connect,
    declare,
    take_all,
)


class Steady:
    """Publishes over one connection, which must never end."""

    def __init__(self, node):
        self.name = 2
        self.confirmed = 0
        self.failed: Exception | None = None
        self._is_over = threading.Event()
        self._connection = connect(node)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            channel = self._connection.channel()
            channel.confirm_delivery()
            while not self._is_over.wait(0.01):
                body = f"2 {self.confirmed + 1}".encode()
                channel.basic_publish("", QUEUE, body, PERSISTENT, mandatory=True)
                self.confirmed += 1
            self._connection.close()
        except Exception as failed:
            self.failed = failed

    def stop(self) -> None:
        """End it; hold that it was never cut off."""
        self._is_over.set()
        self._thread.join(DEADLINE_S)
        assert self.failed is None, self.failed
        assert not self._thread.is_alive()


def keys(cluster: Path) -> dict[str, str]:
    """Return the seeds, by their files."""
    files = [*cluster.glob("*/*.nk"), cluster / "system.nk"]
    return {str(file.relative_to(cluster)): file.read_text() for file in files}


def test_keys_are_renewed_and_no_client_notices(tmp_path: Path, request) -> None:
    """The former keys are dropped, and every node connects again with its new one."""
    machines = made(tmp_path, request, "abc")
    cluster = tmp_path / "cluster"
    nodes = [machine.node for machine in machines]
    at_owner(nodes, declare, ELECTION_S)
    publisher = Publisher(nodes, 1)
    publisher.await_more(20, ELECTION_S)
    owner = await_owner(nodes, ELECTION_S)
    steady = Steady(owner)
    before = keys(cluster)
    said = command("rotate", cluster)
    assert "without a restart" in said
    after = keys(cluster)
    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())
    assert "the former keys are still accepted" in command("rotate", cluster, code=2)
    for machine in machines:
        machine.server.reload()
        publisher.await_more(20, ELECTION_S)
    command("rotate", cluster, "--finish")
    assert keys(cluster) == after
    assert "until its former key is dropped" not in (cluster / "nats1/nats.conf").read_text()
    lost = {node: len(node.log) for node in nodes}
    for machine in machines:
        machine.server.reload()
        publisher.await_more(20, ELECTION_S)
    for node, since in lost.items():
        # Each was cut off with its former key, and is back with the new one.
        line = node.await_log(lambda line: "is lost" in line.text, since)
        node.await_log(lambda line: "on NATS server" in line.text, node.log.index(line))
    publisher.await_more(20, ELECTION_S)
    assert "nothing is to be dropped" in command("rotate", cluster, "--finish", code=2)
    assert await_owner(nodes, ELECTION_S) is owner
    steady.stop()
    publisher.stop()
    check(take_all(nodes), [publisher, steady])


def test_a_new_authority_takes_the_place_of_the_former_one(tmp_path: Path, request) -> None:
    """Trusted first, then used by all servers, and at last the only one."""
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        certificates.write(directory)

    def pair(directory: Path) -> list[object]:
        return ["--certificate", directory / "server.pem", "--key", directory / "server.key"]

    machines = made(tmp_path, request, "abc", *pair(first), "--authority", first / "ca.pem")
    cluster = tmp_path / "cluster"
    nodes = [machine.node for machine in machines]
    at_owner(nodes, declare, ELECTION_S)
    publisher = Publisher(nodes, 1)
    publisher.await_more(20, ELECTION_S)

    def reload() -> None:
        for machine in machines:
            machine.server.reload()
            publisher.await_more(20, ELECTION_S)

    assert "127.0.0.1" in command("rotate", cluster, *pair(second), code=2)
    said = command("rotate", cluster, "--authority", second / "ca.pem")
    assert "Each node: replace a/ca.pem, b/ca.pem, c/ca.pem" in said
    refused = command("rotate", cluster, "--authority", first / "ca.pem", code=2)
    assert "the former authority is still trusted" in refused
    reload()
    refused = command("rotate", cluster, "--finish", code=2)
    assert "the new authority has not signed this certificate" in refused
    said = command("rotate", cluster, *pair(second))
    assert "nats1 at 127.0.0.1: replace server.pem, server.key; reload" in said
    assert f"crosstie cluster rotate {cluster} --finish: drops the former authority" in said
    reload()
    command("rotate", cluster, "--finish")
    reload()
    for machine in machines:
        # Its node and the other servers connect to it anew.
        machine.server.stop()
        machine.server.start()
        publisher.await_more(20, ELECTION_S)
        with pytest.raises(ssl.SSLCertVerificationError):
            machine.server.client(authority=first / "ca.pem")
    publisher.stop()
    check(take_all(nodes), [publisher])


def test_a_key_that_was_not_written_here_is_not_overwritten(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    command("init", cluster)
    (cluster / "node1/realm1.nk").write_text((cluster / "node2/realm1.nk").read_text())
    assert not (cluster / "system.nk").exists()
    refused = command("rotate", cluster, code=2)
    assert "node1/realm1.nk: expected the seed of U" in refused
    (cluster / "node1/realm1.nk").unlink()
    assert "node1/realm1.nk: No such file" in command("rotate", cluster, code=2)
