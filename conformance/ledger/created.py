"""A cluster as `crosstie cluster` writes it, with a node and a server on each machine."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rig.nats import NatsServer
from rig.ports import free_ports
from rig.router import Router, binary
from rig.waiting import await_true

from ledger.stage import (
    await_owner,
    moved,
    node_config,
    role,
)

# An election of NATS takes 4 to 9 s, and two may follow each other.
ELECTION_S = 120.0


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command of `crosstie cluster`."""
    words = [str(binary()), "cluster", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def command(*arguments: object, code: int = 0) -> str:
    """Run a command of `crosstie cluster`; return what it prints, or complains of."""
    done = run(*arguments)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


@dataclass
class Machine:
    """A node and a server of NATS that fail together."""

    node: Router
    server: NatsServer

    def kill(self) -> None:
        """Lose it as in a power cut."""
        self.server.kill()
        self.node.kill()

    def start(self) -> None:
        """Bring it back."""
        self.server.start()
        self.node = Router(self.node.directory, "--cbdir", ".")


def servers_of(cluster: Path, request, names: str, *more: object) -> list[NatsServer]:
    """Have `cluster init` write everything for nodes of these names; start its three servers."""
    ports = free_ports(6)
    arguments = ["init", cluster, "--vhost", "/", *more]
    for name in names:
        arguments += ["--node", name]
    for port, route in zip(ports[:3], ports[3:], strict=True):
        arguments += ["--server", f"127.0.0.1:{port}", "--route-port", route]
    command(*arguments)
    servers = []
    for place, port in enumerate(ports[:3], 1):
        servers.append(NatsServer.configured(cluster / f"nats{place}", port))
        request.addfinalizer(servers[-1].close)
    return servers


def made(directory: Path, request, names: str, *more: object) -> list[Machine]:
    """Start what `cluster init` writes: three servers, and a node beside each, up to three.

    `more` are its arguments for TLS.
    """
    settings = node_config([])
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    (directory / "nodes.json").write_text(json.dumps(settings))
    cluster = directory / "cluster"
    servers = servers_of(cluster, request, names, "--config", directory / "nodes.json", *more)
    machines = []
    for name, server in zip(names, servers, strict=False):
        machine = Machine(Router(cluster / name, "--cbdir", "."), server)
        request.addfinalizer(lambda machine=machine: machine.node.kill())
        machines.append(machine)
    replicated = json.loads((cluster / names[0] / "config.json").read_text())
    replicated = replicated["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    ports = [server.port for server in servers]
    scheme = "https" if more else "http"
    assert replicated["monitor"] == [f"{scheme}://127.0.0.1:{port + 4000}" for port in ports]
    return machines


def restart(machines: list[Machine], machine: Machine) -> None:
    """Restart a node as an operator does: the vhost is moved away before."""
    nodes = [each.node for each in machines]
    if await_owner(nodes, ELECTION_S) is machine.node:
        # The others may still be reading the log.
        for node in (node for node in nodes if node is not machine.node):
            await_true("it stands by", lambda node=node: role(node) == "standby", ELECTION_S)
        moved(machine.node)
    machine.node.stop()
    machine.node = Router(machine.node.directory, "--cbdir", ".")
    await_true("it stands by", lambda: role(machine.node) == "standby", ELECTION_S)
