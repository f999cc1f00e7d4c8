"""A server of NATS of a release before those that nodes use."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

from rig.router import Router
from rig.waiting import await_true

from versions.stage import settings


class EarlierServer:
    """A server that says that it is of an earlier release, and hears what a client says."""

    name, host = "earlier", "127.0.0.1"

    def __init__(self) -> None:
        self.listener = socket.create_server((self.host, 0))
        self.url = f"nats://{self.host}:{self.listener.getsockname()[1]}"
        self.heard: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                info = '{"server_id":"s","server_name":"earlier","version":"2.12.15"}'
                with client:
                    client.sendall(f"INFO {info}\r\n".encode())
                    self.heard.append(client.recv(1))


def test_an_earlier_server_is_refused_by_name(tmp_path: Path, request) -> None:
    """Realms, their grants and vhosts refuse it before they log in."""
    server = EarlierServer()
    request.addfinalizer(server.listener.close)
    node = Router(tmp_path, config=settings("node_a", [server]))
    request.addfinalizer(node.stop)
    text = "expected nats-server 2.14 or later, found version \"2.12.15\" ('earlier')"
    for begin in ("Realm 'realm1': no NATS server", "Realm 'realm1': JetStream grants", "vhost"):
        node.await_log(lambda line, begin=begin: line.text.startswith(begin) and text in line.text)
    await_true("it is told at /health", lambda: text in node.health()[1])
    assert set(server.heard) == {b""}
