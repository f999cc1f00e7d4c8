"""Servers of NATS, alone or as a cluster, and a plain client of one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

from rig.plain import Plain
from rig.ports import free_ports
from rig.waiting import DEADLINE_S, await_true

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PROGRAM = TARGET / "nats-server/nats-server"
# The last release of the minor version before.
BEFORE = TARGET / "nats-server-before/nats-server"

# The version in docs/fabric.md.
REQUIRED = """
max_payload: 8MB
max_pending: 256MB
max_control_line: 32KB
ping_interval: "5s"
no_fast_producer_stall: true
"""


class NatsServer:
    """One server, which may be ended and started again at the same port."""

    host = "127.0.0.1"
    # The program that runs it, if it is not here.
    within: tuple[str, ...] = ()
    # The version that is started next.
    program = PROGRAM

    def __init__(
        self,
        directory: Path,
        name: str,
        port: int,
        cluster: str = "",
        more: str = "",
        program: Path = PROGRAM,
    ):
        self.program = program
        self.name = name
        self.port = port
        self.file = directory / f"{name}.conf"
        self.log = directory / f"{name}.log"
        self.file.write_text(
            f'server_name: {name}\nlisten: "{self.host}:{port}"\n{REQUIRED}{cluster}{more}'
        )
        self.process: subprocess.Popen | None = None
        self.start()

    @classmethod
    def configured(
        cls, directory: Path, port: int, host: str = host, within: tuple[str, ...] = ()
    ) -> NatsServer:
        """Start one with the `nats.conf` that is in its directory, and says that address."""
        server = cls.__new__(cls)
        server.name, server.port, server.process = directory.name, port, None
        server.host, server.within = host, within
        server.file, server.log = directory / "nats.conf", directory / "log"
        server.start()
        return server

    @property
    def url(self) -> str:
        """Return its URL for clients."""
        return f"nats://{self.host}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it takes clients."""
        command = [*self.within, str(self.program), "-c", str(self.file), "-l", str(self.log)]
        # Files that a configuration names are looked for where the server runs.
        where = self.file.parent
        self.process = subprocess.Popen(command, cwd=where, stderr=subprocess.DEVNULL)
        await_true(f"{self.name} takes clients", self._is_open)

    def reload(self) -> None:
        """Have it read its configuration again, and wait until it uses that."""
        assert self.process is not None
        done = "Reloaded server configuration"
        before = self.log.read_text().count(done)
        self.process.send_signal(signal.SIGHUP)
        await_true(f"{self.name} reloads", lambda: self.log.read_text().count(done) > before)

    def stop(self) -> None:
        """End it in good order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE_S)

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """End it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def client(self, user: str = "", authority: Path | None = None) -> NatsClient:
        """Return a client without credentials, or with a name and the password `pw`."""
        return NatsClient((self.host, self.port), user, authority)

    def routes(self) -> int:
        """Return how many servers of its cluster it said it reaches."""
        said = self.log.read_text() if self.log.exists() else ""
        return len(set(re.findall(r"Route connection created|Router connection", said)))

    def _is_open(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            socket.create_connection((self.host, self.port), DEADLINE_S).close()
        except OSError:
            return False
        return True


def cluster(
    directory: Path,
    count: int,
    more: str = "",
    each: Callable[[str], str] = lambda _: "",
    program: Path = PROGRAM,
) -> list[NatsServer]:
    """Start servers that know each other; `each` says more of the one that has a name."""
    # All at once: what is asked for later may be the same ones.
    found = free_ports(2 * count)
    ports, routes = found[:count], found[count:]
    known = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    servers = []
    for index in range(count):
        where = ""
        if count > 1:
            where = (
                f'cluster {{ name: tests, listen: "127.0.0.1:{routes[index]}", '
                f"routes: [{known}] }}\n"
            )
        name = f"nats{index + 1}"
        servers.append(NatsServer(directory, name, ports[index], where, more + each(name), program))
    if count > 1:
        for server in servers:
            await_routes(server, servers)
    return servers


def stream_leader(servers: list[NatsServer], stream: str) -> NatsServer:
    """Return the server that leads a stream."""
    for server in servers:
        if server.process is not None and server.process.poll() is None:
            with server.client() as client:
                info = client.ask(f"$JS.API.STREAM.INFO.{stream}", {})
            name = info["cluster"]["leader"]
            return next(server for server in servers if server.name == name)
    raise AssertionError("no server runs")


# After this time a question was probably dropped, and is asked again.
ELECTED_S = 5.0


def lead(wanted: NatsServer, stream: str, patience_s: float) -> None:
    """Have a server lead a stream."""
    preferred = {"placement": {"preferred": wanted.name}}

    def leads() -> bool:
        with wanted.client() as client:
            try:
                info = client.ask(f"$JS.API.STREAM.INFO.{stream}", {}, ELECTED_S)
                # During an election the answer has no leader.
                if info.get("cluster", {}).get("leader") == wanted.name:
                    return True
                client.ask(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", preferred, ELECTED_S)
            except AssertionError:
                # A question that arrives while no server leads is dropped.
                pass
            return False

    await_true(f"{wanted.name} leads {stream}", leads, patience_s)


def await_routes(server: NatsServer, others: list[NatsServer]) -> None:
    """Wait until what is published at one server comes to clients of the others."""
    for other in others:
        if other is server:
            continue
        with other.client() as there, server.client() as here:
            there.subscribe("rig.routes")
            there.flush()

            def crosses(here: NatsClient = here, there: NatsClient = there) -> bool:
                here.publish("rig.routes", b"x")
                here.flush()
                there.flush()
                return bool(there.messages)

            await_true(f"{server.name} reaches {other.name}", crosses)


def jetstream(name: str, *, sync: str = "always", monitor: int = 0) -> str:
    """Return what a server says that has streams, in a directory named after it."""
    http = f'http: "127.0.0.1:{monitor}"\n' if monitor else ""
    return (
        f'jetstream {{ store_dir: "js-{name}", sync_interval: "{sync}", '
        f"max_mem: 64MB, max_file: 1GB }}\n{http}"
    )


class NatsClient(Plain):
    """A client by hand, for what no node would say."""

    def __init__(self, address: tuple[str, int], user: str = "", authority: Path | None = None):
        super().__init__(socket.create_connection(address, DEADLINE_S))
        self.info = json.loads(self.receive_until(b"\r\n").removeprefix(b"INFO"))
        if authority is not None:
            context = ssl.create_default_context(cafile=str(authority))
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        options = {"verbose": False, "echo": True, "lang": "tests", "version": "1"}
        if user:
            options |= {"user": user, "pass": "pw"}
        self.send(b"CONNECT " + json.dumps(options).encode() + b"\r\n")
        self.messages: list[tuple[str, bytes]] = []
        self._sid = 0
        self.flush()

    def subscribe(self, pattern: str) -> None:
        """Want what matches."""
        self._sid += 1
        self.send(f"SUB {pattern} {self._sid}\r\n".encode())

    def publish(self, subject: str, payload: bytes) -> None:
        """Send a message."""
        self.send(f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\n")

    def ask(self, subject: str, question: dict, patience_s: float = DEADLINE_S) -> dict:
        """Ask one of the server's services, and return its answer."""
        self.subscribe("rig.answer")
        payload = json.dumps(question).encode()
        head = f"PUB {subject} rig.answer {len(payload)}\r\n".encode()
        self.send(head + payload + b"\r\n")
        await_true(f"{subject} is answered", self._has_messages, patience_s)
        return json.loads(self.messages.pop()[1])

    def _has_messages(self) -> bool:
        self.flush()
        return bool(self.messages)

    def flush(self) -> None:
        """Wait until the server has done what it was told; keep the messages that come."""
        self.send(b"PING\r\n")
        while True:
            line = self.receive_until(b"\r\n").decode().split()
            if line[0] == "PONG":
                return
            if line[0] == "PING":
                self.send(b"PONG\r\n")
            elif line[0] == "MSG":
                payload = self.receive(int(line[-1]) + 2)[:-2]
                self.messages.append((line[1], payload))
            else:
                raise AssertionError(line)
