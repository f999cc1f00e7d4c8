"""`bench node` and `roundtrip`: what they measure, what they wait for, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from rig import benches
from rig.router import ROOT, Router, binary
from rig.waiting import await_true
from rig.windows import widening

EXAMPLE = ROOT / "examples/rpc_roundtrip_native"

# As short as a round can be: nothing here looks at how fast anything is.
ROUND = ("--runs", "1", "--warm-up", "0")
SHORT = (*ROUND, "--seconds", "1")

LINE = re.compile(r"\[(?P<name>[\w-]+)\] - average round-trip time \(ms\): (?P<ms>[\d.]+)$")


bench = partial(benches.bench, "node")
summaries = partial(benches.summaries, name="node")


def shown(seconds: float, results: Path, *arguments: object, **variables: str):
    """Run the bench with rounds that are long enough for each pair to say what it measures."""

    def measure(seconds: float):
        window = (*ROUND, "--seconds", seconds, "--json", results)
        return bench(*arguments, *window, timeout=180, **variables)

    def is_enough(done: subprocess.CompletedProcess) -> bool:
        return "--seconds is too short" not in done.stdout

    return widening(seconds, measure, is_enough, (1, 4, 12))


# --- the node


def test_the_native_example(tmp_path):
    results = tmp_path / "results.json"
    done = shown(1, results, "--native")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = summaries(results)
    node = rows["rpc_roundtrip_native", "crosstie"]
    assert node["valid"], node
    assert node["placement"] == "free"
    metrics = node["metrics"]
    assert metrics["exit_code"] == 0
    assert metrics["children_left"] == 0
    for name in ("start_ms", "first_call_ms", "all_calls_per_s", "node_pss_bytes", "end_ms"):
        assert metrics[name] > 0, name
    assert metrics["first_call_ms"] >= metrics["start_ms"]
    roles = [process["role"] for process in metrics["processes"]]
    assert roles.count("controller") == 1
    assert roles.count("guest") == 4
    for process in metrics["processes"]:
        assert process["rss_bytes"] > 0, process
        assert process["threads"] > 0, process
    for case in ("uds-rawsocket-msgpack", "tcp-websocket-json"):
        for subject in ("crosstie", "floor"):
            pair = rows[f"{case} rpc_roundtrip_native", subject]
            assert pair["valid"], pair
            assert pair["metrics"]["calls_per_s"] > 0
            assert pair["metrics"]["rtt_avg_us"] > 0
    assert "placement free" in done.stdout
    assert "System load, crosstie" in done.stdout
    assert "goal: memory of the node without its components" in done.stdout


def test_the_example_in_python(tmp_path):
    results = tmp_path / "results.json"
    sources = ROOT / "python"
    example = ("--directory", ROOT / "examples/rpc_roundtrip", "--python", sys.executable)
    done = shown(4, results, *example, PYTHONPATH=str(sources))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = summaries(results)
    node = rows["rpc_roundtrip", "crosstie"]
    assert node["valid"], node
    roles = [process["role"] for process in node["metrics"]["processes"]]
    assert roles.count("container") == 4
    for case in ("uds-rawsocket-msgpack", "tcp-websocket-json"):
        assert rows[f"{case} rpc_roundtrip", "crosstie"]["valid"]


def test_an_interrupt_leaves_nothing_behind():
    """The round that it comes in is no round; its node goes."""
    # Not pytest's own directory, whose name alone nearly fills the path of a Unix socket.
    directory = Path(tempfile.mkdtemp())
    variables = {**os.environ, "TMPDIR": str(directory)}
    command = [str(binary()), "bench", "node", "--native", "--seconds", "600"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=variables) as running:
        assert running.stdout
        await_true("a node listens", lambda: any(directory.rglob("crossbar.sock")))
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.wait(timeout=30) == 130
    assert not list(directory.iterdir())
    directory.rmdir()


def test_a_directory_whose_sockets_would_have_no_name_is_told(tmp_path):
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    done = bench("--native", *SHORT, TMPDIR=str(deep))
    assert done.returncode == 2
    assert "may have 107 bytes" in done.stderr
    assert "$TMPDIR" in done.stderr


def test_the_directory_is_left_as_it_was():
    before = sorted(path for path in EXAMPLE.rglob("*"))
    done = bench("--directory", EXAMPLE, *SHORT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path for path in EXAMPLE.rglob("*")) == before


def test_an_absent_peer_is_said_to_be(tmp_path):
    results = tmp_path / "results.json"
    done = bench("--native", "--peer", "crossbar", *SHORT, "--json", results, PATH="/nonexistent")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crossbar: absent from PATH; to get it: pip install crossbar" in done.stdout
    peers = json.loads(results.read_text())["settings"]["peers"]
    assert peers == [{"name": "crossbar", "version": None, "present": False}]


def directory(path: Path, *workers: dict) -> Path:
    """Make a node directory with a router and these workers."""
    permission = {"uri": "", "match": "prefix", "allow": {"call": True, "register": True}}
    router = {
        "type": "router",
        "realms": [
            {"name": "realm1", "roles": [{"name": "anonymous", "permissions": [permission]}]}
        ],
        "transports": [
            {"type": "rawsocket", "endpoint": {"type": "unix", "path": "crossbar.sock"}}
        ],
    }
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"version": 2, "workers": [router, *workers]}))
    return path


def guest(end: str, *more: str) -> dict:
    arguments = ["roundtrip", end, "--url", "rs+unix:crossbar.sock", "--procedure", "a.b", *more]
    return {"type": "guest", "executable": "crosstie", "arguments": arguments}


def test_a_caller_that_leaves_is_a_round_that_does_not_count(tmp_path):
    """Its worker's end ends the node, as its trigger says."""
    caller = guest("caller", "--name", "A", "--batches", "1")
    node = directory(tmp_path / "node", guest("callee"), caller)
    results = tmp_path / "results.json"
    done = bench("--directory", node, *SHORT, "--json", results)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not counted: crosstie:" in done.stdout
    assert not summaries(results)["node", "crosstie"]["valid"]


def test_a_node_that_does_not_start_tells_its_last_words(tmp_path):
    node = directory(tmp_path / "node", {"type": "guest", "executable": "/nonexistent/program"})
    done = bench("--directory", node, *SHORT)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "/nonexistent/program" in done.stdout


# --- what is refused


def test_a_directory_without_a_node(tmp_path):
    done = bench("--directory", tmp_path)
    assert done.returncode == 2
    assert "expected .crossbar/config.json or config.json in it" in done.stderr
    (tmp_path / "config.json").write_text("{")
    done = bench("--directory", tmp_path)
    assert done.returncode == 2
    assert "config.json: EOF while parsing" in done.stderr
    (tmp_path / "config.json").write_text('{"version": 2, "workers": []}')
    done = bench("--directory", tmp_path)
    assert done.returncode == 2
    assert "no router worker with a transport" in done.stderr
    done = bench("--directory", tmp_path / "absent")
    assert "no such directory" in done.stderr


def test_an_interpreter_without_autobahn(tmp_path):
    component = {"type": "class", "classname": "x.Y", "realm": "realm1", "extra": {"title": "A"}}
    node = directory(tmp_path / "node", {"type": "container", "components": [component]})
    python = tmp_path / "python3"
    # An interpreter with nothing but its standard library.
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    done = bench("--directory", node, "--python", python)
    assert done.returncode == 2
    assert "cannot import what a container needs" in done.stderr
    assert "No module named 'autobahn'" in done.stderr
    assert "--native" in done.stderr
    done = bench("--directory", node, "--python", tmp_path / "absent")
    assert done.returncode == 2
    assert "does not run" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--runs", "0"), "--runs is at least 1"),
        (("--seconds", "0"), "--seconds is 0.001 to 86,400"),
        (("--calls-per-line", "0"), "--calls-per-line is at least 1"),
        (("--peer", "rabbit"), "the peer that can be started is crossbar"),
    ],
)
def test_unavailable_peers_and_interpreters(arguments, expected):
    done = bench("--native", *arguments)
    assert done.returncode == 2
    assert expected in done.stderr, done.stderr


# --- the pair alone


def end(*arguments: object) -> subprocess.Popen[str]:
    """Start one end of a pair."""
    command = [str(binary()), "roundtrip", *map(str, arguments)]
    return subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )


def leave(process: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> None:
    """End it, and see that it takes its leave."""
    process.send_signal(how)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said


@pytest.fixture
def router(tmp_path):
    """Start a router on a Unix socket and a TCP port."""
    started = Router(tmp_path, "--socket", "router.sock", "--listen", "127.0.0.1:0")
    yield started
    started.kill()


def url(router: Router) -> str:
    return f"rs+unix:{router.directory / 'router.sock'}"


def test_ends_wait_for_each_other_and_for_their_router(tmp_path):
    """The caller comes first of all, then the router, then the callee."""
    where = ("--url", f"rs+unix:{tmp_path / 'router.sock'}", "--procedure", "a.b")
    with end("caller", *where, "--name", "A-B", "--batch", 50, "--batches", 3) as caller:
        router = Router(tmp_path, "--socket", "router.sock")
        with end("callee", *where) as callee:
            lines, said = caller.communicate(timeout=60)
            assert caller.returncode == 0, said
            found = [LINE.match(line) for line in lines.splitlines()]
            assert len(found) == 3
            for line in found:
                assert line, lines
                assert line["name"] == "A-B"
                assert 0 < float(line["ms"]) < 60_000
            leave(callee)
        router.kill()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_both_leave_at_a_signal(router, how):
    where = ("--url", url(router), "--procedure", "a.b")
    with (
        end("callee", *where) as callee,
        end("caller", *where, "--name", "A", "--batch", 10) as caller,
    ):
        assert callee.stdout
        assert callee.stdout.readline() == "Ready!\n"
        assert caller.stdout
        assert LINE.match(caller.stdout.readline())
        leave(caller, how)
        leave(callee, how)


def test_a_caller_waits_until_its_callee_is_back(router):
    where = ("--url", url(router), "--procedure", "a.b")
    with end("caller", *where, "--name", "A", "--batch", 10) as caller:
        assert caller.stdout
        for _ in range(2):
            with end("callee", *where) as callee:
                assert LINE.match(caller.stdout.readline())
                # It may be a line of the time before; a callee that serves can take its leave.
                assert callee.stdout
                callee.stdout.readline()
                leave(callee)
        # Lines of the time before may still come: a caller has no other way to say that it waits.
        leave(caller)


def test_both_go_with_their_router(router):
    where = ("--url", url(router), "--procedure", "a.b")
    with end("callee", *where) as callee, end("caller", *where, "--name", "A") as caller:
        assert callee.stdout
        callee.stdout.readline()
        assert caller.stdout
        caller.stdout.readline()
        router.process.send_signal(signal.SIGINT)
        for process in (caller, callee):
            _, said = process.communicate(timeout=30)
            assert process.returncode == 2, said
            assert "the router closed the connection without a GOODBYE" in said


def test_a_procedure_is_registered_once(router):
    where = ("--url", url(router), "--procedure", "a.b")
    with end("callee", *where) as first:
        assert first.stdout
        first.stdout.readline()
        with end("callee", *where) as second:
            _, said = second.communicate(timeout=30)
            assert second.returncode == 2, said
            assert "wamp.error.procedure_already_exists" in said
        leave(first)


def test_a_realm_that_is_not_there_is_told(router):
    with end(
        "caller", "--url", url(router), "--realm", "no", "--procedure", "a", "--name", "A"
    ) as it:
        _, said = it.communicate(timeout=30)
        assert it.returncode == 2
        assert "realm no" in said
