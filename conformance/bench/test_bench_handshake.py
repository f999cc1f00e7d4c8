"""`bench handshake`, `analyze` and `bench echo`: their forms, and servers that misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig.router import binary

WAIT_S = 60


def crosstie(*arguments: object, **more):
    """Run a command to its end."""
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, text=True, capture_output=True, timeout=WAIT_S, **more)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def testee() -> Iterator[str]:
    """The URL of one testee for the whole file."""
    url = f"ws://127.0.0.1:{free_port()}"
    command = [str(binary()), "testee", "websocket", "--url", url, "--workers", "1", "--silence"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening on" in line:
                break
        yield url
        process.terminate()


# --- the log and its table

TABLE = r"""
wsperf results - WebSocket Opening Handshake

          Duration:  {n} ms
             Total:  {n}
           Success:  {n}
              Fail:  {n}
            Fail %:  {f}
    Handshakes/sec:  {n}

     Min:  {t} ms
      SD:  {t} ms
     Avg:  {t} ms
  Median:  {t} ms
  q90   :  {t} ms
  q95   :  {t} ms
  q99   :  {t} ms
  q99.9 :  {t} ms
  q99.99:  {t} ms
     Max:  {t} ms


"""


def is_the_documents(text: str) -> bool:
    """Every figure is right-aligned in nine columns."""
    pattern = (
        re.escape(TABLE).replace(r"\ \ \{", r"\ \{").replace(r"\{n\}", r"(?=.{9}( ms)?\n) *\d+")
    )
    pattern = pattern.replace(r"\{f\}", r"(?=.{9}\n) *\d+\.\d\d")
    pattern = pattern.replace(r"\{t\}", r"(?=.{9} ms\n) *\d+\.\d")
    return re.fullmatch(pattern, text) is not None


def test_a_run_as_wsperf_makes_it(testee, tmp_path):
    done = crosstie("bench", "handshake", testee, 2, 300, 20, 40)
    assert done.returncode == 0, done.stderr
    assert "driver: " in done.stderr
    assert " µs per connection" in done.stderr
    log = json.loads(done.stdout)
    assert list(log) == [
        "total_duration",
        "started",
        "ended",
        "handshake_throttle_count",
        "handshake_resume_count",
        "connection_stats",
    ]
    assert log["ended"] - log["started"] == log["total_duration"]
    connections = log["connection_stats"]
    assert len(connections) == 300
    for connection in connections:
        assert list(connection) == ["tcp_pre_init", "tcp_post_init", "open", "close", "failed"]
        assert connection["failed"] is False
        assert 0 < connection["open"] <= log["total_duration"]
    file = tmp_path / "results.json"
    file.write_text(done.stdout)
    table = crosstie("analyze", file)
    assert table.returncode == 0, table.stderr
    assert is_the_documents(table.stdout), table.stdout
    assert "             Total:       300\n" in table.stdout


def test_logs_in_files_are_joined(testee, tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        done = crosstie("bench", "handshake", testee, 0, 50, 5, 10, "-o", file)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
    table = crosstie("analyze", *files).stdout
    assert "           Success:       100\n" in table
    assert is_the_documents(table), table


def test_wsperfs_own_log_counts_nanoseconds(tmp_path):
    one = '{"tcp_pre_init":-7,"tcp_post_init":2,"open":15831,"close":38388,"failed":false}'
    # Negative and huge: what wsperf writes for a connection that never was.
    failed = '{"tcp_pre_init":-99,"tcp_post_init":0,"open":170000,"close":0,"failed":true}'
    log = (
        '{"total_duration":2000000,"started":1700000000000000000,"ended":1700000002000300000,'
        f'"handshake_throttle_count":1,"handshake_resume_count":1,"connection_stats":[{one},{failed}]}}'
    )
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        file.write_text(log)
    for given, duration in (files[:1], 2000), (files, 2000):
        table = crosstie("analyze", *given).stdout
        assert f"          Duration: {duration:9} ms\n" in table
        assert "            Fail %:     50.00\n" in table
        assert "     Max:      15.8 ms\n" in table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1 column 0"),
        ('{"total_duration":12,\n"started":', "line 2 column 10"),
        ("[]", "line 1"),
        ('{"bench":"rpc"}', "missing field `total_duration`"),
    ],
)
def test_a_damaged_log_is_named_with_the_place(tmp_path, text, expected):
    whole = tmp_path / "damaged.json"
    whole.write_text(text)
    done = crosstie("analyze", whole)
    assert done.returncode == 2
    assert str(whole) in done.stderr
    assert expected in done.stderr


def test_a_log_that_is_not_there():
    done = crosstie("analyze", "/nonexistent/results.json")
    assert done.returncode == 2
    assert "/nonexistent/results.json: No such file" in done.stderr


# --- servers that misbehave

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def shake_hands(stream: socket.socket, guid: bytes = GUID) -> None:
    """Answer an opening handshake; with another GUID, wrongly."""
    head = b""
    while b"\r\n\r\n" not in head:
        octets = stream.recv(4096)
        if not octets:
            return
        head += octets
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", head)[1]
    accept = base64.b64encode(hashlib.sha1(key + guid).digest())
    stream.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def frames(stream: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Read short masked frames."""
    with stream.makefile("rb") as octets:
        while head := octets.read(2):
            length = head[1] & 0x7F
            if length == 126:
                (length,) = struct.unpack("!H", octets.read(2))
            mask = octets.read(4)
            payload = octets.read(length)
            yield head[0], bytes(octet ^ mask[at % 4] for at, octet in enumerate(payload))


def close_properly(stream: socket.socket) -> None:
    shake_hands(stream)
    for head, payload in frames(stream):
        stream.sendall(bytes([head, len(payload)]) + payload)
        if head == 0x88:
            return


@contextmanager
def serving(*handlers: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a server whose first connections get a handler each and all others the last one."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    ended = threading.Event()

    def handle(stream: socket.socket, handler: Callable[[socket.socket], None]) -> None:
        with stream:
            try:
                handler(stream)
            except OSError:
                return

    def accept() -> None:
        number = 0
        while not ended.is_set():
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            handler = handlers[min(number, len(handlers) - 1)]
            number += 1
            threading.Thread(target=handle, args=(stream, handler), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def mute(stream: socket.socket) -> None:
    while stream.recv(4096):
        pass


def never_closing(stream: socket.socket) -> None:
    shake_hands(stream)
    mute(stream)


def saying(octets: bytes) -> Callable[[socket.socket], None]:
    def say(stream: socket.socket) -> None:
        stream.sendall(octets)
        mute(stream)

    return say


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (saying(b"SSH-2.0-OpenSSH_9.2\r\n"), "began with `SSH-2.0-OpenSSH_9.2`"),
        (saying(b"HTTP/1.1 404 Not Found\r\n\r\n"), "expected HTTP status 101, got 404"),
        (saying(b"* OK IMAP"), "`* OK IMAP`"),
        (lambda stream: shake_hands(stream, b"x"), "Sec-WebSocket-Accept"),
        (lambda stream: None, "closed the connection"),
        (mute, "no whole answer to the opening handshake arrived within 0.3 s"),
        (never_closing, "no answer to a close frame arrived within 0.3 s"),
    ],
)
def test_a_server_of_another_protocol_is_named_at_once(handler, expected):
    with serving(handler) as url:
        done = crosstie("bench", "handshake", url, 1, 1000, 10, 20, "--timeout", 0.3)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stdout == ""


def test_no_listener():
    url = f"ws://127.0.0.1:{free_port()}"
    for command in (
        ("handshake", url, 1, 10, 1, 2),
        ("handshake", "--url", url, "--runs", 1),
        ("echo", "--url", url, "--runs", 1),
    ):
        done = crosstie("bench", *command)
        assert done.returncode == 2
        assert f"nothing listens on {url}/" in done.stderr
        assert "crosstie testee websocket" in done.stderr


def test_a_server_that_stops_leaves_partial_results(tmp_path):
    """It answers the probe and a few, then no client any more."""
    file = tmp_path / "partial.json"
    with serving(*[close_properly] * 6, mute) as url:
        done = crosstie("bench", "handshake", url, 1, 10_000, 2, 4, "--timeout", 0.2, "-o", file)
    assert done.returncode == 1
    assert "no answer to the opening handshake within 0.2 s" in done.stderr
    assert "gave up" in done.stderr
    failed = [each["failed"] for each in json.loads(file.read_text())["connection_stats"]]
    assert failed.count(False) == 5
    assert 10 <= failed.count(True) < 100
    assert is_the_documents(crosstie("analyze", file).stdout)


def test_a_server_that_leaves_closing_to_its_client():
    def linger(stream: socket.socket) -> None:
        close_properly(stream)
        mute(stream)

    with serving(linger) as url:
        done = crosstie("bench", "handshake", url, 1, 20, 10, 20, "--timeout", 0.5)
    assert done.returncode == 0, done.stderr
    assert "20 connections were closed by us, 0.5 s after" in done.stderr


def test_too_few_descriptors(testee):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))

    # The soft limit is raised by itself, the hard one is for the user to raise.
    done = crosstie("bench", "handshake", testee, 1, 400, 150, 300, preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    done = crosstie("bench", "handshake", testee, 1, 400, 150, 390, preexec_fn=limit)
    assert done.returncode == 2
    assert "raise the hard limit" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["ws://127.0.0.1:1"], "required"),
        (["ws://127.0.0.1:1", 1, 10, 20, 10], "LOW is at most HIGH"),
        (["ws://127.0.0.1:1", 1, 0, 1, 2], "CONNECTIONS"),
        (["rs://127.0.0.1:1", 1, 10, 1, 2], "begins with ws://"),
        (["--scaling", "0"], "--scaling"),
        (["--peer", "crossbar"], "autobahn"),
        (["--pid", 1], "--pid goes with a --url"),
    ],
)
def test_arguments_that_make_no_sense(arguments, expected):
    done = crosstie("bench", "handshake", *arguments)
    assert done.returncode == 2
    assert expected in done.stderr


# --- comparisons


def compared(tmp_path: Path, *arguments: object, code: int = 0) -> tuple[str, dict]:
    file = tmp_path / "frame.json"
    short = ["--runs", 1, "--seconds", 0.2, "--placement", "same-core", "--json", file]
    done = crosstie("bench", *arguments, *short)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, json.loads(file.read_text())


def rows_of(frame: dict) -> dict:
    return {row["subject"]: row for row in frame["results"] if "round" not in row}


def test_the_testee_beside_floor_and_peer(tmp_path):
    said, frame = compared(
        tmp_path,
        "handshake",
        "--in-flight",
        20,
        "--peer",
        "autobahn",
        "--peer-python",
        sys.executable,
    )
    assert frame["bench"] == "handshake"
    rows = rows_of(frame)
    assert set(rows) == {"crosstie", "floor", "autobahn"}
    for row in rows.values():
        assert row["valid"], row
        assert row["placement"] == "same-core"
        for name in (
            "handshakes_per_s",
            "server_cpu_us_per_handshake",
            "driver_cpu_us_per_handshake",
            "open_p50_us",
            "open_p99_us",
        ):
            assert row["metrics"][name] >= 0, name
    assert "server_cpu_us_per_handshake_over_floor" in rows["crosstie"]["metrics"]
    assert re.search(r"^ crosstie +[\d,]+", said, re.MULTILINE)
    assert "handshakes/s ÷ floor ≥ 0.95" in said


def test_a_peer_that_is_absent(tmp_path):
    peer = ("--peer", "autobahn", "--peer-python", "/nonexistent/python")
    said, frame = compared(tmp_path, "handshake", *peer, code=1)
    assert set(rows_of(frame)) == {"crosstie", "floor"}
    assert "pip install autobahn" in said
    assert re.search(r"^ autobahn +absent", said, re.MULTILINE)


@pytest.mark.parametrize("more", [[], ["--text", "--payload", 300], ["--payload", 100_000]])
def test_echoes_are_checked_and_counted(tmp_path, more):
    said, frame = compared(tmp_path, "echo", "--connections", 4, *more)
    rows = rows_of(frame)
    assert set(rows) == {"crosstie", "floor"}
    for row in rows.values():
        assert row["valid"], row
        assert row["metrics"]["messages"] > 0
        assert row["metrics"]["rtt_p99_us"] >= row["metrics"]["rtt_p50_us"] > 0
        # On a crowded machine the accounts of so short a round may show nothing.
        assert row["metrics"]["server_cpu_us_per_message"] >= 0
    assert "messages/s ÷ floor ≥ 0.60" in said


def test_a_wrong_echo_does_not_count(tmp_path):
    def corrupt(stream: socket.socket) -> None:
        shake_hands(stream)
        for number, (head, payload) in enumerate(frames(stream)):
            echo = payload[:-1] + b"!" if number == 7 else payload
            stream.sendall(bytes([head, len(echo)]) + echo)
            if head == 0x88:
                return

    file = tmp_path / "frame.json"
    with serving(corrupt) as url:
        done = crosstie(
            *("bench", "echo", url, "--connections", 1, "--outstanding", 1),
            *("--runs", 1, "--seconds", 0.2, "--placement", "free", "--json", file),
        )
    assert done.returncode == 1
    assert f"not counted: {url}/: round 1: 1 wrong" in done.stdout
    row = rows_of(json.loads(file.read_text()))[f"{url}/"]
    assert not row["valid"]
    assert "messages_per_s" not in row["metrics"]


def test_more_workers_than_cores_have_no_figure(tmp_path):
    file = tmp_path / "frame.json"
    done = crosstie(
        *("bench", "handshake", "--scaling", "1,200", "--scaling-connections", 200),
        *("--runs", 2, "--json", file),
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ 200 +driver-bound", done.stdout, re.MULTILINE)
    assert re.search(r"^ 1 .*8,986 +130\.8 +1\.00$", done.stdout, re.MULTILINE)
    tables = done.stdout.count("wsperf results - WebSocket Opening Handshake")
    many = {row["case"]: row for row in json.loads(file.read_text())["results"]}["workers-200"]
    assert not many["valid"]
    assert many["why"].startswith("driver-bound")
    # A machine with one core has none left for the driver even of one worker.
    assert tables in (0, 2)
