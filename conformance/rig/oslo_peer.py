"""The real oslo.messaging as a process, which is told what to send, or prints what it receives.

    python oslo_peer.py server URL TOPIC NAME     prints "ready", then a line for each cast
    python oslo_peer.py client URL TOPIC          reads a JSON request a line, prints a JSON reply
    python oslo_peer.py listener URL TOPIC        prints "ready", then a line for each notification
    python oslo_peer.py notifier URL TOPIC        reads a JSON payload a line, prints a JSON reply

It runs in a virtual environment of its own, without the rig.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tempfile
import threading
import time

import oslo_messaging
from oslo_config import cfg

# Threads of a server print at the same time, and each line is one.
LINES = threading.Lock()


def say(line: str) -> None:
    """Print a line."""
    with LINES:
        print(line, flush=True)


class Endpoint:
    """Methods with results and failures of several kinds."""

    def __init__(self, name: str):
        self.name = name

    def echo(self, context: dict, **arguments: object) -> dict:
        """Return everything that came."""
        return {"method": "echo", "context": context, "args": arguments}

    def whoami(self, context: dict) -> str:
        """Return the server's name."""
        return self.name

    def sleep(self, context: dict, timeout: float = 10, reply: object = None) -> object:
        """Answer late."""
        time.sleep(float(timeout))
        return reply

    def fail(self, context: dict, **arguments: object) -> None:
        """Raise what Python itself has."""
        raise RuntimeError("fail method invoked!")

    def sink(self, context: dict, **arguments: object) -> None:
        """Show that it came."""
        say(json.dumps(arguments))


class Notified:
    """Shows notifications."""

    def info(self, context: dict, publisher: str, event: str, payload: dict, more: dict) -> None:
        """Show that it came."""
        say(json.dumps(payload))


def main() -> None:
    """Do what the command line says, until standard input ends."""
    logging.basicConfig(level=logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", choices=["server", "client", "listener", "notifier"])
    parser.add_argument("url")
    parser.add_argument("topic")
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--exchange", default="my-exchange", help="exchange of calls and casts")
    parser.add_argument("--rabbit", action="append", default=[], metavar="OPTION=VALUE")
    parser.add_argument(
        "--in-order", action="store_true", help="try the URL's hosts in their order"
    )
    asked = parser.parse_args()
    if asked.in_order:
        random.shuffle = lambda hosts: None
    configure(asked.rabbit)
    if asked.role in ("server", "client"):
        transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=asked.url)
    else:
        transport = oslo_messaging.get_notification_transport(cfg.CONF, url=asked.url)
    if asked.role == "client":
        call(transport, asked.exchange, asked.topic)
    elif asked.role == "notifier":
        notify(transport, asked.topic)
    else:
        serve(made(transport, asked))
    transport.cleanup()


def configure(options: list[str]) -> None:
    """Give options of the rabbit driver: the library reads some from the process's own."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write("\n".join(["[oslo_messaging_rabbit]", *options]) + "\n")
        file.flush()
        cfg.CONF(["--config-file", file.name])


def made(transport: oslo_messaging.Transport, asked: argparse.Namespace):
    """Return a server of calls, or one of notifications."""
    if asked.role == "server":
        target = oslo_messaging.Target(
            exchange=asked.exchange, topic=asked.topic, server=asked.name
        )
        endpoints = [Endpoint(asked.name)]
        return oslo_messaging.get_rpc_server(transport, target, endpoints, executor="threading")
    # Notifications are sent to the library's own exchange.
    targets = [oslo_messaging.Target(topic=asked.topic)]
    return oslo_messaging.get_notification_listener(
        transport, targets, [Notified()], executor="threading"
    )


def serve(server) -> None:
    """Serve until standard input ends."""
    server.start()
    say("ready")
    sys.stdin.read()
    server.stop()
    server.wait()


def call(transport: oslo_messaging.RPCTransport, exchange: str, topic: str) -> None:
    """Do each line's request."""
    for line in sys.stdin:
        request = json.loads(line)
        target = oslo_messaging.Target(exchange=exchange, topic=topic, **request.get("target", {}))
        client = oslo_messaging.get_rpc_client(
            transport, target, timeout=15, **request.get("options", {})
        )
        verb = client.cast if request.get("cast") else client.call
        try:
            result = verb({"who": "peer"}, request["method"], **request.get("args", {}))
            said = {"result": result}
        except Exception as error:
            # A builtin exception is rebuilt as what it was, any other one named in a RemoteError.
            said = {
                "failure": getattr(error, "exc_type", None) or type(error).__mro__[0].__name__,
                "text": str(error),
            }
        said["threads"] = threading.active_count()
        say(json.dumps(said))


def notify(transport: oslo_messaging.NotificationTransport, topic: str) -> None:
    """Send each line's payload."""
    notifier = oslo_messaging.Notifier(transport, "peer", driver="messaging", topics=[topic])
    for line in sys.stdin:
        notifier.info({}, "event", json.loads(line))
        say(json.dumps({"result": None}))


if __name__ == "__main__":
    main()
