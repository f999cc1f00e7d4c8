"""`crosstie testee`: what is sent comes back, within bounds, from a number of processes."""

from __future__ import annotations

import os
import re
import resource
import select
import signal
import socket
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.plain import Plain
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, WebSocket, payload_length

MIB = 1 << 20

# What may come into memory for a peer that does not read, beside what the program has at its start.
MEMORY_GROWTH_BYTES_MAX = 12 * MIB


class Testee:
    """A running testee."""

    __test__ = False

    def __init__(self, *arguments: object):
        self.process = subprocess.Popen(
            [str(binary()), "testee", *map(str, arguments)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.fullmatch(r"crosstie testee: listening on (\w+)://(.+)\n", line)
        assert found, line + self.process.stderr.read()
        self.place = found[2]
        self.memory_at_start = self.memory()
        # Later output must not fill the pipes.
        self.errors: list[str] = []
        self.blocks: list[str] = []
        threading.Thread(target=self._read_errors, daemon=True).start()
        threading.Thread(target=self._read_blocks, daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Return where it listens."""
        host, port = self.place.rsplit(":", 1)
        return host, int(port)

    def processes(self) -> list[int]:
        """Return the ids of the processes that serve."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [int(child) for child in children] or [own]

    def memory(self) -> int:
        """Return the bytes that the processes have resident."""
        page = resource.getpagesize()
        pages = (Path(f"/proc/{each}/statm").read_text().split()[1] for each in self.processes())
        return page * sum(map(int, pages))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it as an operator would; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def _read_blocks(self) -> None:
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "\n" and lines[-2] == RULE and len(lines) > 2:
                self.blocks.append("".join(lines))
                lines = []


RULE = "-" * 80 + "\n"


@pytest.fixture
def start() -> Iterator[Callable[..., Testee]]:
    """Start testees; those that still run after the test must end cleanly."""
    running: list[Testee] = []

    def start_(*arguments: object) -> Testee:
        running.append(Testee(*arguments))
        return running[-1]

    yield start_
    for testee in running:
        if testee.process.poll() is None:
            assert testee.stop() == 0, testee.errors
        assert not [line for line in testee.errors if "panicked" in line], testee.errors


@pytest.fixture(scope="module")
def shared() -> Iterator[Testee]:
    """One for all tests that leave it as it was."""
    testee = Testee(
        "websocket",
        "--url=ws://127.0.0.1:0",
        "--compress",
        "--silence",
        f"--message-bytes-max={17 * MIB}",
    )
    yield testee
    assert testee.stop() == 0


@pytest.fixture
def peer(shared) -> Iterator[WebSocket]:
    """A WebSocket to the shared testee, without compression."""
    with WebSocket.tcp(shared.address) as opened:
        status, headers, _ = opened.upgrade(None, "/any/path?and=query")
        assert status == 101
        assert "sec-websocket-protocol" not in headers
        assert "sec-websocket-extensions" not in headers
        yield opened


def close_frame(code: int, reason: bytes = b"") -> bytes:
    return code.to_bytes(2, "big") + reason


def pattern(length: int) -> bytes:
    """Return bytes that tell their place."""
    line = bytes(range(251))
    return (line * (length // len(line) + 1))[:length]


# --- WebSocket: messages ---


@pytest.mark.parametrize("length", [0, 1, 125, 126, 65_535, 65_536, 70_000, 16 * MIB])
def test_messages_come_back(peer, length):
    octets = pattern(length)
    # A quick way to mask: with the key of four zeroes.
    first, *rest = payload_length(length)
    header = bytes([0x80 | BINARY, 0x80 | first, *rest]) + bytes(4)
    sending = threading.Thread(target=peer.send, args=(header + octets,))
    sending.start()
    assert peer.receive_frame() == (BINARY, octets)
    sending.join()


def test_text_comes_back_as_text(peer):
    for text in ("", "Crosstie", "Grüße, κόσμε, 🛤"):
        peer.send_frame(TEXT, text.encode())
        assert peer.receive_frame() == (TEXT, text.encode())


def test_fragments_come_back_as_a_message(peer):
    """With control frames between them, and a character cut in two."""
    octets = "zwölf".encode()
    peer.send_frame(TEXT, octets[:3], fin=False)
    peer.send_frame(PING, b"between")
    assert peer.receive_frame() == (PONG, b"between")
    peer.send_frame(CONTINUATION, b"", fin=False)
    peer.send_frame(CONTINUATION, octets[3:])
    assert peer.receive_frame() == (TEXT, octets)


def test_a_pong_is_not_answered(peer):
    peer.send_frame(PONG, b"unasked for")
    peer.send_frame(PING, b"x" * 125)
    assert peer.receive_frame() == (PONG, b"x" * 125)


def test_many_messages_in_one_piece_come_back_in_order(peer):
    frames = [bytes([0x80 | BINARY, 0x84]) + bytes(4) + n.to_bytes(4, "big") for n in range(5000)]
    threading.Thread(target=peer.send, args=(b"".join(frames),)).start()
    for n in range(5000):
        assert peer.receive_frame() == (BINARY, n.to_bytes(4, "big"))


def test_octet_by_octet(peer):
    frame = bytes([0x80 | TEXT, 0x85]) + bytes(4) + "früh".encode()
    for at in range(len(frame)):
        peer.send(frame[at : at + 1])
    assert peer.receive_frame() == (TEXT, "früh".encode())


# --- WebSocket: compression ---


OFFERS = {
    "permessage-deflate": (15, True, "permessage-deflate"),
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover": (
        15,
        False,
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    ),
    "permessage-deflate; server_max_window_bits=9; client_max_window_bits": (
        9,
        True,
        "permessage-deflate; server_max_window_bits=9",
    ),
    "permessage-deflate; client_max_window_bits=10": (
        15,
        True,
        "permessage-deflate; client_max_window_bits=10",
    ),
    "permessage-deflate; unheard_of, permessage-deflate; server_max_window_bits=12": (
        12,
        True,
        "permessage-deflate; server_max_window_bits=12",
    ),
}


@pytest.mark.parametrize("offer", OFFERS)
def test_compressed_messages_come_back_compressed(shared, offer):
    window_bits, takeover, agreed = OFFERS[offer]
    with WebSocket.tcp(shared.address) as peer:
        status, headers, _ = peer.upgrade(None, Sec_WebSocket_Extensions=offer)
        assert status == 101
        assert headers["sec-websocket-extensions"] == agreed
        inflate = zlib.decompressobj(-window_bits)
        sizes = []
        octets = os.urandom(200) * 15
        for _ in range(3):
            deflate = zlib.compressobj(wbits=-9)
            compressed = deflate.compress(octets) + deflate.flush(zlib.Z_SYNC_FLUSH)
            peer.send_frame(BINARY, compressed[:-4], reserved=4)
            opcode, back = peer.receive_frame()
            sizes.append(len(back))
            assert opcode == BINARY
            assert inflate.decompress(back + b"\0\0\xff\xff") == octets
            if not takeover:
                inflate = zlib.decompressobj(-window_bits)
        assert sizes[0] < len(octets) // 2
        # With its memory, if that is not small, a compressor says the same again in a few bytes.
        assert (sizes[1] < sizes[0] // 2) == (takeover and window_bits > 9), sizes


def test_compression_is_off_unless_asked_for(start):
    testee = start("websocket", "--url=ws://localhost:0", "--silence")
    with WebSocket.tcp(testee.address) as peer:
        _, headers, _ = peer.upgrade(None, Sec_WebSocket_Extensions="permessage-deflate")
        assert "sec-websocket-extensions" not in headers
        peer.send_frame(TEXT, b"x", reserved=4)
        peer.expect_close(1002)


def test_a_bomb_is_measured_as_it_inflates(shared):
    deflate = zlib.compressobj(9, wbits=-15)
    bomb = deflate.compress(bytes(18 * MIB)) + deflate.flush(zlib.Z_SYNC_FLUSH)
    with WebSocket.tcp(shared.address) as peer:
        peer.upgrade(None, Sec_WebSocket_Extensions="permessage-deflate")
        peer.send_frame(BINARY, bomb[:-4], reserved=4)
        peer.expect_close(1009)


# --- WebSocket: closing, and faults ---


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"", b""),
        (close_frame(1000), close_frame(1000)),
        (close_frame(1001, b"going"), close_frame(1001)),
        (close_frame(3999, "späť".encode()), close_frame(3999)),
    ],
)
def test_a_close_is_answered(peer, said, answer):
    peer.send_frame(TEXT, b"first")
    peer.send_frame(CLOSE, said)
    assert peer.receive_frame() == (TEXT, b"first")
    assert peer.receive_frame() == (CLOSE, answer)
    peer.expect_end()


def test_bytes_after_a_close_are_not_echoed(peer):
    frames = [0x80 | CLOSE, 0x80, 0, 0, 0, 0, 0x80 | TEXT, 0x81, 0, 0, 0, 0, 0x78]
    peer.send(bytes(frames))
    assert peer.receive_frame() == (CLOSE, b"")
    peer.expect_end()


FAULTS = {
    "reserved bit": (1002, [(TEXT, b"x", {"reserved": 4})]),
    "reserved opcode": (1002, [(3, b"", {})]),
    "reserved control opcode": (1002, [(11, b"", {})]),
    "not masked": (1002, [(TEXT, b"x", {"masked": False})]),
    "ping in fragments": (1002, [(PING, b"", {"fin": False})]),
    "ping too long": (1002, [(PING, bytes(126), {})]),
    "continuation of nothing": (1002, [(CONTINUATION, b"x", {})]),
    "message within a message": (1002, [(TEXT, b"x", {"fin": False}), (TEXT, b"y", {})]),
    "length in a long form": (1002, [(TEXT, b"x", {"length": b"\x7e\0\1"})]),
    "close of one byte": (1002, [(CLOSE, b"x", {})]),
    "close code 1005": (1002, [(CLOSE, close_frame(1005), {})]),
    "close code 999": (1002, [(CLOSE, close_frame(999), {})]),
    "close code 2999": (1002, [(CLOSE, close_frame(2999), {})]),
    "close reason not UTF-8": (1007, [(CLOSE, close_frame(1000, b"\xff"), {})]),
    "text not UTF-8": (1007, [(TEXT, b"\xce\xba\xff", {})]),
    "text that ends in a character": (1007, [(TEXT, b"\xce", {})]),
    "surrogate": (1007, [(TEXT, b"\xed\xa0\x80", {})]),
    # Before the message is whole: its rest never comes.
    "wrong text in a fragment": (1007, [(TEXT, b"\xf4\x90", {"fin": False})]),
    "wrong text at a frame's start": (1007, [(TEXT, b"\xf4\x90", {"length": b"\x7e\x10\0"})]),
    "message too long": (1009, [(BINARY, b"", {"length": b"\x7f\0\0\0\0\1\x10\0\1"})]),
    "fragments too long": (
        1009,
        [
            (BINARY, bytes(MIB), {"fin": False}),
            (CONTINUATION, b"", {"length": b"\x7f\0\0\0\0\1\0\0\1"}),
        ],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told(peer, fault):
    code, frames = FAULTS[fault]
    peer.send_frame(TEXT, b"before")
    for opcode, octets, how in frames:
        peer.send_frame(opcode, octets, **how)
    assert peer.receive_frame() == (TEXT, b"before")
    peer.expect_close(code)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (426, {"Upgrade": None}),
        (426, {"Sec_WebSocket_Version": "12"}),
        (400, {"Sec_WebSocket_Key": "short"}),
        (400, {"Sec_WebSocket_Key": None}),
        (400, {"Connection": "close"}),
        (431, {"X": "x" * 33_000}),
    ],
)
def test_requests_that_open_no_websocket(shared, status, headers):
    with WebSocket.tcp(shared.address) as peer:
        assert peer.upgrade(None, **headers)[0] == status
        peer.expect_end()


def test_something_else_than_http(shared):
    with WebSocket.tcp(shared.address) as peer:
        peer.send(b"\x7f\xf3\0\0 RawSocket is not spoken here\r\n\r\n")
        assert peer.response()[0] == 400


def test_a_request_in_pieces(shared):
    with WebSocket.tcp(shared.address) as peer:
        request = (
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        for at in range(0, len(request), 7):
            peer.send(request[at : at + 7])
        status, headers, _ = peer.response()
        assert status == 101
        assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


# --- Bounds ---


def flood(peer: Plain, octets: bytes, count: int) -> int:
    """Send and read nothing, until no more is taken for a while; return how much was."""
    peer.socket.setblocking(False)
    sent = 0
    while sent < count:
        if not select.select([], [peer.socket], [], 1)[1]:
            break
        sent += peer.socket.send(octets[sent % len(octets) :])
    peer.socket.settimeout(DEADLINE_S)
    return sent


def check_flood(testee: Testee, peer: Plain, octets: bytes, per_portion: int, count: int) -> None:
    """Send `count` portions in all, and read them only when no more is taken."""
    total = count * len(octets)
    sent = flood(peer, octets, total)
    assert sent < total, "everything was taken from a peer that does not read"
    assert testee.memory() - testee.memory_at_start < MEMORY_GROWTH_BYTES_MAX

    def send_rest() -> None:
        nonlocal sent
        while sent < total:
            rest = octets[sent % len(octets) :][: total - sent]
            peer.socket.sendall(rest)
            sent += len(rest)

    sending = threading.Thread(target=send_rest)
    sending.start()
    received = 0
    while received < count * per_portion:
        more = peer.socket.recv(MIB)
        assert more, f"closed after {received} bytes"
        received += len(more)
    sending.join()
    assert received == count * per_portion
    assert testee.memory() - testee.memory_at_start < MEMORY_GROWTH_BYTES_MAX


def test_a_stream_that_is_not_read_is_held_back(start):
    testee = start("stream", "--listen=tcp://127.0.0.1:0")
    with Plain.tcp(testee.address) as peer:
        check_flood(testee, peer, bytes(MIB), MIB, 200)


def test_a_websocket_that_is_not_read_is_held_back(start):
    testee = start("websocket", "--url=ws://127.0.0.1:0", "--silence")
    message = bytes([0x80 | BINARY, 0xFE, 0x10, 0x00]) + bytes(4) + bytes(4096)
    with WebSocket.tcp(testee.address) as peer:
        assert peer.upgrade(None)[0] == 101
        check_flood(testee, peer, message * 256, (len(message) - 4) * 256, 190)


def test_a_little_that_inflates_to_much_is_held_back(start):
    testee = start("websocket", "--url=ws://127.0.0.1:0", "--silence", "--compress")
    deflate = zlib.compressobj(9, wbits=-15)
    octets = deflate.compress(bytes(MIB)) + deflate.flush(zlib.Z_SYNC_FLUSH)
    octets = octets[:-4]
    frame = bytes([0xC0 | BINARY, 0xFE]) + len(octets).to_bytes(2, "big") + bytes(4) + octets
    with WebSocket.tcp(testee.address) as peer:
        # Its own answers come as they are: this side does not offer to inflate much.
        peer.upgrade(
            None, Sec_WebSocket_Extensions="permessage-deflate; server_no_context_takeover"
        )
        threading.Thread(target=peer.send, args=(frame * 50,)).start()
        for _ in range(50):
            opcode, back = peer.receive_frame()
            assert opcode == BINARY
            inflated = zlib.decompressobj(-15).decompress(back + b"\0\0\xff\xff")
            assert inflated == bytes(MIB)
        assert testee.memory() - testee.memory_at_start < MEMORY_GROWTH_BYTES_MAX


def test_characters_are_made_only_as_they_are_taken(start):
    testee = start("stream", "--listen=tcp://127.0.0.1:0", "--mode=chargen")
    with Plain.tcp(testee.address) as peer:
        await_true("the socket is full", lambda: is_idle(testee))
        assert testee.memory() - testee.memory_at_start < MEMORY_GROWTH_BYTES_MAX
        first = "".join(map(chr, range(32, 127)))
        for line in range(20_000):
            expected = (first[line % 95 :] + first)[:72]
            assert peer.receive_until(b"\r\n") == f"{expected}\r\n".encode(), line
        # Half a connection is no user any more: nothing is sent without end.
        peer.finish()
        while len(peer.socket.recv(MIB)):
            pass


def is_idle(testee: Testee) -> bool:
    """Whether the processes use no more of a processor while the scheduler counts a tick."""

    def used() -> list[str]:
        stats = [Path(f"/proc/{each}/stat").read_text() for each in testee.processes()]
        return [" ".join(stat.rsplit(")", 1)[1].split()[11:13]) for stat in stats]

    before = used()
    threading.Event().wait(0.1)
    return used() == before


# --- Streams ---


@pytest.fixture(params=["tcp", "unix"])
def stream(request, start, tmp_path) -> tuple[Testee, Callable[[], Plain]]:
    """An echo, and how to reach it."""
    if request.param == "unix":
        path = tmp_path / "echo.sock"
        testee = start("stream", f"--listen=unix://{path}")
        assert testee.place == str(path)
        return testee, lambda: Plain.unix(path)
    testee = start("stream", "--listen=tcp://127.0.0.1:0")
    return testee, lambda: Plain.tcp(testee.address)


def test_octets_come_back_then_the_end(stream):
    _, connect = stream
    with connect() as peer:
        for octets in (b"x", b"\0\xff" * 50, pattern(100_000)):
            peer.send(octets)
            assert peer.receive(len(octets)) == octets
        sending = threading.Thread(target=lambda: (peer.send(pattern(3 * MIB)), peer.finish()))
        sending.start()
        assert peer.receive_all() == pattern(3 * MIB)
        sending.join()


def test_a_request_a_connection(stream):
    """The exchange of netperf without a control connection: its end is answered with ours."""
    _, connect = stream
    for _ in range(50):
        with connect() as peer:
            peer.send(b"x")
            assert peer.receive(1) == b"x"
            peer.finish()
            assert peer.receive_all() == b""


def test_one_peer_does_not_disturb_another(stream):
    _, connect = stream
    with connect() as deaf, connect() as other, connect() as gone:
        flood(deaf, bytes(MIB), 20 * MIB)
        gone.send(b"x" * 100_000)
        gone.socket.close()
        other.send(b"still here")
        assert other.receive(10) == b"still here"


def test_octets_are_thrown_away(start):
    testee = start("stream", "--listen=tcp://127.0.0.1:0", "--mode=discard")
    with Plain.tcp(testee.address) as peer:
        peer.socket.sendall(bytes(64 * MIB))
        peer.finish()
        assert peer.receive_all() == b""
    assert testee.memory() - testee.memory_at_start < MEMORY_GROWTH_BYTES_MAX


def test_a_path_is_left_as_it_was_found(start, tmp_path):
    path = tmp_path / "echo.sock"
    testee = start("stream", f"--listen=unix://{path}")
    assert testee.stop() == 0
    assert not path.exists()


# --- Processes ---


def refused(*arguments: object) -> str:
    """Run a testee that must not start; return what it says."""
    command = [str(binary()), "testee", *map(str, arguments)]
    ended = subprocess.run(command, text=True, capture_output=True, timeout=DEADLINE_S)
    assert ended.returncode == 2, ended
    assert "panicked" not in ended.stderr
    return ended.stderr


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shares", [False, True])
def test_a_port_in_use(start, workers, shares):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refused("websocket", f"--url=ws://127.0.0.1:{port}", f"--workers={workers}")
        assert f"127.0.0.1:{port}: Address already in use" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("websocket", "--url=wss://127.0.0.1:1"), "expected ws://HOST:PORT"),
        (("websocket", "--url=ws://127.0.0.1:x"), "ws://127.0.0.1:x"),
        (("websocket", "--interval=0"), "at least 0.001"),
        (("stream", "--listen=127.0.0.1:1"), "expected tcp://HOST:PORT or unix://PATH"),
        (("stream", "--listen=unix://"), "expected unix://PATH"),
        (("stream", "--listen=unix:///x", "--workers=2"), "one worker"),
        (("stream", "--listen=unix:///nowhere/x"), "/nowhere/x"),
    ],
)
def test_arguments_that_mean_nothing(arguments, expected):
    assert expected in refused(*arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_signal_ends_all_of_it(start, number, workers):
    testee = start("websocket", "--url=ws://127.0.0.1:0", "--silence", f"--workers={workers}")
    processes = testee.processes()
    assert len(processes) == workers
    with WebSocket.tcp(testee.address) as peer:
        assert peer.upgrade(None)[0] == 101
        assert testee.stop(number) == 0
        peer.expect_end()
    assert not [each for each in processes if Path(f"/proc/{each}").exists()]


def test_a_worker_that_dies_is_missed(start):
    testee = start("stream", "--listen=tcp://127.0.0.1:0", "--workers=3")
    processes = testee.processes()
    os.kill(processes[1], signal.SIGKILL)
    assert testee.process.wait(DEADLINE_S) == 2
    await_true("it says so", lambda: bool(testee.errors))
    assert f"worker {processes[1]} ended (signal: 9 (SIGKILL))" in testee.errors[-1]
    assert not [each for each in processes if Path(f"/proc/{each}").exists()]


def test_workers_end_with_their_parent(start):
    testee = start("stream", "--listen=tcp://127.0.0.1:0", "--workers=2")
    processes = testee.processes()
    testee.process.kill()
    testee.process.wait()
    # They are another process's children now, which may take a while to reap them.
    await_true("the workers are gone", lambda: all(map(is_dead, processes)))


def is_dead(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("pinned", [True, False])
def test_workers_share_connections_and_cores(start, pinned):
    arguments = [] if pinned else ["--no-affinity"]
    testee = start("stream", "--listen=tcp://127.0.0.1:0", "--workers=4", *arguments)
    allowed = sorted(os.sched_getaffinity(0))
    processes = testee.processes()
    for at, process in enumerate(processes):
        expected = {allowed[at % len(allowed)]} if pinned else set(allowed)
        await_true(
            f"worker {at} is on {expected}",
            lambda process=process, expected=expected: os.sched_getaffinity(process) == expected,
        )
    peers = [Plain.tcp(testee.address) for _ in range(100)]
    for peer in peers:
        peer.send(b"x")
        assert peer.receive(1) == b"x"
    for process in processes:
        targets = (os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir())
        sockets = sum(target.startswith("socket:") for target in targets)
        assert sockets > 5, "a worker got next to none of the connections"
    for peer in peers:
        peer.close()


def test_too_few_descriptors_disturb_no_open_connection(start, tmp_path):
    """Open connections are served; a new one waits until another leaves."""
    script = tmp_path / "limited.sh"
    script.write_text(f'#!/bin/sh\nulimit -n 40\nexec {binary()} "$@"\n')
    script.chmod(0o755)
    before = os.environ.get("CROSSTIE")
    os.environ["CROSSTIE"] = str(script)
    try:
        testee = start("stream", "--listen=tcp://127.0.0.1:0")
    finally:
        if before is None:
            del os.environ["CROSSTIE"]
        else:
            os.environ["CROSSTIE"] = before
    peers = [Plain.tcp(testee.address) for _ in range(60)]
    for peer in peers:
        peer.send(b"x")
    assert peers[0].receive(1) == b"x"
    await_true("it says so", lambda: any("cannot accept" in line for line in testee.errors))
    peers[0].send(b"y")
    assert peers[0].receive(1) == b"y"
    for peer in peers[1:50]:
        peer.close()
    assert peers[-1].receive(1) == b"x"


# --- Statistics ---

LINE = r"  {:<15} : +(\d+) {}"
PERIOD = r" +\d+ {}/s"
NAMES = [
    ("Handshakes", "#"),
    ("Echo'ed msgs", "#"),
    ("Echo'ed octets", "B"),
    ("Wire octets in", "B"),
    ("Wire octets out", "B"),
]
BLOCK = re.compile(
    RULE
    + r"Worker Statistics \(PID (\d+)\)\n\n"
    + r"Period No.        : (\d+)\nPeriod duration   : \d+\.\d{3} s\nConnected clients : (\d+)\n"
    + "\nPeriod\n"
    + "".join(LINE.format(name, unit) + PERIOD.format(unit) + "\n" for name, unit in NAMES)
    + "\nTotal\n"
    + "".join(LINE.format(name, unit) + "\n" for name, unit in NAMES)
    + RULE
    + "\n"
)


def parse(block: str) -> list[int]:
    found = BLOCK.fullmatch(block)
    assert found, block
    assert all(len(line) in (42, 67) for line in block.splitlines() if line.startswith("  "))
    return [int(group) for group in found.groups()]


def test_statistics_in_the_documents_form(start):
    testee = start("websocket", "--url=ws://127.0.0.1:0", "--workers=2", "--interval=0.05")
    peers = [WebSocket.tcp(testee.address) for _ in range(10)]
    octets_in = octets_out = 0
    for peer in peers:
        assert peer.upgrade(None)[0] == 101
        peer.send_frame(TEXT, b"x" * 100)
        assert peer.receive_frame() == (TEXT, b"x" * 100)
        octets_in += 106
        octets_out += 102

    def latest() -> list[list[int]]:
        blocks = [parse(block) for block in list(testee.blocks)]
        found = ([b for b in blocks if b[0] == process][-1:] for process in testee.processes())
        return [block[0] for block in found if block]

    def summed(at: int) -> int:
        return sum(block[at] for block in latest())

    await_true("all are counted", lambda: (summed(8), summed(9)) == (10, 10))
    assert summed(2) == 10, "connected clients"
    assert summed(10) == 1000, "echoed bytes"
    # The handshakes' requests and responses as well.
    assert summed(11) > octets_in + 10 * 100
    assert summed(12) > octets_out + 10 * 100
    for peer in peers:
        peer.close()
    await_true("all are gone", lambda: summed(2) == 0)
    numbers = [block[1] for block in map(parse, list(testee.blocks)) if block[0] == latest()[0][0]]
    assert numbers == list(range(1, len(numbers) + 1))
    blocks = [parse(block) for block in list(testee.blocks)]
    for process in testee.processes():
        mine = [block for block in blocks if block[0] == process]
        for at in range(5):
            assert sum(block[3 + at] for block in mine) == mine[-1][8 + at], NAMES[at]


def test_periods_are_outlived(start):
    """By a peer that says nothing for several of them, and by one that says much."""
    testee = start("websocket", "--url=ws://127.0.0.1:0", "--interval=0.05")
    with WebSocket.tcp(testee.address) as idle, WebSocket.tcp(testee.address) as busy:
        peers = (idle, busy)
        for peer in peers:
            assert peer.upgrade(None, "/")[0] == 101
        for is_busy in (True, False):
            end = len(testee.blocks) + 10
            while is_busy and len(testee.blocks) < end:
                busy.send_frame(TEXT, b"much")
                assert busy.receive_frame() == (TEXT, b"much")
            await_true("periods end", lambda end=end: len(testee.blocks) >= end)
            for peer in peers:
                peer.send_frame(TEXT, b"little")
                assert peer.receive_frame() == (TEXT, b"little")


def test_silence(start):
    testee = start("websocket", "--url=ws://127.0.0.1:0", "--silence", "--interval=0.01")
    with WebSocket.tcp(testee.address) as peer:
        peer.upgrade(None)
        for _ in range(10):
            peer.send_frame(PING)
            peer.receive_frame()
    testee.stop()
    assert testee.blocks == []
