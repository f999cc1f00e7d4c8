"""Three machines with a node and a server of NATS each, as `crosstie cluster init` writes them.

On a network each is a namespace, whose link is lost with it. Without a network all are on this
machine, where the end of a process ends its connections.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rig.machines import PORT, ROUTES
from rig.nats import NatsServer
from rig.network import Network
from rig.ports import free_ports
from rig.router import Line, Router, binary
from rig.waiting import DEADLINE_S, await_true

from ledger.monitors import Monitor
from ledger.stage import STREAM, node_config, role

# From the port of a server for nodes to that of its monitoring.
MONITORING_ABOVE = 4_000
HTTP_PORT, AMQP_PORT = 8080, 5672


@dataclass(frozen=True)
class Replicas:
    """The stream of the vhost, as the server sees it that leads it."""

    leader: str
    current: frozenset[str]


class Machine:
    """A node and a server of NATS that fail together."""

    def __init__(self, place: int, cluster: Path, port: int, network: Network | None):
        self.place = place
        self.network = network
        self.host = network.address(place) if network else "127.0.0.1"
        self.within = network.within(place) if network else ()
        self.directory = cluster / "abc"[place]
        directory = cluster / f"nats{place + 1}"
        self.server = NatsServer.configured(directory, port, self.host, self.within)
        self.monitoring = f"http://{self.host}:{port + MONITORING_ABOVE}"
        self.monitor = Monitor(network.here if network else "127.0.0.1", self.monitoring)
        self.node: Router
        # The log of each node that it had.
        self.logs: list[list[Line]] = []

    def configure(self, monitors: list[Monitor]) -> None:
        """Have the node listen at its own address, and ask these monitors."""
        file = self.directory / "config.json"
        settings = json.loads(file.read_text())
        worker = settings["workers"][0]
        for transport in worker["transports"]:
            transport["endpoint"]["interface"] = self.host
            if self.network:
                is_amqp = transport["type"] == "amqp"
                transport["endpoint"]["port"] = AMQP_PORT if is_amqp else HTTP_PORT
        replicated = worker["amqp"]["vhosts"][0]["replicated"]
        replicated["monitor"] = [monitor.url for monitor in monitors]
        file.write_text(json.dumps(settings, indent=1))

    def start_node(self) -> None:
        """Start the node in the directory that it had before."""
        self.node = Router(self.directory, "--cbdir", ".", within=self.within)
        # A new list for each, which is written to until the node ends.
        self.logs.append(self.node.log)

    def write_logs(self) -> None:
        """Write what its nodes said beside their directory."""
        lines = [f"{line.time} {line.level} {line.text}\n" for log in self.logs for line in log]
        self.directory.with_suffix(".log").write_text("".join(lines))

    def lose(self) -> None:
        """Lose it as in a power cut: on a network no connection of it ends."""
        self.cut()
        self.server.kill()
        self.node.kill()

    def restore(self) -> None:
        """Have it back, with what it had stored."""
        self.mend()
        self.server.start()
        self.start_node()

    def cut(self) -> None:
        """Lose its link, if it has one."""
        if self.network:
            self.network.silence(self.place)

    def mend(self) -> None:
        """Have its link back."""
        if self.network:
            self.network.silence_no_more(self.place)

    def cut_way(self, way: str) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return how to lose what it sends (`out`) or should receive (`in`), and how to mend it."""
        network, place = self.network, self.place
        assert network is not None
        others = [other for other in range(network.count) if other != place]
        pairs = [(place, other) if way == "out" else (other, place) for other in others]
        if way == "out":
            pairs.append((place, None))

        def cut() -> None:
            for one, other in pairs:
                network.lose(one, other)

        def mend() -> None:
            for one, other in pairs:
                network.lose_none(one, other)

        return cut, mend

    def empty_server(self) -> None:
        """Delete what its server has stored."""
        shutil.rmtree(self.server.file.parent / "jetstream")

    def is_well(self) -> bool:
        """Whether its server says that it has caught up with the others, and its node a role."""
        try:
            urllib.request.urlopen(f"{self.monitoring}/healthz", timeout=2).close()
        except OSError:
            return False
        return role(self.node) in ("owner", "standby")

    def replicas(self) -> Replicas | None:
        """Return the vhost's stream, if this machine's server leads it."""
        url = f"{self.monitoring}/jsz?accounts=1&streams=1"
        try:
            with urllib.request.urlopen(url, timeout=2) as page:
                told = json.load(page)
        except OSError:
            return None
        for account in told.get("account_details", []):
            for stream in account.get("stream_detail", []):
                group = stream.get("cluster", {})
                if stream["name"] == STREAM and group.get("leader") == self.server.name:
                    others = group.get("replicas", [])
                    current = {each["name"] for each in others if each.get("current")}
                    return Replicas(group["leader"], frozenset(current | {group["leader"]}))
        return None

    def close(self) -> None:
        """End all of it, asleep or not."""
        for process in (self.server.process, self.node.process if self.node else None):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        self.monitor.close()
        self.write_logs()


def started(
    directory: Path, network: Network | None, closing: contextlib.ExitStack
) -> list[Machine]:
    """Have `cluster init` write everything for three machines, and start them."""
    settings = node_config([])
    settings["workers"][0]["amqp"]["vhosts"][0].pop("replicated")
    (directory / "nodes.json").write_text(json.dumps(settings))
    ports, routes = [PORT] * 3, [ROUTES] * 3
    if network is None:
        # The monitoring's are computed from the servers'.
        found = free_ports(6)
        ports, routes = found[:3], found[3:]
    hosts = [network.address(place) if network else "127.0.0.1" for place in range(3)]
    cluster = directory / "cluster"
    arguments = ["init", cluster, "--vhost", "/", "--config", directory / "nodes.json"]
    for name, host, port, route in zip("abc", hosts, ports, routes, strict=True):
        arguments += ["--node", name, "--server", f"{host}:{port}", "--route-port", route]
    command = [str(binary()), "cluster", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    machines = []
    for place, port in enumerate(ports):
        machines.append(Machine(place, cluster, port, network))
        closing.callback(machines[-1].close)
    for machine in machines:
        machine.configure([each.monitor for each in machines])
        machine.start_node()
    return machines


def await_settled(machines: list[Machine], patience_s: float = DEADLINE_S) -> Replicas:
    """Wait until one of these machines' servers leads, and all of them have the whole stream."""
    found: list[Replicas] = []
    names = {machine.server.name for machine in machines}

    def is_settled() -> bool:
        leading = [told for machine in machines if (told := machine.replicas())]
        found[:] = [told for told in leading if names <= told.current]
        # A server that was cut off says that it leads, until it hears of its successor.
        return len(leading) == len(found) == 1 and all(machine.is_well() for machine in machines)

    await_true("all servers have all of the stream", is_settled, patience_s)
    return found[0]
