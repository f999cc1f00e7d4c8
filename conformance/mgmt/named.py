"""The program under RabbitMQ's names, by links, and a node for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.router import Router, binary

from mgmt import commands


class Named:
    """The links, and the node that they lead to."""

    def __init__(self, directory: Path, router: Router) -> None:
        """Make the links."""
        self.directory = directory
        self.router = router
        for name in commands.PROGRAMS.values():
            (directory / name).symlink_to(binary().resolve())

    @classmethod
    def started(cls, directories: pytest.TempPathFactory) -> Named:
        """Start a node with the management API, and make links for it."""
        node = directories.mktemp("node")
        transports = [
            {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
            {"type": "amqp.management", "id": "management", "endpoint": config.tcp()},
            config.universal("tcp", config.tcp()),
        ]
        configuration = config.plain(*transports)
        configuration["workers"][0]["amqp"] = {"identity": {"version": "3.10.8"}}
        router = Router(node, "--cbdir", str(node), config=configuration)
        return cls(directories.mktemp("programs"), router)

    def run(
        self, program: str, words: tuple[str, ...], given: str = ""
    ) -> subprocess.CompletedProcess:
        """Run it in a directory of its own, with the node's by the variable."""
        return subprocess.run(
            [self.directory / program, *words],
            cwd=self.directory,
            env={"CROSSTIE_DIR": str(self.router.directory), "PATH": os.environ["PATH"]},
            text=True,
            input=given,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def stop(self) -> None:
        """End the node."""
        self.router.stop()
