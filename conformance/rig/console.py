"""A node with a console, where two users log in."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from rig import config
from rig.ports import free_ports
from rig.router import Router, binary
from rig.session import HELLO, ROLES
from rig.waiting import DEADLINE_S
from rig.websocket import WebSocket

CHALLENGE, AUTHENTICATE = 4, 5


class Console:
    """A node with a console, where two users log in."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.users = {
            "ann": {"ticket": "ann's secret", "role": "administrator"},
            "ben": {"ticket": "ben's secret", "role": "monitoring"},
        }
        self.address = ("127.0.0.1", free_ports(1)[0])
        self.start()

    def start(self) -> None:
        """Start the node."""
        self.router = Router(self.directory, config=self.configuration())

    def configuration(self) -> dict:
        """Return a node with one transport of each kind."""
        ticket = {"type": "static", "principals": self.users}
        endpoint = config.tcp(port=self.address[1])
        return config.plain(
            config.universal("tcp", config.tcp()),
            {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
            console={"endpoint": endpoint, "auth": {"ticket": ticket}},
        )

    def reload(self, is_right: bool = True) -> None:
        """Put a changed configuration in force."""
        (self.directory / "config.json").write_text(json.dumps(self.configuration()))
        command = [str(binary()), "reload", "--cbdir", str(self.directory)]
        ended = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=4 * DEADLINE_S
        )
        assert (ended.returncode == 0) == is_right, ended.stderr

    def join(self, user: str) -> tuple[WebSocket, list]:
        """Log in; return the connection with WELCOME or ABORT."""
        peer = WebSocket.tcp(self.address).open()
        peer.say(HELLO, "crossbar", {"roles": ROLES, "authmethods": ["ticket"], "authid": user})
        answer = peer.hear_any()
        if answer[0] == CHALLENGE:
            peer.say(AUTHENTICATE, f"{user}'s secret", {})
            answer = peer.hear_any()
        return peer, answer
