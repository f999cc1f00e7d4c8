"""A bench of a router that was running before it: which processes are counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.router import binary
from rig.waiting import await_true

SHORT = ("--seconds", "0.2", "--warm-up", "0", "--runs", "1", "--placement", "free")


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Start a router as the child of a shell, as a service manager or a container's init does."""
    arguments = "start --socket r.sock --listen 127.0.0.1:0 --amqp 127.0.0.1:0"
    started = subprocess.Popen(
        ["sh", "-c", f"'{binary()}' {arguments} & wait"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    await_true("the router listens", (tmp_path / "r.sock").exists)
    yield started
    os.killpg(started.pid, signal.SIGTERM)
    started.wait()


def bench(tmp_path: Path, *arguments: object) -> tuple[str, dict]:
    """Measure the router; return what was printed, and what its row has."""
    results = tmp_path / "results.json"
    done = subprocess.run(
        [
            *(binary(), "bench", *map(str, arguments), *SHORT, "--json", results),
            *("--url", f"rs+unix://{tmp_path}/r.sock"),
        ],
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode in (0, 1), done.stderr
    frame = json.loads(results.read_text())
    assert frame["settings"]["router_threads"] is None
    rows = (row for row in frame["results"] if "round" not in row)
    return done.stdout, next(row["metrics"] for row in rows if row["subject"].startswith("rs "))


def test_the_parent_of_a_router_stands_for_its_whole_tree(tmp_path, parent):
    said, metrics = bench(tmp_path, "rpc", "--pid", parent.pid)
    assert metrics["router_cpu_us_per_call"] > 0
    # A shell alone has less than half of a MiB.
    assert metrics["router_pss_bytes"] > 1 << 20
    assert "warning" not in said
    assert "1 thread" not in said
    assert "Router: the one at --url" in said


@pytest.mark.parametrize("instrument", ["rpc", "pubsub"])
@pytest.mark.usefixtures("parent")
def test_a_process_that_used_no_processor_has_no_figure(tmp_path, instrument):
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        more = ("--clients", 5, "--rate", 10) if instrument == "pubsub" else ()
        said, metrics = bench(tmp_path, instrument, *more, "--pid", sleeper.pid)
        sleeper.kill()
    assert f"warning: --pid {sleeper.pid}: no processor time" in said
    unknown = ("router_cpu", "router_busy", "router_pss")
    assert not [name for name in metrics if name.startswith(unknown)]


def test_busy_polling_is_refused_for_an_external_router(tmp_path):
    done = subprocess.run(
        [binary(), "bench", "rpc", "--spin", "--url", f"rs+unix://{tmp_path}/r.sock"],
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "--spin starts a router, and a --url names one" in done.stderr


def test_held_connections_of_a_server_that_another_process_is(tmp_path):
    results = tmp_path / "results.json"
    with (
        subprocess.Popen(["sleep", "60"]) as sleeper,
        subprocess.Popen(
            [binary(), "testee", "stream", "--listen", "tcp://127.0.0.1:0"],
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as testee,
    ):
        assert testee.stderr
        url = testee.stderr.readline().split()[-1]
        accept = ("accept", "--connections", "50", "--delay", "0", "--json", results)
        done = subprocess.run(
            [binary(), "bench", *accept, "--url", url, "--pid", str(sleeper.pid)],
            text=True,
            capture_output=True,
            timeout=60,
        )
        sleeper.kill()
        testee.terminate()
    assert done.returncode == 0, done.stderr
    assert f"warning: --pid {sleeper.pid}: no processor time" in done.stdout
    [row] = json.loads(results.read_text())["results"]
    assert row["metrics"]["established"] == 50
    assert not [name for name in row["metrics"] if name.startswith("server_")]
