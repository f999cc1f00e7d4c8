"""`bench oslo` and `bench amqp`: what they measure, what they leave, and what they refuse to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rig.benches import bench, summaries
from rig.router import ROOT, binary

# The place in which the suite of oslo.messaging's own tests installs it.
OSLO = ROOT / "target/oslo-messaging/venv/bin/python"
OSLO = Path(os.environ.get("OSLO_PYTHON", OSLO))
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
needs_rabbitmq = pytest.mark.skipif(
    not RABBITMQ.is_file() or shutil.which("epmd") is None,
    reason="there is no rabbitmq-server: apt-get install rabbitmq-server",
)


def words(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


# As short as a round can be: nothing here looks at how fast anything is.
SHORT = ("--runs", 1, "--seconds", 0.05, "--warm-up", 0.02, "--placement", "same-core")


def commands() -> list[str]:
    """Return every process's command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def test_rates_are_of_calls_and_casts(tmp_path: Path) -> None:
    path = tmp_path / "oslo.json"
    ended = bench("oslo", *SHORT, "--only", "rates", "--json", path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    expected = {(f"{op} native", who) for op in ("call", "cast") for who in ("crosstie", "floor")}
    assert set(rows) == expected
    for row in rows.values():
        assert row["valid"], row
        metrics = row["metrics"]
        assert metrics["operations"] > 0
        assert metrics["broker_cpu_us_per_operation"] > 0
        assert metrics["rtt_p50_us"] <= metrics["rtt_max_us"]


@pytest.mark.skipif(not OSLO.is_file(), reason=f"no oslo.messaging at {OSLO}")
def test_the_library_itself_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "oslo.json"
    ended = bench(
        *("oslo", "--runs", 1, "--seconds", 0.5, "--placement", "free", "--python", OSLO),
        *("--only-python", "--delays", "20ms", "--repeat", 5, "--json", path),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    expected = {"call python", "cast python", "call, python, together", "cast, python, together"}
    assert expected < {case for case, _ in rows}
    assert all(row["valid"] for row in rows.values())
    # It connects when it is first used.
    metrics = rows["call, python, remote client, 20 ms", "crosstie"]["metrics"]
    assert metrics["with_setup_per_s"] < metrics["operations_per_s"] <= 50
    assert "oslo.messaging " in ended.stdout


def test_no_rate_exceeds_the_delays_limit(tmp_path: Path) -> None:
    path = tmp_path / "oslo.json"
    ended = bench(
        *("oslo", *SHORT, "--only", "delays", "--delays", "0ms,20ms", "--repeat", 5),
        *("--json", path),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    delayed = [f"{op}, native, remote client, 20 ms" for op in ("call", "cast")]
    for case in [*delayed, "call, native, remote server, 20 ms"]:
        metrics = rows[case, "crosstie"]["metrics"]
        assert metrics["limit_per_s"] == 50
        assert metrics["operations_per_s"] <= 50
    # These have no waiting call.
    metrics = rows["cast, native, remote server, 20 ms", "crosstie"]["metrics"]
    assert "limit_per_s" not in metrics
    assert metrics["operations_per_s"] > 50
    assert "one round trip" in ended.stdout
    assert "not given" in ended.stdout


CASES = ["transient", "priorities", "durable", "transactions", "paced", "durable-kept"]


@pytest.mark.parametrize("case", CASES)
def test_every_message_arrives(tmp_path: Path, case: str) -> None:
    path = tmp_path / "amqp.json"
    # A disk that others use too may take its time for the first commit.
    ended = bench(
        *("amqp", "--runs", 1, "--seconds", 1.5, "--placement", "same-core"),
        *("--case", case, "--json", path),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    subjects = {"crosstie", "floor"} if case == "transient" else {"crosstie"}
    assert {subject for _, subject in rows} == subjects
    for row in rows.values():
        assert row["valid"], row
        assert row["metrics"]["published"] >= row["metrics"]["messages"] > 0
    if case == "durable":
        assert "acknowledged before its commit never reaches the disk" in words(ended.stdout)
    if case == "paced":
        assert rows["paced", "crosstie"]["metrics"]["confirm_p50_us"] > 0


def test_a_full_queue_is_purged(tmp_path: Path) -> None:
    """Bodies so large that it is full after some hundred of them; none is lost in counting."""
    path = tmp_path / "amqp.json"
    ended = bench(
        *("amqp", "--case", "durable-kept", "--runs", 1, "--seconds", 3, "--json", path),
        *("--payload", 1_000_000, "--window", 20, "--placement", "same-core"),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert summaries(path)["durable-kept", "crosstie"]["valid"]
    assert "at 67 the queue is purged" in words(ended.stdout)


# Those that ask for no rate.
UNPACED = ("transient", "priorities", "durable", "transactions", "durable-kept")


@pytest.mark.parametrize(
    ("cases", "payload"),
    [
        (UNPACED, 150_000),
        # 1,000 a second of 150,000 bytes each are more than a build for tests keeps up with.
        (("paced",), 15_000),
    ],
)
def test_several_share_a_queue(tmp_path: Path, cases: tuple[str, ...], payload: int) -> None:
    path = tmp_path / "amqp.json"
    ended = bench(
        *("amqp", "--runs", 1, "--placement", "same-core"),
        *(word for case in cases for word in ("--case", case)),
        *("--producers", 3, "--consumers", 2, "--payload", payload),
        *("--in-flight", 20, "--window", 2, "--seconds", 1, "--json", path),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    assert all(row["valid"] for row in rows.values())
    assert {case for case, _ in rows} == set(cases)


@needs_rabbitmq
def test_a_peer_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "oslo.json"
    ended = bench(
        *("oslo", *SHORT, "--only", "rates", "--operation", "call", "--peer", "rabbitmq"),
        *("--json", path),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = summaries(path)
    assert rows["call native", "rabbitmq"]["valid"]
    peer = json.loads(path.read_text())["settings"]["peers"][0]
    assert peer["present"]
    assert peer["version"].startswith("RabbitMQ ")
    assert "calls per second ÷ rabbitmq" in ended.stdout
    # A goal is for the library's own clients; of ours it is only told.
    assert "broker CPU per call ÷ rabbitmq ≤" not in ended.stdout
    assert "(its goal is for the Python client)" in ended.stdout
    # Its directory is in its arguments.
    assert not [line for line in commands() if "crosstie-bench-" in line and "rabbitmq" in line]


@needs_rabbitmq
def test_a_bench_that_is_killed_takes_its_peer_along() -> None:
    process = subprocess.Popen(
        [binary(), "bench", "oslo", "--only", "rates", "--peer", "rabbitmq", "--seconds", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("rabbitmq: "):
            break
    else:
        pytest.fail(f"it has started no peer: {''.join(said)}")
    mark = f"crosstie-bench-{process.pid}-"
    assert [line for line in commands() if mark in line and "beam" in line]
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while [line for line in commands() if mark in line]:
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("oslo", "--url", "http://127.0.0.1"), "rabbit://USER:PASSWORD@HOST:PORT/VHOST"),
        (("oslo", "--url", "rabbit://127.0.0.1:1"), "Connection refused"),
        (("oslo", "--topology", "far"), "together, remote-client or remote-server"),
        (("oslo", "--delays", "50"), "a time has a unit"),
        (("oslo", "--peer", "qpid"), "the peer that can be started is rabbitmq"),
        (("oslo", "--python", "/nonexistent/python3"), "it does not run"),
        (("amqp", "--payload", 5), "--payload is 12 to"),
        (("amqp", "--window", 2000), "--window is 1 to what --outstanding allows"),
        (
            ("amqp", "--case", "lazy"),
            "a case is transient, priorities, durable, transactions, paced or durable-kept",
        ),
        (("amqp", "--url", "amqps://127.0.0.1"), "without TLS"),
    ],
)
def test_senseless_options_are_refused(arguments: tuple, expected: str) -> None:
    ended = bench(*arguments)
    assert ended.returncode == 2, ended
    assert expected in " ".join(ended.stderr.split()), ended.stderr


def test_a_python_without_the_library_is_refused(tmp_path: Path) -> None:
    lonely = tmp_path / "python3"
    lonely.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    lonely.chmod(0o755)
    ended = bench("oslo", "--python", lonely)
    assert ended.returncode == 2
    assert "pip install oslo.messaging" in ended.stderr


def test_a_stranger_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(100)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        ended = bench("amqp", "--url", f"amqp://127.0.0.1:{listener.getsockname()[1]}")
    assert ended.returncode == 2
    assert "a frame of type 72" in ended.stderr
