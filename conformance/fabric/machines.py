"""Three machines in namespaces, each with a node and a server of NATS, that can be lost whole.

Everything is started from what `crosstie cluster init` writes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from rig import config
from rig.nats import NatsServer
from rig.network import Network
from rig.router import Router, binary
from rig.waiting import DEADLINE_S, await_true

PORT, MONITOR = 4222, 8222
CLONE_NEWNET = 0x40000000
# With `single: strict` and with `single: fast`.
STRICT, FAST = "realm1", "realm2"


class Machine:
    """A namespace with a server, a node, and a thread for the clients that run there."""

    def __init__(self, cluster: Cluster, index: int):
        self.index = index
        self.network = cluster.network
        self.directory = cluster.directory / f"node{index + 1}"
        self.address = self.network.address(index)
        self._within = self.network.within(index)
        self._inside = ThreadPoolExecutor(1, initializer=self._enter)
        self._servers_directory = cluster.directory / f"nats{index + 1}"
        self.server: NatsServer | None = None
        self.node: Router | None = None
        # Of connections that clients made; a node that was started again has another port.
        self.port = 0

    def show(self) -> None:
        """Have its server show on a page what it does."""
        with (self._servers_directory / "nats.conf").open("a") as file:
            file.write(f'http: "{self.address}:{MONITOR}"\n')

    def start_server(self) -> None:
        """Start its server."""
        where, within = self._servers_directory, self._within
        self.server = NatsServer.configured(where, PORT, self.address, within)

    def start_node(self) -> None:
        """Start its node."""
        self.node = Router(self.directory, "--cbdir", ".", within=self._within)
        self.port = self.node.address("tcp")[1]

    def connect(self) -> Future[socket.socket]:
        """Connect a client that runs on this machine to the node."""
        address = (self.address, self.port)
        return self._inside.submit(socket.create_connection, address, DEADLINE_S)

    def cut_off(self) -> None:
        """Lose its link, both ways, which its device does not notice."""
        self.network.silence(self.index)

    def plug(self) -> None:
        """Have the link again."""
        self.network.silence_no_more(self.index)

    def be_mute(self) -> None:
        """Lose what it sends to other machines."""
        for other in self._others():
            self.network.lose(self.index, other)

    def be_deaf(self) -> None:
        """Lose what other machines send to it."""
        for other in self._others():
            self.network.lose(other, self.index)

    def lose_none(self) -> None:
        """Lose nothing any more."""
        for other in self._others():
            for pair in ((self.index, other), (other, self.index)):
                with contextlib.suppress(OSError):
                    self.network.lose_none(*pair)

    def power_off(self) -> None:
        """Lose the link, the node and the server at once: no connection is closed."""
        self.cut_off()
        self.kill_node()
        self.kill_server()

    def kill_node(self) -> None:
        """End the node as a crash would."""
        if self.node is not None and self.node.process.poll() is None:
            self.node.signal(signal.SIGCONT)
            self.node.kill()

    def kill_server(self) -> None:
        """End the server as a crash would."""
        if self.server is not None:
            self.server.close()

    def close(self) -> None:
        """End everything here."""
        self.kill_node()
        self.kill_server()
        self._inside.shutdown()

    def _others(self) -> list[int]:
        return [place for place in range(self.network.count) if place != self.index]

    def _enter(self) -> None:
        """Move this thread into the namespace."""
        libc = ctypes.CDLL(None, use_errno=True)
        path = f"/var/run/netns/{self.network.namespace(self.index)}"
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if libc.setns(descriptor, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)


class Cluster:
    """Three machines whose nodes share both realms."""

    def __init__(self, directory: Path):
        self.directory = directory / "cluster"
        self.network = Network(3)
        self.machines: list[Machine] = []
        try:
            self._begin(directory)
        except BaseException:
            self.close()
            raise

    def _begin(self, directory: Path) -> None:
        realms = [{"name": name, "roles": [config.role("anonymous")]} for name in (STRICT, FAST)]
        node = config.node(realms, [config.universal("tcp", config.tcp())])
        (directory / "nodes.json").write_text(json.dumps(node))
        command = [binary(), "cluster", "init", self.directory, "--config", "nodes.json"]
        for realm in (STRICT, FAST):
            command += ["--realm", realm]
        for index in range(3):
            command += ["--server", f"{self.network.address(index)}:{PORT}"]
        command += ["--single", "strict"]
        done = subprocess.run(command, cwd=directory, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        self.machines = [Machine(self, index) for index in range(3)]
        for machine in self.machines:
            self._settle(machine)
            machine.show()
            machine.start_server()
        for machine in self.machines:
            machine.start_node()
        self.await_whole()

    def _settle(self, machine: Machine) -> None:
        """Have a node listen where others reach it, and grant one of the realms as it is told."""
        file = machine.directory / "config.json"
        node = json.loads(file.read_text())
        (worker,) = node["workers"]
        worker["transports"][0]["endpoint"]["interface"] = machine.address
        for realm in worker["realms"]:
            if realm["name"] == FAST:
                realm["fabric"]["single"] = "fast"
        file.write_text(json.dumps(node))

    def await_whole(self) -> None:
        """Wait until every node exchanges calls with all others."""
        for machine in self.machines:
            for realm in (STRICT, FAST):
                await_true(
                    f"node {machine.index + 1} exchanges calls with all others",
                    lambda machine=machine, realm=realm: (
                        machine.node is not None
                        and machine.node.metric("fabric_neighbours", state="active", realm=realm)
                        == len(self.machines) - 1
                    ),
                )

    def leader(self) -> int | None:
        """Return which machine's server leads the bucket of grants, if that is known."""
        for machine in self.machines:
            url = f"http://{machine.address}:{MONITOR}/jsz?accounts=true&streams=true"
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as page:
                found = re.search(r'"leader": "nats(\d)"', page.read().decode().split("W1_")[-1])
                if found:
                    return int(found[1]) - 1
        return None

    def close(self) -> None:
        """End everything."""
        for machine in self.machines:
            machine.close()
        self.network.close()
