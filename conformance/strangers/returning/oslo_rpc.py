"""A server and a client of oslo.messaging, as its documentation shows them: `oslo_rpc.py URL`."""

from __future__ import annotations

import sys

import oslo_messaging
from oslo_config import cfg


class Endpoint:
    """The procedures of the server."""

    def say(self, _context: dict, token: str) -> str:
        """Answer with what has come."""
        return token


def main() -> None:
    """Call the server for each line until it answers."""
    # Calls need the configuration of the process.
    conf = cfg.CONF
    conf([])
    transport = oslo_messaging.get_rpc_transport(conf, sys.argv[1])
    target = oslo_messaging.Target(topic="returning.oslo", server="server")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    client = oslo_messaging.get_rpc_client(
        transport, oslo_messaging.Target(topic="returning.oslo"), timeout=1
    )

    def ask(token: str) -> None:
        while True:
            try:
                assert client.call({}, "say", token=token) == token
            except (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure):
                continue
            return

    ask("first of all")
    print("there", flush=True)
    for line in sys.stdin:
        ask(line.strip())
        print(f"answer oslo.messaging {line.strip()}", flush=True)


main()
