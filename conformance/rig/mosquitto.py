"""A mosquitto of the tests' own: Debian's, on a port and in a directory that no other one has."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

from rig.ports import free_ports
from rig.waiting import await_true

# Debian puts it where only root looks.
SERVER = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
# Root keeps its rights: the directories of a test are its own.
CONFIGURATION = """\
user root
listener {port} 127.0.0.1
allow_anonymous true
acl_file {directory}/acl
max_keepalive 60
persistence false
log_dest file {directory}/log
log_type error
log_type warning
"""
# Without a name a line counts for all clients.
ACL = """\
topic readwrite #
topic readwrite $own/#
topic deny test/forbidden/#
"""


def is_installed() -> bool:
    """Whether the judge is there."""
    return SERVER is not None


class Mosquitto:
    """A running `mosquitto`."""

    def __init__(self, directory: Path, more: str = "") -> None:
        """Start it; `more` are lines of its configuration."""
        (port,) = free_ports(1)
        self.address = ("127.0.0.1", port)
        (directory / "acl").write_text(ACL)
        file = directory / "mosquitto.conf"
        file.write_text(CONFIGURATION.format(port=port, directory=directory) + more)
        self.process = subprocess.Popen(
            [str(SERVER), "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        await_true("mosquitto listens", self._is_serving)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()

    def _is_serving(self) -> bool:
        assert self.process.poll() is None, "mosquitto has ended"
        with contextlib.suppress(OSError), socket.create_connection(self.address):
            return True
        return False
