"""A bench on a busy machine, an early end, an absent peer: what is printed, written, returned."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from rig.router import binary


def test_goals_are_not_judged_on_a_busy_machine(tmp_path):
    """Footprint has no figure of its own for that: the rule is the same for every instrument."""
    results = tmp_path / "results.json"
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in os.sched_getaffinity(0)]
    try:
        command = ["footprint", "--sessions", "10,20", "--starts", "1", "--json", str(results)]
        done = subprocess.run(
            [binary(), "bench", *command], text=True, capture_output=True, timeout=60
        )
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(results.read_text())["verdicts"]
    assert len(verdicts) == 5
    assert {one["verdict"] for one in verdicts} == {"not judged"}
    assert {one["why"] for one in verdicts} == {"something else was busy here"}
    assert done.stdout.count("not judged: something else was busy here") == 5

    page = tmp_path / "report.html"
    subprocess.run([binary(), "report", results, "-o", page], check=True, timeout=60)
    assert "No goal is judged." in page.read_text()


def test_an_interrupted_schedule_keeps_what_was_measured(tmp_path):
    command = [binary(), "bench", "all", "--only", "stream,footprint", "--out", tmp_path / "out"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as running:
        assert running.stdout
        for line in running.stdout:
            # A table that is complete.
            if "transactions" in line and "÷ floor" in line:
                break
        # As `kill` and a service manager do: the step has to be told by the schedule.
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
    assert running.returncode == 130
    frame = json.loads((tmp_path / "out/stream.json").read_text())
    assert frame["results"]
    assert "failed: interrupted; " in rest
    # The steps after it were not begun, and left nothing.
    assert not (tmp_path / "out/footprint.json").exists()
    assert (tmp_path / "out/report.html").stat().st_size > 0


def test_a_bench_that_is_killed_leaves_no_empty_file(tmp_path):
    results = tmp_path / "results.json"
    command = [binary(), "bench", "rpc", "--calls-per-line", "10", "--json", results]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stdout.readline()
        running.kill()
    assert not results.exists()


def test_the_tables_come_without_a_line_for_every_batch(tmp_path):
    short = ("--seconds", "0.1", "--warm-up", "0", "--runs", "1", "--placement", "free")
    done = subprocess.run(
        [binary(), "bench", "rpc", *short], text=True, capture_output=True, timeout=60
    )
    assert done.returncode in (0, 1), done.stderr
    assert "average round-trip time" not in done.stdout
    assert done.stdout.lstrip().startswith("Machine: ")


def test_a_schedule_says_how_long_it_takes_with_peers(tmp_path):
    def minutes(*peers: str) -> int:
        named = [word for peer in peers for word in ("--peer", peer)]
        done = subprocess.run(
            [binary(), "bench", "all", "--list", *named],
            text=True,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return int(done.stderr.split()[1])

    assert minutes() == 9
    assert minutes("crossbar", "rabbitmq") > 2 * minutes()


def test_a_peer_that_is_not_installed_fails_the_run(tmp_path):
    short = ("--seconds", "0.1", "--warm-up", "0", "--runs", "1", "--placement", "free")
    results = tmp_path / "results.json"
    done = subprocess.run(
        [binary(), "bench", "rpc", "--peer", "crossbar", *short, "--json", results],
        text=True,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PATH": str(Path("/nonexistent"))},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crossbar: absent" in done.stdout
    # Results that could be measured are kept.
    assert json.loads(results.read_text())["results"]
