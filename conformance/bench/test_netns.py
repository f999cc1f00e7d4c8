"""Benches whose servers and clients are in two network namespaces, as if on two machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from functools import cache
from pathlib import Path

import pytest
from rig.router import binary
from rig.waiting import await_true

CASE = ["--case", "tcp-rawsocket-msgpack", "--placement", "free", "--runs", "1"]
SHORT = [*CASE, "--seconds", "0.2"]


@cache
def obstacle() -> str:
    """Why no namespaces can be made here; empty where they can."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    name = f"crosstie-test-{os.getpid()}"
    for command in (
        ["ip", "netns", "add", name],
        ["ip", "-n", name, "link", "add", "veth0", "type", "veth", "peer", "name", "veth1"],
    ):
        try:
            done = subprocess.run(command, text=True, capture_output=True, timeout=30)
        except FileNotFoundError:
            return "there is no `ip`; it is in the package iproute2"
        if done.returncode != 0:
            break
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=30)
    return "" if done.returncode == 0 else f"`{' '.join(command)}`: {done.stderr.strip()}"


@pytest.fixture
def namespaces() -> None:
    """Skip where there can be none."""
    if why := obstacle():
        pytest.skip(why)


def names(process: int) -> list[str]:
    """Return the namespaces that a bench has made."""
    directory = Path("/run/netns")
    return sorted(path.name for path in directory.glob(f"crosstie-bench-{process}-*"))


def bench(*arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [str(binary()), "bench", *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finished(process: subprocess.Popen) -> str:
    """Let a bench end; return what it printed."""
    said, complaint = process.communicate(timeout=50)
    # Whether a figure counts is this machine's affair; an error is ours.
    assert process.returncode in (0, 1), complaint
    return said


@pytest.mark.usefixtures("namespaces")
def test_a_bench_in_two_namespaces(tmp_path):
    file = tmp_path / "rpc.json"
    process = bench("rpc", *SHORT, "--netns", "--json", str(file))
    said = finished(process)
    assert "two network namespaces" in said
    assert names(process.pid) == []
    frame = json.loads(file.read_text())
    assert "namespaces" in frame["settings"]["network"]
    rows = {row["subject"]: row for row in frame["results"] if "round" in row}
    assert rows["crosstie"]["valid"], rows
    assert rows["floor"]["valid"], rows
    assert rows["crosstie"]["metrics"]["calls"] > 0


@pytest.mark.usefixtures("namespaces")
def test_a_link_between_the_namespaces(tmp_path):
    file = tmp_path / "rpc.json"
    finished(bench("rpc", *SHORT, "--netns", "--link", "5ms", "--json", str(file)))
    check_linked(file)


def test_a_link_on_the_loopback(tmp_path):
    file = tmp_path / "rpc.json"
    finished(
        bench("rpc", *SHORT, "--case", "uds-websocket-json", "--link", "5ms", "--json", str(file))
    )
    check_linked(file)


def check_linked(file: Path) -> None:
    """The call and its invocation's yield each go up a way of 5 ms."""
    frame = json.loads(file.read_text())
    assert "5 ms up" in frame["settings"]["network"]
    rounds = [row for row in frame["results"] if "round" in row]
    assert {row["subject"] for row in rounds} == {"crosstie", "floor"}
    for row in rounds:
        assert row["valid"], row
        assert row["metrics"]["rtt_us"]["p50"] >= 10_000 * 0.99, row


@pytest.mark.usefixtures("namespaces")
def test_namespaces_of_a_killed_bench_are_removed():
    killed = bench("rpc", *CASE, "--netns", "--seconds", "60")
    await_true("it has made its namespaces", lambda: len(names(killed.pid)) == 2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    finished(bench("rpc", *SHORT, "--netns"))
    assert names(killed.pid) == []


def test_contradicting_options_are_refused():
    done = subprocess.run(
        [str(binary()), "bench", "rpc", "--netns", "--url", "rs://127.0.0.1:1"],
        text=True,
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "without --netns" in done.stderr


@pytest.mark.parametrize("link", ["", "50", "50ms,loss=1", "5ms,jitter=6ms"])
def test_a_wrong_link_is_named(link):
    done = subprocess.run(
        [str(binary()), "bench", "rpc", "--link", link], text=True, capture_output=True, timeout=30
    )
    assert done.returncode == 2
    assert "--link" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can stop being root")
def test_without_rights_it_says_what_is_missing():
    done = subprocess.run(
        [str(binary()), "bench", "rpc", "--netns"],
        text=True,
        capture_output=True,
        timeout=30,
        user=65534,
        # Of any user; that of the tests' user may be root's.
        env={**os.environ, "TMPDIR": "/tmp"},
    )
    assert done.returncode == 2
    assert "root" in done.stderr
