"""`crosstie bench pubsub`: the load client, the document's profiles, the search, bad input."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.nats import PROGRAM
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true

LINE = re.compile(r"^(\d+), (\d+), (\d+), (\d+), (\d+\.\d{6})$", re.MULTILINE)


def pubsub(*arguments: object, timeout: float = 60):
    """Run the bench to its end."""
    command = [str(binary()), "bench", "pubsub", *map(str, arguments)]
    return subprocess.run(command, text=True, capture_output=True, timeout=timeout)


def frame(path: Path) -> dict:
    """Read the JSON frame of a run."""
    read = json.loads(path.read_text())
    assert read["bench"] == "pubsub"
    assert {"version", "commit", "machine", "settings", "results"} <= read.keys()
    return read


def sums(read: dict) -> dict[str, dict]:
    """Return each subject's row that sums up its rounds."""
    return {row["subject"]: row for row in read["results"] if "round" not in row}


class Node:
    """A router of the test's own, started by command line."""

    def __init__(self, directory: Path):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.socket = directory / "router.sock"
        self.url = f"ws://127.0.0.1:{self.port}/ws"
        command = ["start", "--listen", f"127.0.0.1:{self.port}", "--socket", str(self.socket)]
        self.process = subprocess.Popen(
            [str(binary()), *command, "--loglevel", "error"], stderr=subprocess.DEVNULL
        )
        await_true("the router listens", self.listens)

    def listens(self) -> bool:
        """Say whether a connection succeeds."""
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def node(tmp_path) -> Iterator[Node]:
    """Start a router; it is ended after the test."""
    started = Node(tmp_path)
    yield started
    started.process.send_signal(signal.SIGCONT)
    started.process.kill()
    started.process.wait()


def test_the_load_client(tmp_path):
    """Its short options, its lines, and the summary; nothing lost, the totals add up."""
    path = tmp_path / "pubsub.json"
    done = pubsub(
        *("-c", 20, "-r", 50, "-b", 2, "-p", 10, "-u", 2000, "-t", "com.example.simple"),
        *("--seconds", 2.3, "--json", path),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "ok, 20 clients all connected, start publishing .." in done.stdout
    heading = "Parameters: 20 clients, 2000 uprate, 10 payload, 2 batchsize, 50 rate\n"
    assert heading in done.stdout
    names = "Messages: sent_last, recv_last, sent_total, recv_total, avg. rtt (ms)"
    assert names in done.stdout
    lines = [[float(word) for word in line] for line in LINE.findall(done.stdout)]
    assert len(lines) == 2
    for column in (0, 1):
        assert lines[0][column] == lines[0][column + 2]
        assert lines[0][column] + lines[1][column] == lines[1][column + 2]
    rows = sums(frame(path))
    assert list(rows) == ["crosstie", "floor"]
    for row in rows.values():
        assert row["valid"], row
        assert row["placement"] in ("split", "same-core")
        metrics = row["metrics"]
        # 0.3 s of warm-up and 2.3 s, two publications each time.
        assert metrics["publications"] == 2 * (15 + 115)
        assert metrics["latency_p50_us"] <= metrics["latency_p99_us"]
        assert metrics["router_cpu_us_per_event"] > 0
        assert metrics["driver_cpu_us_per_event"] > 0
    assert "p50 ÷ floor" in done.stdout


@pytest.mark.parametrize(
    "case",
    [
        "uds-rawsocket-msgpack",
        "tcp-rawsocket-cbor",
        "uds-websocket-json-batched",
        "tcp-websocket-msgpack-batched",
    ],
)
def test_every_kind_of_link(case):
    done = pubsub("--case", case, "-c", 7, "-r", 100, "-p", 0, "--seconds", 0.3, "--acknowledge")
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"{case} " in done.stdout


def test_profiles(tmp_path):
    """The document beside the floor and the router; the headings that do not add up are named."""
    path = tmp_path / "pubsub.json"
    done = pubsub(
        *("--profile", "7,22", "--runs", 1, "--seconds", 0.1, "--json", path),
        *("--placement", "same-core"),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    for text in ("Raspberry Pi 1", "same-core", "results in which nothing was lost ≥ 2.00: 2.00"):
        assert text in done.stdout, text
    for pattern in (r"^ 7 +2,500 +2,500 +50 +50 +1 +1400 +200 ", r"^ 22 +1,000 +1,000 +5 +200 "):
        assert re.search(pattern, done.stdout, re.MULTILINE), pattern
    read = frame(path)
    seven = read["results"][0]
    assert seven["case"] == "tcp-websocket-json result 7"
    assert seven["metrics"]["document_latency_ms"] == 200
    # However slow the rate: ten batches and the one before them.
    assert seven["metrics"]["publications"] >= 11


def test_profiles_with_subscribers_on_several_nodes(tmp_path):
    """Two nodes and three take part beside one; each subscriber has every event."""
    path = tmp_path / "pubsub.json"
    done = pubsub(
        *("--profile", "22", "--runs", 1, "--seconds", 0.1, "--json", path),
        *("--placement", "same-core", "--nodes", "2,3", "--nats-server", PROGRAM),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    rows = sums(frame(path))
    assert list(rows) == ["crosstie", "floor", "nodes-2", "nodes-3"]
    assert all(row["valid"] for row in rows.values()), rows
    counts = {row["metrics"]["publications"] for row in rows.values()}
    assert len(counts) == 1
    assert re.search(r"nodes-2 +nodes-3$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("words", ["0", "28", "1,x", "all,1"])
def test_profiles_that_are_not_there(words):
    done = pubsub("--profile", words)
    assert done.returncode == 2
    assert "1 to 27" in done.stderr


def test_the_search(tmp_path):
    path = tmp_path / "pubsub.json"
    done = pubsub(
        *("--max", "--p99", "50ms", "-c", 3, "-b", 50, "--seconds", 0.05, "--runs", 1),
        *("--case", "uds-rawsocket-msgpack", "--no-floor", "--json", path),
    )
    # Whether the router was busy enough to count is this machine's affair.
    assert done.returncode in (0, 1), done.stderr
    assert re.search(r"crosstie: .* events/s held \(p99 .* did not: ", done.stdout), done.stdout
    row = sums(frame(path))["crosstie"]
    assert row["metrics"]["max_events_per_s"] > 0
    assert row["metrics"]["driver_bound"] in (True, False)


def test_saturated(tmp_path):
    path = tmp_path / "pubsub.json"
    done = pubsub(
        *("--saturate", "--outstanding", 8, "-c", 10, "--seconds", 0.3, "--runs", 1),
        *("--case", "uds-rawsocket-msgpack", "--json", path),
    )
    assert done.returncode in (0, 1), done.stderr
    rows = sums(frame(path))
    assert [row["why"] for row in rows.values()] == ["", ""]
    assert rows["crosstie"]["metrics"]["events"] > 0
    assert "8 publications under way" in done.stdout


def test_ctrl_c_ends_with_a_summary():
    command = [str(binary()), "bench", "pubsub", "-c", "3", "-r", "20", "--seconds", "600"]
    running = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, process_group=0)
    try:
        assert running.stdout is not None
        # A warm-up, and then more than the second from which on what was cut short counts.
        seconds = (line for line in running.stdout if LINE.match(line))
        for _ in itertools.islice(seconds, 4):
            pass
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=DEADLINE_S)
    finally:
        running.kill()
    assert running.returncode == 0, rest
    assert re.search(r"^ crosstie .* \d", rest, re.MULTILINE), rest
    assert "interrupted" in rest


def test_an_external_router(node):
    """By either name of the option, over either socket; processor time where it is told."""
    for url in (node.url, f"rs+unix://{node.socket}"):
        done = pubsub(
            *("--url", url, "--router-pid", node.process.pid, "--no-floor"),
            *("-c", 5, "-r", 50, "--seconds", 0.5),
        )
        assert done.returncode == 0, done.stderr
    assert "without --router-pid" not in done.stdout


def test_no_listener():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        done = pubsub("--wsuri", f"ws://127.0.0.1:{taken.getsockname()[1]}/ws")
    assert done.returncode == 2
    assert "nothing listens" in done.stderr


def test_a_wrong_realm_and_a_wrong_path(node):
    for arguments, said in (
        (["--wsuri", node.url, "--realm", "nowhere"], "no_such_realm"),
        (["--wsuri", f"ws://127.0.0.1:{node.port}/nowhere"], "404"),
        (
            ["--wsuri", f"ws://127.0.0.1:{node.port}", "--case", "uds-rawsocket-json"],
            "URL's transport",
        ),
    ):
        done = pubsub(*arguments, "--seconds", 0.2)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr


def test_something_else_listens():
    """A server that accepts and says nothing that a router would."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)

        def answer() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(b"220 mail.example.com ESMTP\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        done = pubsub("--wsuri", f"ws://127.0.0.1:{server.getsockname()[1]}/", "--seconds", 0.2)
        server.shutdown(socket.SHUT_RDWR)
    assert done.returncode == 2
    assert "subscriber 1 of 10" in done.stderr


def during_a_run(node: Node, path: Path, act) -> tuple[int, str]:
    """Run the load client, do something to the router after its first line; code and output."""
    command = ["bench", "pubsub", "--wsuri", node.url, "-c", "4", "-r", "50", "--seconds", "1.6"]
    running = subprocess.Popen(
        [str(binary()), *command, "--no-floor", "--json", str(path)],
        text=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert running.stdout is not None
        said = ""
        for line in running.stdout:
            said += line
            if LINE.match(line):
                break
        act()
        rest, _ = running.communicate(timeout=60)
    finally:
        running.kill()
    return running.returncode, said + rest


def test_a_router_that_closes_midway(node, tmp_path):
    """The run does not count; what was found until then is told."""
    path = tmp_path / "pubsub.json"
    code, said = during_a_run(node, path, lambda: os.kill(node.process.pid, signal.SIGTERM))
    assert code == 1, said
    (row,) = [row for row in frame(path)["results"] if "round" in row]
    assert not row["valid"]
    assert "closed" in row["why"] or "GOODBYE" in row["why"], row
    assert re.search(r"found until then: \d+ publications", said), said


def test_a_router_that_stops_answering(node, tmp_path):
    path = tmp_path / "pubsub.json"
    code, said = during_a_run(node, path, lambda: os.kill(node.process.pid, signal.SIGSTOP))
    assert code == 1, said
    (row,) = [row for row in frame(path)["results"] if "round" in row]
    assert re.search(r"\d+ lost", row["why"]), row


def test_too_few_descriptors():
    done = pubsub("--clients", 999_999)
    assert done.returncode == 2
    assert "ulimit -Hn" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-c", "0"], "--clients"),
        (["-r", "0"], "--saturate"),
        (["--p99", "50"], "50ms"),
        (["--max", "--profile", "1"], "cannot be used with"),
        (["--nodes", "1"], "2 to 16"),
        (["--wsuri", "http://127.0.0.1"], "begin with"),
    ],
)
def test_options_that_make_no_sense(arguments, said):
    done = pubsub(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
