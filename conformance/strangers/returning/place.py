"""Brokers and routers that end in several ways, and start again at the ports that they had."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rig import config
from rig.amqp_peer import Peer
from rig.node import management
from rig.ports import free_ports
from rig.rabbitmq import RabbitMq
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import CALL, RESULT

Way = Callable[[], None]


def nothing() -> None:
    """Do nothing while a broker is down."""


class Broker(Protocol):
    """A broker of AMQP that can be ended."""

    amqp_url: str

    def stop(self, while_down: Way = nothing) -> None:
        """Stop it in order, and start it again."""

    def kill(self, while_down: Way = nothing) -> None:
        """Kill it as a machine that fails does, and start it again."""


class Place:
    """A node at ports that it has again after its next start."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.wamp, self.amqp = free_ports(2)
        page = {"type": "static", "directory": "pages"}
        site = {
            "type": "web",
            "id": "site",
            "endpoint": {**config.tcp(), "port": self.wamp},
            "paths": {"/": page, "ws": {"type": "websocket"}},
        }
        broker = {"type": "amqp", "id": "amqp", "endpoint": {**config.tcp(), "port": self.amqp}}
        self.config = config.plain(site, broker, config.universal("tcp", config.tcp()))
        self.url = f"ws://127.0.0.1:{self.wamp}/ws"
        self.amqp_url = f"amqp://guest:guest@127.0.0.1:{self.amqp}"
        self.router = Router(directory, config=self.config)

    def start(self) -> None:
        """Start it again."""
        self.router = Router(self.directory, config=self.config)

    def stop(self, while_down: Way = nothing) -> None:
        """Stop it in order while a client is connected that answers nothing, and start it again."""
        with socket.create_connection(("127.0.0.1", self.amqp)) as silent:
            Peer(silent).open("guest", "guest")
            self.router.stop()
            while_down()
            self.start()

    def kill(self, while_down: Way = nothing) -> None:
        """Kill it as a machine that fails does, and start it again."""
        self.router.kill()
        self.router.process.returncode = 0
        while_down()
        self.start()

    def restart_realm(self) -> None:
        """Have the operator stop the realm and start it again."""
        with management(self.directory) as operator:
            realm = self.config["workers"][0]["realms"][0]
            operator.call("crossbar.worker.worker1.stop_router_realm", "realm1")
            operator.call("crossbar.worker.worker1.start_router_realm", "realm1", realm)

    def kill_sessions(self) -> None:
        """Have a session of the realm end all others by the meta API."""
        with RawSocket.tcp(self.router.address("tcp")).shake_hands().join() as killer:
            killer.ask(CALL, {}, "wamp.session.kill_all")
            killer.hear(RESULT)


class Judge:
    """The same of RabbitMQ."""

    def __init__(self, directory: Path):
        self.server = RabbitMq(directory)
        self.amqp_url = f"amqp://guest:guest@127.0.0.1:{self.server.port}"
        self.version = self.server.control("eval", "rabbit_misc:version().").strip(' \n"')

    def stop(self, while_down: Way = nothing) -> None:
        """Stop it in order, and start it again."""
        self.server.control("stop")
        self.server.process.wait()
        while_down()
        self.server.start()

    def kill(self, while_down: Way = nothing) -> None:
        """Kill it as a machine that fails does, and start it again."""
        self.server.kill()
        while_down()
        self.server.start()
