"""Clients whose protocol header asks for AMQP 0-9 or 0-8: they work as on RabbitMQ."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rig.broker import Broker
from rig.router import ROOT
from rig.waiting import DEADLINE_S

CLIENTS = Path(__file__).parent / "clients"
STRANGERS = ROOT / "target/strangers/venv/bin/python"
# Debian's, for what Debian packages.
SYSTEM = Path("/usr/bin/python3")
HEADER = b"AMQP\0\0\x09\x01"


def work(broker: Broker, *command: object) -> list[str]:
    """Run a client that declares, publishes, consumes and acknowledges; return its lines."""
    host, port = broker.address
    words = [*map(str, command), host, str(port), f"strangers-{Path(str(command[-1])).stem}"]
    done = subprocess.run(words, text=True, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_anyevent_rabbitmq_works(broker):
    if not shutil.which("perl") or not has_perl_module("AnyEvent::RabbitMQ"):
        pytest.skip("libanyevent-rabbitmq-perl is not installed")
    assert work(broker, "perl", CLIENTS / "anyevent_rabbitmq.pl") == ["1", "2", "3", "closed"]


def test_mojo_rabbitmq_works(broker):
    if not shutil.which("perl") or not has_perl_module("Mojo::RabbitMQ::Client"):
        pytest.skip("libmojo-rabbitmq-client-perl is not installed")
    assert work(broker, "perl", CLIENTS / "mojo_rabbitmq.pl") == ["1", "2", "3", "closed"]


def test_aioamqp_works(broker):
    python = STRANGERS if STRANGERS.exists() else sys.executable
    assert work(broker, python, CLIENTS / "aioamqp_session.py") == ["1", "2", "3", "closed"]


def test_amqplib_of_0_8_works(broker):
    probe = [SYSTEM, "-c", "import amqplib"]
    if not SYSTEM.exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("python3-amqplib is not installed")
    assert work(broker, SYSTEM, CLIENTS / "amqplib_session.py") == ["1", "2", "3", "closed"]


def has_perl_module(name: str) -> bool:
    """Whether perl finds a module."""
    found = subprocess.run(["perl", f"-M{name}", "-e", "1"], capture_output=True, check=False)
    return found.returncode == 0


def answer(broker: Broker, header: bytes) -> bytes:
    """Return the first octets of the answer to a protocol header."""
    with socket.create_connection(broker.address, DEADLINE_S) as there:
        there.sendall(header)
        return there.recv(4096)


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (HEADER, (0, 9)),
        (b"AMQP\x01\x01\x00\x09", (0, 9)),
        (b"AMQP\x01\x01\x08\x00", (8, 0)),
        (b"AMQP\x01\x01\x09\x01", (8, 0)),
    ],
)
def test_the_header_decides_the_version_of_connection_start(broker, header, version):
    start = answer(broker, header)
    # The frame's header, then class and method, then the version.
    assert start[7:11] == b"\0\x0a\0\x0a"
    assert tuple(start[11:13]) == version


@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\0\0\x09\0",
        b"AMQP\x01\x01\0\x08",
        b"AMQP\x01\x01\0\x0a",
        b"AMQP\0\x01\0\0",
        b"AMQP\x03\x01\0\0",
    ],
)
def test_another_header_is_answered_with_the_right_one_and_the_end(broker, header):
    with socket.create_connection(broker.address, DEADLINE_S) as there:
        there.sendall(header)
        assert there.recv(8) == HEADER
        # RabbitMQ ends it by a reset.
        with contextlib.suppress(ConnectionResetError):
            assert there.recv(1) == b""
