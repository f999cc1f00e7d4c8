"""Benches leave ports free: the machine connects on, during a bench and right after it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rig.router import binary

# Ports that the kernel may hand out. Each of the benches here makes more connections than that.
FIRST, LAST = 40_000, 40_199
# Outside of them.
SERVER = 30_000

# Runs in a network namespace of its own, whose port range and TIME_WAIT are its own too.
SCRIPT = f"""
import pathlib, socket, subprocess, sys

def waiting():
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[3] == "06" for line in lines)

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("{FIRST} {LAST}")
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
print("waiting:", waiting())
with socket.create_server(("127.0.0.1", {SERVER}), backlog=64):
    for _ in range(50):
        socket.create_connection(("127.0.0.1", {SERVER}))
print("connected")
sys.exit(done.returncode)
"""

SHORT = ("--runs", "1", "--warm-up", "0", "--placement", "free")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None,
    reason="a network namespace takes root, ip and unshare",
)


def in_a_namespace(directory: Path, *arguments: str) -> str:
    """Run a bench with few ports, and connect right after it."""
    command = ["unshare", "--net", sys.executable, "-c", SCRIPT, str(binary()), "bench"]
    done = subprocess.run(
        [*command, *arguments], cwd=directory, text=True, capture_output=True, timeout=60
    )
    # Whether a figure counts is this machine's affair; an error is ours.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "connected"
    return done.stdout


def test_held_connections_end_without_a_wait(tmp_path):
    said = in_a_namespace(
        tmp_path,
        *("accept", "--connections", "450", "--batch", "150", "--delay", "10ms"),
        *("--clients", "3", "--workers", "1"),
    )
    assert "450 established. 0 failed." in said
    assert "450 echoed, 0 wrong, 0 missing" in said
    # The bench itself tries now and then whether its server accepts.
    waiting = re.search(r"^waiting: (\d+)$", said, re.MULTILINE)
    assert waiting
    assert int(waiting[1]) < 5, said


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("stream", "-t", "TCP_CRR", "--seconds", "0.1", *SHORT), id="stream"),
        pytest.param(
            (
                *("pubsub", "--clients", "150", "--rate", "10", "--seconds", "0.1", *SHORT),
                *("--case", "tcp-rawsocket-msgpack"),
            ),
            id="pubsub",
        ),
        pytest.param(("footprint", "--sessions", "20,150", "--starts", "1"), id="footprint"),
    ],
)
def test_a_connect_right_after_a_bench_succeeds(tmp_path, arguments):
    in_a_namespace(tmp_path, *arguments)
