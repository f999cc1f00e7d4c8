"""rabbitmqadmin: the script of RabbitMQ's plugin, and how any program of that name is run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent / "admin.txt"
PLUGINS = Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/plugins")
# Of RabbitMQ itself, where it is installed.
ORIGINAL = [
    found for plugins in PLUGINS for found in plugins.glob("rabbitmq_management-*/**/rabbitmqadmin")
]
CONFIGURATION = """\
[default]
hostname = 127.0.0.1
port = {port}

[ada]
hostname = 127.0.0.1
port: {port}
username = ada
password = secret
"""


class Admin:
    """A program with a home directory, where its file names the broker."""

    def __init__(self, home: Path, port: int, *command: str | Path) -> None:
        """Write the file."""
        self.home = home
        self.command = command
        (home / ".rabbitmqadmin.conf").write_text(CONFIGURATION.format(port=port))

    @property
    def file(self) -> str:
        """Return a file that commands may write."""
        return str(self.home / "written")

    def run(
        self, program: str, words: tuple[str, ...], given: str = ""
    ) -> subprocess.CompletedProcess:
        """Run it."""
        assert program == "rabbitmqadmin"
        return subprocess.run(
            [*self.command, *words],
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": os.environ["PATH"]},
            text=True,
            input=given,
            capture_output=True,
            timeout=120,
            check=False,
        )
