"""`bench stream` and `bench accept`: what they measure, and what they refuse to."""

from __future__ import annotations

import re
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from rig.benches import summaries
from rig.router import binary
from rig.windows import widening


def bench(*arguments: object, descriptors: int | None = None, timeout: float = 60):
    """Run a bench to its end."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return subprocess.run(
        [str(binary()), "bench", *map(str, arguments)],
        text=True,
        capture_output=True,
        timeout=timeout,
        preexec_fn=limit,
        stdin=subprocess.DEVNULL,
    )


# As short as a round can be: nothing here looks at how fast anything is.
ROUND = ("--runs", 1, "--warm-up", 0.01, "--placement", "same-core")
SECONDS = 0.02
SHORT = (*ROUND, "--seconds", SECONDS)


@pytest.fixture
def server() -> Iterator[Callable[..., str]]:
    """Start servers in this process, one thread for each connection."""
    listeners: list[socket.socket] = []

    def start(serve: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        listeners.append(listener)

        def guarded(peer: socket.socket) -> None:
            with peer, suppress(OSError):
                serve(peer)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    threading.Thread(target=guarded, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def echo(peer: socket.socket) -> None:
    while octets := peer.recv(65536):
        peer.sendall(octets)


def discard(peer: socket.socket) -> None:
    while peer.recv(65536):
        pass


def speak_http(peer: socket.socket) -> None:
    peer.recv(1)
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    peer.shutdown(socket.SHUT_WR)
    discard(peer)


def nobody() -> str:
    """Return an address where nothing listens, of the ports that a connection can get itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"


# --- bench stream


def is_measured(row: dict) -> bool:
    """Tell whether a row has figures; on a busy machine a floor may be suspect, no fault here."""
    return row["valid"] or row["why"].startswith("floor suspect")


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_every_test_against_the_testee(kind, tmp_path):
    results = tmp_path / "results.json"
    modes = ("--mode", "echo", "--mode", "discard", "--mode", "chargen")

    def measure(seconds: float):
        done = bench(
            *("stream", "--socket", kind, *modes, *ROUND),
            *("--seconds", seconds, "--json", results),
        )
        assert done.returncode == 0, done.stderr
        return done, summaries(results)

    def is_enough(measured: tuple) -> bool:
        """Whether each server had its turn."""
        used = [
            row["metrics"].get("server_cpu_us_per_transaction")
            for (case, _), row in measured[1].items()
            if case.endswith("RR")
        ]
        return all(used)

    name = {"tcp": "TCP", "unix": "UDS"}[kind]
    done, rows = widening(SECONDS, measure, is_enough)
    for case in ("RR", "CRR"):
        for subject in ("crosstie", "floor", "floor, blocking"):
            row = rows[f"{name}_{case}", subject]
            assert is_measured(row), row
            assert row["metrics"]["transactions_per_s"] > 0
            assert row["metrics"]["server_cpu_us_per_transaction"] > 0
    for case in ("STREAM echo", "STREAM discard", "MAERTS"):
        row = rows[f"{name}_{case}", "crosstie"]
        assert row["valid"], row
        assert row["metrics"]["bytes"] > 0
        assert "megabits_per_s_over_floor" in row["metrics"]
    # Lines that a user of netperf looks for.
    assert re.search(rf"^{name} REQUEST/RESPONSE TEST to .*: no control", done.stdout, re.M)
    assert re.search(r"^bytes  Bytes  bytes    bytes   secs\.    per sec$", done.stdout, re.M)
    assert re.search(r"^bytes  bytes   bytes    secs\.    10\^6bits/sec$", done.stdout, re.M)
    assert "echoed bytes count" in done.stdout
    assert "what the server read counts" in done.stdout


def test_an_external_server(server, tmp_path):
    results = tmp_path / "results.json"
    address = server(echo)
    done = bench("stream", "--connect", address, "-r", 64, *SHORT, "--json", results)
    assert done.returncode == 0, done.stderr
    rows = summaries(results)
    for case in ("TCP_RR", "TCP_STREAM echo", "TCP_CRR"):
        row = rows[case, address]
        assert row["valid"], row
        # The process was not given.
        assert not any(name.startswith("server_cpu") for name in row["metrics"])
    done = bench("stream", "--connect", server(discard), "--mode", "discard", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "TCP_STREAM discard" in done.stdout


@pytest.mark.parametrize(
    ("serve", "arguments", "expected"),
    [
        (speak_http, ("-t", "TCP_RR"), "not an echo"),
        (speak_http, ("-t", "TCP_STREAM"), "not an echo"),
        (speak_http, ("-t", "TCP_CRR", "-r", "4"), "got `HTTP`"),
        (echo, ("--mode", "discard"), "no server that discards"),
        (discard, ("-t", "TCP_STREAM"), "before the server closed"),
    ],
)
def test_a_server_of_another_mode(server, serve, arguments, expected):
    done = bench("stream", "--connect", server(serve), *arguments, *SHORT)
    assert done.returncode == 2, done.stdout
    assert expected in done.stderr, done.stderr
    assert "per s" not in done.stdout


def test_no_listener():
    """Neither a connection that finds itself, nor a figure."""
    for test in ("TCP_RR", "TCP_STREAM", "TCP_CRR", "TCP_MAERTS"):
        arguments = ("--mode", "chargen") if test == "TCP_MAERTS" else ()
        done = bench("stream", "--connect", nobody(), "-t", test, *arguments, *SHORT)
        assert done.returncode == 2
        assert "nothing listens there" in done.stderr, done.stderr
        assert not done.stdout


def test_a_server_that_stops_keeps_what_was_measured(server, tmp_path):
    """It answers the bench's probe and the driver's, then nothing more."""
    results = tmp_path / "results.json"
    served = 0

    def stops(peer: socket.socket) -> None:
        nonlocal served
        while octets := peer.recv(65536):
            served += len(octets)
            if served <= 2:
                peer.sendall(octets)

    address = server(stops)
    done = bench("stream", "--connect", address, "-t", "TCP_RR", *SHORT, "--json", results)
    assert done.returncode == 1, done.stderr
    rows = summaries(results)
    assert not rows["TCP_RR", address]["valid"]
    assert "the server stopped answering" in rows["TCP_RR", address]["why"]
    assert is_measured(rows["TCP_RR", "floor"])
    assert "not counted" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-r", "1,64"), "give one size"),
        (("-t", "UDP_RR"), "a test is TCP_RR"),
        (("-t", "TCP_RR", "--mode", "discard"), "needs a server of --mode echo"),
        (("--connect", "127.0.0.1:9"), "begins with tcp://"),
        (("--connect", "tcp://127.0.0.1:9", "-t", "UDS_RR"), "kind of socket"),
        (("--runs", "0"), "--runs"),
    ],
)
def test_unavailable_combinations(arguments, expected):
    done = bench("stream", *arguments)
    assert done.returncode == 2
    assert expected in done.stderr, done.stderr


def test_an_absent_peer_is_said_to_be(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    done = bench("stream", "-t", "TCP_RR", "--peer", "netserver", *SHORT)
    assert done.returncode == 1, done.stderr
    assert "netserver: absent" in done.stdout
    assert "https://github.com/HewlettPackard/netperf" in done.stdout


# --- bench accept


def test_connections_are_opened_held_and_echoed(tmp_path):
    results = tmp_path / "results.json"
    done = bench(
        *("accept", "--connections", 2500, "--batch", 500, "--delay", "10ms", "--workers", 2),
        *("--clients", 3, "--hold", "0.1s", "--floor", "--json", results),
    )
    assert done.returncode == 0, done.stderr
    for line in (
        "Creating 2500 connections",
        "1000 connections created",
        "2000 connections created",
        "2500 connections created",
        "All connections in progress",
        "2500 established. 0 failed.",
        "One byte on each: 2500 echoed, 0 wrong, 0 missing",
    ):
        assert re.search(f"^{line}", done.stdout, re.MULTILINE), line
    assert re.search(r"^All connections complete in \d+ms$", done.stdout, re.MULTILINE)
    assert "3 client process(es) from 127.0.0.2 to 127.0.0.4" in done.stdout
    rows = summaries(results)
    for subject in ("crosstie", "floor"):
        row = rows["accept", subject]
        assert row["valid"], row
        assert row["metrics"]["established"] == 2500
        assert row["metrics"]["echoed"] == {"right": 2500, "wrong": 0, "missing": 0}
        assert "server_bytes_per_connection" in row["metrics"]


def test_return_closes_held_connections():
    command = [str(binary()), "bench", "accept", "--connections", "100", "--hold", "--no-echo"]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin
        assert running.stdout
        for line in running.stdout:
            if line.startswith("Press return"):
                break
        running.stdin.write("\n")
        running.stdin.flush()
        assert "100" in running.stdout.read()
        assert running.wait() == 0


def test_an_interrupt_tells_what_was_there(tmp_path):
    results = tmp_path / "results.json"
    command = [str(binary()), "bench", "accept", "--connections", "100000", "--batch", "10"]
    command += ["--clients", "8", "--workers", "8", "--delay", "100ms", "--json", str(results)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as running:
        assert running.stdout
        for line in running.stdout:
            if line.startswith("Creating"):
                break
        running.send_signal(signal.SIGINT)
        text = running.stdout.read()
        assert running.wait() == 130
    assert re.search(r"^\d+ established. 0 failed.$", text, re.MULTILINE), text
    assert "stopped after" in summaries(results)["accept", "crosstie"]["why"]


def test_a_server_that_does_not_echo(server):
    for serve, expected in ((speak_http, "not an echo"), (lambda peer: None, "echoed nothing")):
        done = bench("accept", "--connect", server(serve), "--connections", 20, "--delay", 0)
        assert done.returncode == 1, done.stderr
        assert expected in done.stdout, done.stdout


def test_no_server_to_hold_connections():
    done = bench("accept", "--connect", nobody(), "--connections", 20, "--delay", 0)
    assert done.returncode == 2
    assert "nothing listens there" in done.stderr
    assert not done.stdout


def test_too_few_descriptors():
    """The limit to raise is named before anything is opened."""
    arguments = ("accept", "--connections", 1000, "--workers", 1)
    done = bench(*arguments, descriptors=500)
    assert done.returncode == 2
    assert "Use --workers 3" in done.stderr, done.stderr
    assert "ulimit -Hn 1064" in done.stderr
    assert not done.stdout


def test_few_descriptors_take_more_processes():
    done = bench("accept", "--connections", 600, "--delay", 0, descriptors=256)
    assert done.returncode == 0, done.stdout
    assert "4 client process(es)" in done.stdout
