"""Stands in for `rabbitmq-server` and `rabbitmqctl`: what pifpaf starts are nodes of Crosstie.

oslo.messaging's `RabbitMQFailoverTests` have pifpaf make a cluster of three nodes, stop some in
good order and kill others. Each node here is one process of Crosstie, with one vhost that all three
share by way of a server of NATS. pifpaf kills the node's group of processes, so that Crosstie is
killed as RabbitMQ would be.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ledger.stage import node_config
from rig.broker import ALL
from rig.ports import free_ports
from rig.router import Router
from rig.waiting import await_true

# The user of pifpaf's `add_user`, which a Crosstie node has from its configuration.
USER, PASSWORD = "pifpaf", "secret"


class Url:
    """A server of NATS, of which only the place is known here."""

    def __init__(self, url: str):
        self.url = url


class Node:
    """A node, which is stopped and started again while its process here stays."""

    def __init__(self, name: str, port: int):
        self.directory = Path(os.environ["RABBITMQ_MNESIA_BASE"], name)
        self.directory.mkdir(exist_ok=True)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        servers = [Url(os.environ["STAND_IN_NATS"])]
        settings = node_config(servers, elsewhere="splice", address=address)
        settings["controller"] = {"id": name.partition("@")[0].replace("-", "_")}
        worker = settings["workers"][0]
        worker["amqp"]["users"] = [{"name": USER, "password": PASSWORD}]
        worker["amqp"]["vhosts"][0]["permissions"] = [{"user": USER, **ALL}]
        worker["transports"][-1]["endpoint"]["port"] = port
        self.settings = settings
        self.router: Router | None = None

    def start_app(self) -> str:
        """Start it; a node of a cluster has started when it knows what the others have."""
        if self.router is None:
            router = Router(self.directory, config=self.settings)
            await_true("it knows whose the vhost is", lambda: router.health()[0] == 200)
            self.router = router
        return ""

    def stop_app(self) -> str:
        """End it in good order."""
        if self.router is not None:
            self.router.stop()
            self.router = None
        return ""

    def join_cluster(self, _master: str) -> str:
        """Do nothing: all nodes have the same servers of NATS."""
        return ""

    def add_user(self, name: str, password: str) -> str:
        """Refuse users that the configuration does not have."""
        return "" if (name, password) == (USER, PASSWORD) else f"there is no user {name}"

    def set_permissions(self, name: str, *patterns: str) -> str:
        """Say no to anything else than the configuration has."""
        is_all = (name, *patterns) == (USER, ".*", ".*", ".*")
        return "" if is_all else f"{name} may not have {patterns}"


def control(name: str) -> str:
    """Return where a node is told what to do."""
    return str(Path(os.environ["RABBITMQ_MNESIA_BASE"], f"{name}.sock"))


def serve() -> None:
    """Be `rabbitmq-server`."""
    name = os.environ["RABBITMQ_NODENAME"]
    node = Node(name, int(os.environ["RABBITMQ_NODE_PORT"]))
    Path(control(name)).unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(node.stop_app() or 0))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(control(name))
        listener.listen()
        node.start_app()
        print("completed with 0 plugins", flush=True)
        while True:
            asked, _ = listener.accept()
            with asked, asked.makefile("rw") as stream:
                command, *arguments = json.loads(stream.readline())
                # Other commands of pifpaf are an error here.
                stream.write(getattr(node, command)(*arguments))


def tell(arguments: list[str]) -> None:
    """Be `rabbitmqctl`: `-n NODE COMMAND …`."""
    assert arguments[0] == "-n", arguments
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(control(arguments[1]))
        with asking.makefile("rw") as stream:
            stream.write(json.dumps(arguments[2:]) + "\n")
            stream.flush()
            sys.exit(stream.read() or 0)


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve()
    else:
        tell(sys.argv[2:])
