"""Commands look for a node that runs as a service, in a container, or was moved."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config

from strangers.service import crosstie, node, rawsocket


def unset(name: str) -> dict[str, str]:
    """Return an environment in which that variable is as good as missing."""
    return {name: ""}


def amqp() -> dict:
    """Return a node with a broker, whose commands need the management realm."""
    configuration = node(rawsocket("node.sock"))
    worker = configuration["workers"][0]
    worker["transports"].append({"type": "amqp", "endpoint": config.unix("amqp.sock")})
    worker["amqp"] = {"store": "node.store"}
    return configuration


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """Return a directory that is not too deep for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


COMMANDS = [("status",), ("queues",), ("sessions",), ("backup", "copy")]


def test_commands_find_a_service_with_a_temporary_directory_of_its_own(start_node, tmp_path: Path):
    own, other = tmp_path / "service", tmp_path / "shell"
    own.mkdir()
    other.mkdir()
    running = start_node(amqp(), tmp_path, TMPDIR=str(own), **unset("XDG_RUNTIME_DIR"))
    # As with systemd's PrivateTmp: other processes do not see what is in there.
    assert not list(own.iterdir()), "the sockets are not in the temporary directory"
    for command in COMMANDS:
        done = crosstie(
            *command, "--cbdir", tmp_path, cwd=tmp_path, TMPDIR=str(other), XDG_RUNTIME_DIR="/run/x"
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert "\namqp: " in crosstie("status", "--cbdir", tmp_path, cwd=tmp_path).stdout
    (folder,) = tmp_path.glob(".run-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    running.stop()
    assert not list(tmp_path.glob(".run-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="another name for a directory takes root")
def test_commands_find_a_node_whose_directory_has_another_name_here(start_node, tmp_path: Path):
    """A container's directory on its host, or one that was renamed while the node runs."""
    there, here = tmp_path / "a", tmp_path / "b"
    there.mkdir()
    running = start_node(amqp(), there, **unset("XDG_RUNTIME_DIR"))
    there.rename(here)
    try:
        for command in COMMANDS:
            done = crosstie(*command, "--cbdir", here, cwd=tmp_path)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    finally:
        here.rename(there)
    running.stop()


def test_a_command_says_where_it_has_looked(start_node, tmp_path: Path, short_directory: Path):
    start_node(amqp(), tmp_path, XDG_RUNTIME_DIR=str(short_directory))
    (sockets,) = short_directory.iterdir()
    sockets.rename(tmp_path / "moved")
    try:
        done = crosstie("queues", "--cbdir", tmp_path, cwd=tmp_path)
        assert done.returncode != 0
        assert f"looked for {sockets}/management.sock" in done.stderr
        assert "XDG_RUNTIME_DIR" in done.stderr
        assert crosstie("status", "--cbdir", tmp_path, cwd=tmp_path).stdout.startswith("running")
    finally:
        (tmp_path / "moved").rename(sockets)
