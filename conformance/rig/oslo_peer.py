"""The real oslo.messaging as a process: a server to call, or a client that is told what to call.

    python oslo_peer.py server URL TOPIC NAME     prints "ready", then a line for each cast
    python oslo_peer.py client URL TOPIC          reads a JSON request a line, prints a JSON reply

It runs in a virtual environment of its own, without the rig.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time

import oslo_messaging
from oslo_config import cfg

EXCHANGE = "my-exchange"


class Endpoint:
    """Methods with results and failures of several kinds."""

    def echo(self, context: dict, **arguments: object) -> dict:
        """Return everything that came."""
        return {"method": "echo", "context": context, "args": arguments}

    def sleep(self, context: dict, timeout: float = 10, reply: object = None) -> object:
        """Answer late."""
        time.sleep(float(timeout))
        return reply

    def fail(self, context: dict, **arguments: object) -> None:
        """Raise what Python itself has."""
        raise RuntimeError("fail method invoked!")

    def sink(self, context: dict, **arguments: object) -> None:
        """Show that it came."""
        print(json.dumps(arguments), flush=True)


def main() -> None:
    """Do what the command line says, until standard input ends."""
    logging.basicConfig(level=logging.WARNING)
    role, url, topic, *name = sys.argv[1:]
    # The library reads some of its options from the process's own configuration.
    cfg.CONF([])
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
    if role == "server":
        serve(transport, topic, *name)
    else:
        call(transport, topic)
    transport.cleanup()


def serve(transport: oslo_messaging.RPCTransport, topic: str, name: str) -> None:
    """Serve until standard input ends."""
    target = oslo_messaging.Target(exchange=EXCHANGE, topic=topic, server=name)
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop()
    server.wait()


def call(transport: oslo_messaging.RPCTransport, topic: str) -> None:
    """Do each line's request."""
    for line in sys.stdin:
        request = json.loads(line)
        target = oslo_messaging.Target(exchange=EXCHANGE, topic=topic, **request.get("target", {}))
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
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
