"""A service manager's side of a service: its notify socket, and the sockets that it passes on."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from rig.router import binary
from rig.waiting import DEADLINE_S


class NotifySocket:
    """Receives what a service tells its manager, a datagram each."""

    def __init__(self, address: str):
        """Listen at a path, or at a name that begins with @."""
        self.address = address
        self.messages: list[str] = []
        self._news = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def awaits(self, wanted: Callable[[str], object], patience_s: float, since: int = 0) -> int:
        """Return the number after the first `wanted` message from number `since` on."""
        with self._news:

            def found():
                numbered = list(enumerate(self.messages))[since:]
                return next((at + 1 for at, text in numbered if wanted(text)), None)

            after = self._news.wait_for(found, patience_s)
        assert after, f"never sent: {self.messages[since:]}"
        return after

    def close(self) -> None:
        """Stop receiving."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        while message := self._socket.recv(4096):
            with self._news:
                self.messages.append(message.decode())
                self._news.notify_all()


def passing(**sockets: object) -> tuple[str, ...]:
    """Return the command that passes sockets of these names to the program that follows."""
    described = [f"{name}={kind}" for name, kind in sockets.items()]
    program = Path(__file__).with_name("socket_activation.py")
    # -P: modules beside the program have names of Python's own.
    return sys.executable, "-P", str(program), *described, "--"


def start(
    directory: Path,
    configuration: dict,
    within: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Start a node that is to fail at once."""
    file = directory / "config.json"
    file.write_text(json.dumps(configuration))
    return subprocess.run(
        [*within, str(binary()), "start", "--config", str(file)],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        text=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
