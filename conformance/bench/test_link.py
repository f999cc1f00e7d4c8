"""`crosstie link`: a stream through a line that is longer, narrower or worse than the loopback."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.plain import ClosedError, Plain
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true


class Server:
    """Accepts, and gives each connection to `serve` on a thread of its own."""

    def __init__(self, listening: socket.socket, serve: Callable[[socket.socket], None]):
        self.socket = listening
        self.serve = serve
        self.accepted: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Return its address in the command's form."""
        name = self.socket.getsockname()
        return f"unix://{name}" if isinstance(name, str) else f"tcp://{name[0]}:{name[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.accepted.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.serve(connection)

    def close(self) -> None:
        """Stop listening and close what is open."""
        for each in [self.socket, *self.accepted]:
            each.close()


def echo(connection: socket.socket) -> None:
    while octets := connection.recv(65536):
        connection.sendall(octets)
    connection.shutdown(socket.SHUT_WR)


def hold(_: socket.socket) -> None:
    """Neither read nor write."""


class Link:
    """A running `crosstie link`."""

    def __init__(self, server: str, *options: object, listen: str = "127.0.0.1:0"):
        command = [binary(), "link", "--listen", listen, "--connect", server, *options]
        self.process = subprocess.Popen(
            [str(word) for word in command], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.line = self.process.stderr.readline()
        assert "→" in self.line, self.line + self.process.stderr.read()
        self.address = self.line.split()[2]

    def connect(self) -> Plain:
        """Connect as a client."""
        if path := re.fullmatch(r"unix://(.*)", self.address):
            return Plain.unix(Path(path[1]))
        host, port = re.fullmatch(r"tcp://(.*):(\d+)", self.address).groups()
        return Plain.tcp((host, int(port)))

    def stop(self) -> str:
        """End it as Ctrl-C does; return what it says of its life."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        assert self.process.wait(DEADLINE_S) == 0, said
        return said

    @property
    def resident_bytes(self) -> int:
        """Return the bytes that it holds in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start servers of one behaviour, on the loopback or at a path."""
    running: list[Server] = []

    def start(behaviour=echo, path: Path | None = None) -> Server:
        if path is None:
            listening = socket.create_server(("127.0.0.1", 0), backlog=1000)
        else:
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(str(path))
            listening.listen(1000)
        running.append(Server(listening, behaviour))
        return running[-1]

    yield start
    for each in running:
        each.close()


@pytest.fixture
def link(serve) -> Iterator[Callable[..., Link]]:
    """Start links, by default to an echo server."""
    running: list[Link] = []

    def start(*options: object, server: Server | None = None, **more: str) -> Link:
        running.append(Link((server or serve()).address, *options, **more))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.wait()


def round_trip_s(client: Plain, octets: bytes = b"x") -> float:
    began = time.monotonic()
    client.send(octets)
    assert client.receive(len(octets)) == octets
    return time.monotonic() - began


def pattern(length: int) -> bytes:
    """Bytes of which none can be missing or elsewhere unseen."""
    return b"".join(n.to_bytes(4, "big") for n in range(length // 4))


@pytest.mark.parametrize(
    ("options", "least_s"),
    [
        (["--delay", "40ms"], 0.04),
        (["--delay", "40ms", "--direction", "down"], 0.04),
        (["--delay", "40ms", "--direction", "both"], 0.08),
        (["--delay", "40ms", "--jitter", "10ms"], 0.03),
        # 1,000 bytes at 10,000 bytes a second, each way.
        (["--rate", "80kbit"], 0.2),
        ([], 0),
    ],
    ids=lambda value: " ".join(value) or "bare" if isinstance(value, list) else "",
)
def test_a_round_trip_takes_as_long_as_the_way(link, options, least_s):
    with link(*options).connect() as client:
        for octets in (b"a", pattern(1000)[:1000] if "--rate" in options else b"b"):
            took = round_trip_s(client, octets)
        assert took > least_s


def test_connecting_takes_a_round_trip_and_a_way(link, serve):
    """The client's connect returns at once; the server sees it when the way has been gone."""
    seen: list[float] = []
    server = serve(lambda _: seen.append(time.monotonic()))
    began = time.monotonic()
    with link("--delay", "50ms", server=server).connect():
        await_true("the server accepts", lambda: bool(seen))
        assert seen[0] - began > 0.1


@pytest.mark.parametrize("over", ["tcp", "unix"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--delay", "5ms", "--direction", "both"],
        ["--delay", "5ms", "--jitter", "5ms", "--direction", "both"],
        ["--delay", "1ms", "--rate", "200mbit"],
    ],
    ids=lambda value: " ".join(value) or "bare",
)
def test_everything_comes_in_order(link, serve, tmp_path, over, options):
    """Much more than any buffer holds, written and read at once, then half a close."""
    path = tmp_path / "server.sock" if over == "unix" else None
    listen = f"unix://{tmp_path}/link.sock" if over == "unix" else "127.0.0.1:0"
    running = link(*options, server=serve(path=path), listen=listen)
    octets = pattern(4_000_000)
    with running.connect() as client:

        def write() -> None:
            # Pieces of all sizes.
            at, size = 0, 1
            while at < len(octets):
                client.send(octets[at : at + size])
                at, size = at + size, size * 7 % 65_521 + 1
            client.finish()

        writing = threading.Thread(target=write)
        writing.start()
        assert client.receive_all() == octets
        writing.join()
    said = running.stop()
    assert "1 connections" in said
    assert f"{len(octets)} bytes up, {len(octets)} bytes down" in said
    assert not (tmp_path / "link.sock").exists()


def test_half_a_close_passes_and_leaves_the_other_half(link, serve):
    told: list[bytes] = []

    def answer_the_end(connection: socket.socket) -> None:
        while octets := connection.recv(1000):
            told.append(octets)
        connection.sendall(b"and yet")

    with link("--delay", "10ms", server=serve(answer_the_end)).connect() as client:
        client.send(b"that is all")
        client.finish()
        assert client.receive(7) == b"and yet"
        assert b"".join(told) == b"that is all"


def test_a_server_may_speak_first(link, serve):
    server = serve(lambda connection: connection.sendall(b"welcome"))
    with link("--delay", "10ms", server=server).connect() as client:
        assert client.receive(7) == b"welcome"


def is_reset(client: Plain) -> bool:
    try:
        return client.socket.recv(1) == b"x" and is_reset(client)
    except ConnectionResetError:
        return True


def test_a_reset_passes_both_ways(link, serve):
    outcomes: list[str] = []

    def await_reset(connection: socket.socket) -> None:
        try:
            connection.recv(1000)
            outcomes.append(f"then {connection.recv(1000)!r}")
        except ConnectionResetError:
            outcomes.append("reset")

    client = link("--delay", "10ms", server=serve(await_reset)).connect()
    client.reset()
    await_true("the server hears of it", lambda: bool(outcomes))
    assert outcomes == ["reset"]

    def reset(connection: socket.socket) -> None:
        connection.recv(1000)
        Plain(connection).reset()

    with link("--delay", "10ms", server=serve(reset)).connect() as client:
        client.send(b"x")
        assert is_reset(client)


def test_a_server_that_is_not_there_resets(link, serve):
    gone = serve()
    running = link("--delay", "1ms", server=gone)
    # A socket that still waits in accept would go on listening.
    gone.socket.shutdown(socket.SHUT_RDWR)
    gone.close()
    with running.connect() as client:
        assert is_reset(client)
    assert "1 refused" in running.stop()


def test_a_receiver_that_does_not_read_stops_the_sender(link, serve):
    """The link holds a bounded amount, however much a client has to say."""
    running = link("--delay", "1ms", server=serve(hold))
    before = running.resident_bytes
    with running.connect() as client:
        client.socket.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while True:
                sent += client.socket.send(bytes(1 << 20))
                assert sent < 200 << 20, "nothing stops the sender"
        assert running.resident_bytes - before < 32 << 20


def test_others_pass_who_stands_still(link, serve):
    running = link("--delay", "1ms", server=serve(echo))
    with running.connect() as idle, running.connect() as client:
        idle.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                # The echo is never read.
                idle.socket.send(bytes(1 << 20))
        assert round_trip_s(client, pattern(100_000)) > 0


def test_many_connections(link, serve):
    running = link("--delay", "20ms", server=serve(lambda c: c.sendall(c.recv(1000))))
    clients = [running.connect() for _ in range(500)]
    for number, client in enumerate(clients):
        client.send(b"%d" % number)
    for number, client in enumerate(clients):
        assert client.receive(len(str(number))) == b"%d" % number
        client.close()
    assert "500 connections" in running.stop()


def test_a_rate_is_shared(link):
    """Two connections need as long as one that carries as much."""
    running = link("--rate", "2mbit")
    octets = pattern(25_000)
    with running.connect() as one, running.connect() as other:
        round_trip_s(one)
        round_trip_s(other)
        began = time.monotonic()
        one.send(octets)
        other.send(octets)
        assert one.receive(len(octets)) == octets
        assert other.receive(len(octets)) == octets
        # An idle line has no credit: all bytes take their time.
        assert time.monotonic() - began > 0.2


# --- cuts


def test_a_cut_in_time_resets_every_connection(link):
    running = link("--cut", "after=300ms")
    with running.connect() as one, running.connect() as other:
        round_trip_s(one)
        assert is_reset(one)
        assert is_reset(other)
    with running.connect() as later:
        round_trip_s(later)
    assert "1 cuts" in running.stop()


def test_a_cut_by_bytes_is_exact(link, serve):
    received: list[bytes] = []

    def collect(connection: socket.socket) -> None:
        while octets := connection.recv(1000):
            received.append(octets)

    running = link("--cut", "bytes=12345", server=serve(collect))
    with running.connect() as client:
        client.send(pattern(40_000))
        assert is_reset(client)
    assert "12345 bytes up, 0 bytes down" in running.stop()


def test_a_silence_holds_everything_back(link):
    with link("--cut", "after=500ms,for=700ms").connect() as client:
        # Somewhere in these a round trip is caught by the silence, and only late.
        took = [round_trip_s(client)]
        began = time.monotonic()
        while max(took) < 0.3 and time.monotonic() - began < DEADLINE_S:
            took.append(round_trip_s(client))
        assert max(took) > 0.3
        round_trip_s(client)


@pytest.mark.parametrize(
    "cut", ["bytes=10,for=300ms", "bytes=25,for=300ms"], ids=["the way up", "the way down"]
)
def test_bytes_held_back_by_a_cut_arrive_after_it(link, cut):
    """Also where the sender has nothing more to say that would set the rest in motion."""
    running = link("--cut", cut)
    with running.connect() as client:
        assert round_trip_s(client, b"0123456789abcdefghij") > 0
    assert "1 cuts" in running.stop()


def test_a_reader_during_a_silence_gets_the_rest_after_it(link, serve):
    """Room that a receiver makes while nothing passes is told of only once."""
    octets = pattern(16_000_000)
    server = serve(lambda connection: connection.sendall(octets))
    with link("--cut", "after=700ms,for=1s", server=server).connect() as client:
        # Everything is full on the way when the silence begins, and stands still.
        time.sleep(1)
        assert client.receive(len(octets)) == octets


def test_a_silence_without_end(link):
    with link("--cut", "bytes=10,silence").connect() as client:
        client.send(b"0123456789")
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.receive(1)


def test_newcomers_are_refused_in_a_lasting_reset(link):
    running = link("--cut", "after=200ms,for=60s,reset")
    with running.connect() as client:
        assert is_reset(client)

    def use() -> None:
        with running.connect() as client:
            client.send(b"x")
            client.receive(1)

    # The reset may be there before the connection is used.
    with pytest.raises((ClosedError, ConnectionError)):
        use()


# --- the command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--listen"),
        (["--listen", "127.0.0.1:0"], "--connect"),
        (["--listen", "nonsense", "--connect", "127.0.0.1:1"], "HOST:PORT"),
        (["--listen", "127.0.0.1:0", "--connect", "http://x:1"], "unix://PATH"),
        (["--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1", "--delay", "50"], "unit"),
        (["--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1", "--jitter", "1ms"], "jitter"),
        (["--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1", "--rate", "10"], "mbit"),
        (["--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1", "--cut", "soon"], "after=TIME"),
        (["--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1", "--direction", "x"], "both"),
        (["--listen", "unix:///no/such/dir/x.sock", "--connect", "127.0.0.1:1"], "cannot listen"),
        (["--listen", "192.0.2.1:1", "--connect", "127.0.0.1:1"], "cannot listen"),
        (["--listen", "127.0.0.1:9", "--connect", "127.0.0.1:9"], "leads back to --listen"),
        (["--listen", "unix:///a.sock", "--connect", "unix:///a.sock"], "leads back to --listen"),
        (["--measure", "--messages", "0"], "more than nothing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_are_named(arguments, said):
    done = subprocess.run(
        [str(binary()), "link", *arguments], text=True, capture_output=True, timeout=DEADLINE_S
    )
    assert done.returncode == 2
    assert said in done.stderr


def test_a_path_that_is_something_else_is_left_alone(tmp_path):
    path = tmp_path / "precious"
    path.write_text("precious")
    done = subprocess.run(
        [str(binary()), "link", "--listen", f"unix://{path}", "--connect", "127.0.0.1:1"],
        text=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert path.read_text() == "precious"


def test_the_error_is_measured(tmp_path):
    file = tmp_path / "link.json"
    command = [binary(), "link", "--measure", "--delay", "2ms", "--messages", "50", "--runs", "2"]
    done = subprocess.run(
        [*map(str, command), "--json", str(file)], text=True, capture_output=True, timeout=30
    )
    # Whether the goal is met is this machine's affair.
    assert done.returncode in (0, 1), done.stderr
    for text in ("directly", "through the link", "error", "goal"):
        assert text in done.stdout
    frame = json.loads(file.read_text())
    assert frame["bench"] == "link"
    rows = {row["subject"]: row for row in frame["results"] if "round" not in row}
    assert rows["crosstie"]["valid"], rows
    assert rows["crosstie"]["metrics"]["one_way_p50_us"] > 0
    assert rows["floor"]["metrics"]["one_way_p50_us"] > 0
