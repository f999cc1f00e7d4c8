"""Testees inside a node: what their configuration says, and the rules of WebSocket, case by case.

The rules are those that the Autobahn TestSuite asks for, in the order of its chapters: it judges
where there is a Python 2.7, these rows everywhere.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator

import pytest
from rig import config
from rig.plain import Plain
from rig.router import ROOT, Router, binary
from rig.waiting import await_true
from rig.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, WebSocket

EXAMPLES = ROOT / "examples"
ADMIN = {"endpoint": config.tcp(), "pages": ["metrics"]}


def stream(endpoint: dict | None = None, **more: object) -> dict:
    """Return a stream testee."""
    return {"type": "stream.testee", "id": "echo", "endpoint": endpoint or config.tcp(), **more}


def websocket(**more: object) -> dict:
    """Return a WebSocket testee."""
    return {"type": "websocket.testee", "id": "echo", "endpoint": config.tcp(), **more}


def metric(router: Router, name: str) -> float:
    """Return a metric from the operators' listener."""
    line = next(line for line in router.log if line.text.startswith("Admin pages"))
    host, port = line.text.split("http://")[1].strip("/").split(":")
    with Plain.tcp((host, int(port))) as peer:
        peer.send(b"GET /metrics HTTP/1.0\r\n\r\n")
        for sample in peer.receive_all().decode().splitlines():
            if sample.startswith((f"crosstie_{name} ", f"crosstie_{name}{{")):
                return float(sample.rpartition(" ")[2])
    raise AssertionError(f"there is no metric {name}")


def assert_echoes(peer: Plain, octets: bytes = b"hello") -> None:
    """Sent messages come back."""
    peer.send(octets)
    assert peer.receive(len(octets)) == octets


# The configuration.


@pytest.mark.parametrize(
    "example", sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("config.json"))
)
def test_an_example_is_valid_as_it_stands(example):
    file = EXAMPLES / example
    done = subprocess.run(
        [binary(), "check", "--config", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    is_silent = "version" in json.loads(file.read_text())
    assert ('"version" is missing and taken to be 2' in done.stderr) != is_silent


def test_the_documents_configuration_starts(tmp_path):
    """Only the port is another: 9000 may be in use."""
    text = (EXAMPLES / "stream_testee/config.json").read_text()
    assert '"port": 9000' in text
    file = tmp_path / "config.json"
    file.write_text(text.replace('"port": 9000', '"port": 0'))
    router = Router(tmp_path, "--config", str(file))
    try:
        assert any('"version" is missing' in line.text for line in router.log)
        _, port = router.address("transport1")
        with Plain.tcp(("127.0.0.1", port)) as peer:
            assert_echoes(peer)
            peer.finish()
            assert peer.receive_all() == b""
    finally:
        router.stop()


def test_streams_come_back_whole(start_router, certificate_directory):
    router = start_router(
        config.node(
            [],
            [
                stream(),
                stream(config.unix("echo.sock"), id="unix"),
                stream(config.tls(certificate_directory), id="tls"),
            ],
        )
    )
    assert router.urls("echo")[0].startswith("tcp://127.0.0.1:")
    assert router.urls("unix")[0] == f"unix://{router.directory}/echo.sock"
    assert router.urls("tls")[0].startswith("tls://127.0.0.1:")
    octets = bytes(range(256)) * 20_000
    for peer in [
        Plain.tcp(router.address("echo")),
        Plain.unix(router.directory / "echo.sock"),
        Plain.tls(router.address("tls"), certificate_directory / "ca.pem"),
    ]:
        with peer:
            assert peer.echoed(octets) == octets


def test_several_nodes_share_a_port(start_router):
    first = start_router(config.node([], [stream(config.tcp(shared=True))]))
    endpoint = config.tcp(shared=True) | {"port": first.address("echo")[1]}
    second = start_router(config.node([], [stream(endpoint)]))
    assert second.address("echo") == first.address("echo")
    first.stop()
    with Plain.tcp(second.address("echo")) as peer:
        assert_echoes(peer)


@pytest.mark.parametrize("debug", [True, False])
def test_debug_names_each_connection(start_router, debug):
    router = start_router(
        config.node([], [stream(debug=debug), websocket(id="messages", debug=debug)])
    )
    named = []
    with Plain.tcp(router.address("echo")) as peer:
        assert_echoes(peer)
        named.append(peer.name)
    with WebSocket.tcp(router.address("messages")) as peer:
        peer.send(b"GET nothing\r\n\r\n")
        peer.receive_all()
        named.append(peer.name)

    def told() -> list[tuple]:
        lines = [line for line in router.log if line.text.startswith("testee connection")]
        return [(line.fields["transport"], line.fields["peer"], line.text) for line in lines]

    if debug:
        await_true("both ends are told", lambda: len(told()) == 4)
    router.stop()
    begin, end = "testee connection opened", "testee connection ended"
    expected = [
        ("echo", f"tcp:{named[0]}", begin),
        ("echo", f"tcp:{named[0]}", end),
        ("messages", f"tcp:{named[1]}", begin),
        ("messages", f"tcp:{named[1]}", f"{end}: not an HTTP request"),
    ]
    assert told() == (expected if debug else [])


@pytest.mark.parametrize(
    ("transport", "more"),
    [
        ({"max_connections": 2}, {}),
        ({}, {"limits": {"sessions_max": 2}}),
    ],
    ids=["of_the_transport", "of_the_node"],
)
def test_connections_are_bounded(start_router, transport, more):
    router = start_router(config.node([], [stream(**transport)], admin=ADMIN, **more))
    address = router.address("echo")
    with Plain.tcp(address) as first, Plain.tcp(address) as second:
        assert_echoes(first)
        assert_echoes(second)
        with Plain.tcp(address) as third:
            assert third.receive_all() == b""
        assert metric(router, "connections_refused_total") == 1
        first.close()
        if not more:
            await_true("one has gone", lambda: metric(router, "testee_connections") == 1)
            with Plain.tcp(address) as fourth:
                assert_echoes(fourth)


def test_testees_count(start_router):
    router = start_router(config.node([], [websocket()], admin=ADMIN))
    with opened(router) as peer:
        for _ in range(3):
            peer.send_frame(TEXT, b"12345")
            assert peer.receive_frame() == (TEXT, b"12345")
        assert metric(router, "testee_connections") == 1
        assert metric(router, "testee_handshakes_total") == 1
        assert metric(router, "testee_messages_total") == 3
        assert metric(router, "testee_bytes_total") == 15
        assert metric(router, "testee_received_bytes_total") > 3 * (6 + 5)
        assert metric(router, "testee_sent_bytes_total") > 3 * (2 + 5)
        peer.send_frame(3)
        peer.expect_close(1002)
    await_true("the fault is counted", lambda: metric(router, "peer_faults_total") == 1)
    await_true("it has gone", lambda: metric(router, "testee_connections") == 0)


def test_a_node_that_ends_does_not_wait_for_its_testees(start_router):
    """No client there answers a GOODBYE; the exit has a deadline that is shorter than the limit."""
    router = start_router(
        config.node(
            [], [stream(), websocket(id="messages")], limits={"shutdown_timeout_ms": 60_000}
        )
    )
    with Plain.tcp(router.address("echo")) as octets, opened(router, "messages") as messages:
        assert_echoes(octets)
        router.stop()
        assert octets.receive_all() == b""
        messages.receive_all()


# How WebSocket is spoken.


def opened(router: Router, transport: str = "echo", **headers: str) -> Compressing:
    """Return a WebSocket to a testee."""
    peer = Compressing.tcp(router.address(transport))
    status, peer.headers, body = peer.upgrade(None, "/any/path?query", **headers)
    assert status == 101, body
    return peer


class Compressing(WebSocket):
    """A connection that knows which messages came compressed, and may send in a thread."""

    sender: threading.Thread | None = None

    def close(self) -> None:
        """Close the connection; what is still being sent fails."""
        if self.sender:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            self.sender.join()
        super().close()

    def receive_frame(self) -> tuple[int, bytes]:
        """Return the next frame's opcode and content."""
        first = self.receive(1)
        self.compressed = bool(first[0] & 0x40)
        self._kept = first + self._kept
        return super().receive_frame()


DEFLATE = "permessage-deflate"
HELLO = b"\xf2\x48\xcd\xc9\xc9\x07\x00"


def close(code: int, reason: bytes = b"") -> bytes:
    """Return a Close frame's content."""
    return struct.pack("!H", code) + reason


def test_the_options_are_kept(start_router):
    def start(**options: object) -> Router:
        return start_router(config.node([], [websocket(options=options)]))

    with opened(start(), Sec_WebSocket_Extensions=DEFLATE) as peer:
        assert "sec-websocket-extensions" not in peer.headers
        assert peer.headers["server"].startswith("Crosstie/")
        peer.send_frame(CLOSE, close(4000, b"why"))
        opcode, octets = peer.receive_frame()
        assert opcode == CLOSE
        assert octets in (close(1000), close(4000))
    router = start(
        echo_close_codereason=True,
        fail_by_drop=True,
        show_server_version=False,
        max_message_size=100,
        tcp_nodelay=False,
    )
    with opened(router) as peer:
        assert "server" not in peer.headers
        peer.send_frame(BINARY, b"x" * 100)
        assert peer.receive_frame() == (BINARY, b"x" * 100)
        peer.send_frame(CLOSE, close(4000, b"why"))
        assert peer.receive_frame() == (CLOSE, close(4000, b"why"))
        peer.expect_end()
    with opened(router) as peer:
        peer.send_frame(BINARY, b"x" * 101)
        peer.expect_end()
    with opened(start(max_message_size=100, max_frame_size=50)) as peer:
        peer.send_frame(TEXT, b"x" * 50, fin=False)
        peer.send_frame(CONTINUATION, b"x" * 50)
        assert peer.receive_frame() == (TEXT, b"x" * 100)
        peer.send_frame(TEXT, b"x" * 51)
        peer.expect_close(1009)


def test_the_address_can_be_another(start_router):
    router = start_router(config.node([], [websocket(url="ws://testee.example:9001")]))
    assert router.urls("echo") == ["ws://testee.example:9001"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_WebSocket_Key": None}, 400),
        ({"Sec_WebSocket_Version": "8"}, 426),
        ({"Upgrade": "h2c"}, 426),
        ({"Connection": "close"}, 400),
    ],
)
def test_a_wrong_handshake_is_refused(testee, headers, status):
    with WebSocket.tcp(testee.address("echo")) as peer:
        assert peer.upgrade(None, "/", **headers)[0] == status
        assert peer.receive_all() == b""


@pytest.fixture(scope="module")
def testee(tmp_path_factory) -> Iterator[Router]:
    """One testee for all rules; it must end cleanly after them."""
    transport = websocket(options={"compression": {"deflate": {}}})
    running = Router(tmp_path_factory.mktemp("testee"), config=config.node([], [transport]))
    yield running
    running.stop()


# A frame to send or to be received: opcode, content, and for sending what is special about it.
Frame = tuple

GOOD = (TEXT, b"good")


def text(whole: str) -> Frame:
    """Return a whole text message."""
    return (TEXT, whole.encode())


def fragments(opcode: int, *parts: bytes) -> list[Frame]:
    """Return one message in several frames."""
    last = len(parts) - 1
    return [
        (CONTINUATION if at else opcode, part, {"fin": at == last}) for at, part in enumerate(parts)
    ]


def single_octets(opcode: int, whole: bytes) -> list[Frame]:
    """Return one message with a byte in each frame."""
    return fragments(opcode, *[whole[at : at + 1] for at in range(len(whole))])


# The first and the last character of every length, but for those that are none.
FIRST_AND_LAST = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x1_0000, 0x10_FFFF]

# Sent bytes, and the answers before and in place of a clean close: see `check`.
ANSWERED: dict[str, tuple[list[Frame], list[Frame]]] = {
    # 1: messages of every length's form.
    **{
        f"1_{name}_{length}": ([(opcode, b"*" * length)], [(opcode, b"*" * length)])
        for name, opcode in [("text", TEXT), ("binary", BINARY)]
        for length in [0, 125, 126, 127, 128, 65_535, 65_536]
    },
    "1_any_octets": ([(BINARY, bytes(range(256)))], [(BINARY, bytes(range(256)))]),
    # 2: pings and pongs.
    "2_ping": ([(PING, b"")], [(PONG, b"")]),
    "2_ping_with_payload": ([(PING, b"\x00\xff\xfe")], [(PONG, b"\x00\xff\xfe")]),
    "2_longest_ping": ([(PING, b"\xfe" * 125)], [(PONG, b"\xfe" * 125)]),
    "2_unsolicited_pongs": ([(PONG, b""), (PONG, b"x"), (PING, b"y")], [(PONG, b"y")]),
    "2_ten_pings": (
        [(PING, b"%d" % n) for n in range(10)],
        [(PONG, b"%d" % n) for n in range(10)],
    ),
    # 5: fragments, and what may stand between them.
    "5_two_fragments": (fragments(TEXT, b"frag", b"ment"), [(TEXT, b"fragment")]),
    "5_ping_between": (
        [(TEXT, b"1", {"fin": False}), (PING, b"p"), (CONTINUATION, b"2")],
        [(PONG, b"p"), (TEXT, b"12")],
    ),
    "5_pings_between": (
        [
            (TEXT, b"1", {"fin": False}),
            (CONTINUATION, b"2", {"fin": False}),
            (PING, b"p"),
            (CONTINUATION, b"3", {"fin": False}),
            (CONTINUATION, b"4", {"fin": False}),
            (PING, b"q"),
            (CONTINUATION, b"5"),
        ],
        [(PONG, b"p"), (PONG, b"q"), (TEXT, b"12345")],
    ),
    # 6: text that is UTF-8, wherever it is cut.
    "6_empty_fragments": (fragments(TEXT, b"", b"", b""), [(TEXT, b"")]),
    "6_only_the_middle": (fragments(TEXT, b"", b"middle", b""), [(TEXT, b"middle")]),
    "6_single_octets": (
        single_octets(TEXT, "Hello-µ@ßöäüàá-UTF-8!!κόσμε🦀".encode()),
        [text("Hello-µ@ßöäüàá-UTF-8!!κόσμε🦀")],
    ),
    **{
        f"6_first_and_last_{number:x}": ([text(chr(number))], [text(chr(number))])
        for number in FIRST_AND_LAST
    },
    "6_noncharacters": (
        [text(chr(plane << 16 | low)) for plane in range(17) for low in (0xFFFE, 0xFFFF)],
        [text(chr(plane << 16 | low)) for plane in range(17) for low in (0xFFFE, 0xFFFF)],
    ),
    # 9: long messages, in one frame and in many; many messages.
    "9_long": ([(BINARY, b"\0\1\2\3" * (1 << 20))], [(BINARY, b"\0\1\2\3" * (1 << 20))]),
    "9_long_text": ([(TEXT, b"BAsd7&jh23" * 100_000)], [(TEXT, b"BAsd7&jh23" * 100_000)]),
    **{
        f"9_fragments_of_{size}": (
            fragments(TEXT, *[b"*" * size] * ((1 << 18) // size)),
            [(TEXT, b"*" * (1 << 18))],
        )
        for size in [64, 4_096, 65_536]
    },
    "9_many_messages": ([(TEXT, b"*" * 64)] * 1_000, [(TEXT, b"*" * 64)] * 1_000),
    # 10: a message that was fragmented on its way.
    "10_fragments_of_1300": (
        fragments(TEXT, *[b"*" * 1_300] * 50, b"*" * 536),
        [(TEXT, b"*" * 65_536)],
    ),
}

# Bytes that end the connection, with the close code; earlier messages are answered.
REFUSED: dict[str, tuple[list[Frame], int]] = {
    "2_ping_too_long": ([GOOD, (PING, b"x" * 126)], 1002),
    # 3: reserved bits; the first is one without an agreement about its meaning.
    **{
        f"3_reserved_{bits}_opcode_{opcode}": ([GOOD, (opcode, b"", {"reserved": bits})], 1002)
        for bits in [1, 2, 3, 4, 5, 6, 7]
        for opcode in [TEXT, BINARY, PING, CLOSE]
    },
    # 4: reserved opcodes, and no pong for what follows.
    **{
        f"4_opcode_{opcode}": ([GOOD, (opcode, b"?"), (PING, b"no")], 1002)
        for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]
    },
    # 5: fragments of nothing, and of what has none.
    "5_ping_in_fragments": ([GOOD, (PING, b"1", {"fin": False}), (CONTINUATION, b"2")], 1002),
    "5_pong_in_fragments": ([GOOD, (PONG, b"1", {"fin": False}), (CONTINUATION, b"2")], 1002),
    "5_continuation_first": ([(CONTINUATION, b"no"), GOOD], 1002),
    "5_continuation_first_unfinished": ([(CONTINUATION, b"no", {"fin": False}), GOOD], 1002),
    "5_continuation_after_the_end": (
        [*fragments(TEXT, b"go", b"od"), (CONTINUATION, b"no", {"fin": False}), GOOD],
        1002,
    ),
    "5_two_beginnings": (
        [GOOD, (TEXT, b"1", {"fin": False}), (TEXT, b"2", {"fin": False}), (CONTINUATION, b"3")],
        1002,
    ),
    "5_a_message_in_a_message": ([GOOD, (TEXT, b"1", {"fin": False}), (BINARY, b"2")], 1002),
    # 6: text that is not UTF-8.
    **{
        f"6_{wrong.hex()}": ([GOOD, (TEXT, wrong)], 1007)
        for wrong in [
            b"\x80",
            b"\xbf" * 7,
            b"\xc0\x20\xc1\x20",
            b"\xe0\x20",
            b"\xf0\x20",
            b"\xf8\x20",
            b"\xfc\x20",
            b"\xc3",
            b"\xe0\x80",
            b"\xf0\x80\x80",
            b"\xf8\x80\x80\x80",
            b"\xfe",
            b"\xff\xff",
            b"\xc0\xaf",
            b"\xe0\x80\xaf",
            b"\xf0\x80\x80\xaf",
            b"\xf8\x80\x80\x80\xaf",
            b"\xc1\xbf",
            b"\xe0\x9f\xbf",
            b"\xf0\x8f\xbf\xbf",
            b"\xf8\x87\xbf\xbf\xbf",
            b"\xfc\x83\xbf\xbf\xbf\xbf",
            b"\xed\xa0\x80",
            b"\xed\xbf\xbf",
            b"\xed\xa0\x80\xed\xb0\x80",
            b"\xf4\x90\x80\x80",
            b"\xf7\xbf\xbf\xbf",
        ]
    },
    "6_single_octets": ([GOOD, *single_octets(TEXT, b"\xce\xba\xed\xa0\x80edited")], 1007),
    "6_unfinished_at_the_end": ([GOOD, *fragments(TEXT, b"\xe2\x82", b"")], 1007),
    # 7: Close frames that are none.
    "7_close_of_one_octet": ([GOOD, (CLOSE, b"\x03")], 1002),
    "7_close_too_long": ([GOOD, (CLOSE, close(1000, b"*" * 124))], 1002),
    "7_close_reason_not_utf8": ([GOOD, (CLOSE, close(1000, b"\xce\xba\xe1\xbd\xb9\xed"))], 1007),
    **{
        f"7_close_code_{code}": ([GOOD, (CLOSE, close(code))], 1002)
        for code in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535]
    },
}


def send(peer: WebSocket, frames: list[Frame]) -> None:
    """Send frames in one go."""
    with peer.kept() as kept:
        for opcode, octets, *special in frames:
            peer.send_frame(opcode, octets, **(special[0] if special else {}))
    peer.sent = bytes(kept)


def whole(octets: bytes) -> list[bytes]:
    """All at once."""
    return [octets]


def chopped(octets: bytes) -> list[bytes]:
    """Cut with no regard to frames: byte by byte, or 997 of them where there are many."""
    size = 1 if len(octets) < 1_000 else 997
    return [octets[at : at + size] for at in range(0, len(octets), size)]


@pytest.fixture
def echo(testee) -> Iterator[WebSocket]:
    """A connection to the testee, without compression."""
    with opened(testee) as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield peer


def play(peer: WebSocket, frames: list[Frame], cut: Callable[[bytes], list[bytes]]) -> None:
    """Send frames, cut up; in a thread, because what is echoed has to be taken meanwhile."""
    send(peer, frames)

    def pieces() -> None:
        for piece in cut(peer.sent):
            peer.send(piece)

    if peer.sender:
        peer.sender.join()
    peer.sender = threading.Thread(target=pieces)
    peer.sender.start()


CUTS = pytest.mark.parametrize("cut", [whole, chopped], ids=["whole", "chopped"])


@CUTS
@pytest.mark.parametrize("rule", ANSWERED)
def test_allowed_frames_are_answered(echo, rule, cut):
    frames, expected = ANSWERED[rule]
    play(echo, [*frames, (CLOSE, close(1000, b"done"))], cut)
    for frame in expected:
        assert echo.receive_frame() == frame
    echo.expect_close(1000)


@CUTS
@pytest.mark.parametrize("rule", REFUSED)
def test_forbidden_frames_end_the_connection(echo, rule, cut):
    frames, code = REFUSED[rule]
    play(echo, frames, cut)
    if frames[0][1] in (b"good", b"go"):
        assert echo.receive_frame() == GOOD
    opcode, octets = echo.receive_frame()
    assert (opcode, octets[:2]) == (CLOSE, close(code)), octets
    octets[2:].decode()
    assert echo.receive_all() == b"", "no pong and no echo after a Close"


WRONG = b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xf4\x90\x80\x80edited"


@pytest.mark.parametrize("cut", [13, 15])
def test_wrong_text_is_refused_before_its_message_is_whole(testee, cut):
    """After the byte that makes it wrong, or a little later; in fragments and in one frame."""
    with opened(testee) as peer:
        send(peer, [(TEXT, WRONG[:12], {"fin": False})])
        peer.send(peer.sent)
        send(peer, [(CONTINUATION, WRONG[12:cut], {"fin": False})])
        peer.send(peer.sent)
        peer.expect_close(1007)
    with opened(testee) as peer:
        send(peer, [(TEXT, WRONG)])
        peer.send(peer.sent[: 6 + cut])
        peer.expect_close(1007)


@pytest.mark.parametrize(
    "content",
    [b"", close(1000), close(1000, b"Hello World!"), close(1000, b"*" * 123)]
    + [close(code) for code in [1001, 1002, 1003, *range(1007, 1015), 3000, 3999, 4000, 4999]],
    ids=lambda content: content[:3].hex() or "empty",
)
def test_a_close_is_answered(echo, content):
    """7: without its reason; whatever follows it has no meaning, and gets no answer."""
    unfinished = (TEXT, b"un", {"fin": False})
    play(echo, [GOOD, unfinished, (CLOSE, content), (PING, b""), (CLOSE, b"\x03")], whole)
    assert echo.receive_frame() == GOOD
    opcode, octets = echo.receive_frame()
    assert opcode == CLOSE
    assert octets in (close(1000), content[:2])
    echo.expect_end()


# 12 and 13: permessage-deflate. What a client offers, and what the testee may then do.
OFFERS = {
    "plain": f"{DEFLATE}",
    "client_can_narrow": f"{DEFLATE}; client_max_window_bits",
    "no_takeover": f"{DEFLATE}; client_no_context_takeover; server_no_context_takeover",
    "client_9_bits": f"{DEFLATE}; client_max_window_bits=9",
    "server_9_bits": f"{DEFLATE}; server_max_window_bits=9",
    "server_9_bits_no_takeover": f"{DEFLATE}; server_no_context_takeover; server_max_window_bits=9",
    "all": f"{DEFLATE}; client_no_context_takeover; client_max_window_bits=9; "
    "server_no_context_takeover; server_max_window_bits=9",
    "second_best": f"{DEFLATE}; server_max_window_bits=8, {DEFLATE}",
}


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_compressed_messages_come_back(testee, offer, opcode):
    offered = OFFERS[offer]
    with opened(testee, Sec_WebSocket_Extensions=offered) as peer:
        agreed = peer.headers["sec-websocket-extensions"]
        assert agreed.startswith(DEFLATE)
        if "server_max_window_bits=9" in offered:
            assert "server_max_window_bits=9" in agreed
        takeover = "server_no_context_takeover" not in agreed
        assert takeover == ("server_no_context_takeover" not in offered)
        forgets = "client_no_context_takeover" in agreed
        # An inflater with a narrow window refuses what was deflated with a wider one.
        client_bits, server_bits = (bits(agreed, which) for which in ("client", "server"))
        deflater = inflater = None
        for size in [0, 16, 64, 256, 1_024, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072]:
            for number in range(3):
                message = (b'{"number": %d, "of": "%d"} ' % (number, size) * size)[:size]
                if deflater is None or forgets:
                    deflater = zlib.compressobj(wbits=-client_bits)
                octets = deflater.compress(message) + deflater.flush(zlib.Z_SYNC_FLUSH)
                parts = fragments(opcode, octets[:-4]) if number else halves(opcode, octets[:-4])
                first, *rest = parts
                play(peer, [(*first[:2], {**first[2], "reserved": 4}), *rest], whole)
                answered, content = peer.receive_frame()
                assert answered == opcode
                if peer.compressed:
                    if inflater is None or not takeover:
                        inflater = zlib.decompressobj(wbits=-server_bits)
                    content = inflater.decompress(content + b"\x00\x00\xff\xff")
                assert content == message
                assert peer.compressed or size < 256, "what is long is compressed"
        peer.send_frame(CLOSE, close(1000))
        peer.expect_close(1000)


def bits(agreed: str, which: str) -> int:
    """Return the agreed size of a window."""
    found = re.search(rf"{which}_max_window_bits=(\d+)", agreed)
    return int(found[1]) if found else 15


def halves(opcode: int, octets: bytes) -> list[Frame]:
    """Return one message in two frames."""
    return fragments(opcode, octets[: len(octets) // 2], octets[len(octets) // 2 :])


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([(PING, b"", {"reserved": 4})], 1002),
        ([(TEXT, HELLO, {"reserved": 6})], 1002),
        (
            [
                (TEXT, HELLO[:3], {"fin": False, "reserved": 4}),
                (CONTINUATION, HELLO[3:], {"reserved": 4}),
            ],
            1002,
        ),
        ([(TEXT, b"\xff\xff\xff", {"reserved": 4})], 1007),
        ([(TEXT, b"\x00\x01\x00\xfe\xff\xff\x00", {"reserved": 4})], 1007),
    ],
    ids=["control_frame", "other_bits", "second_fragment", "not_deflate", "not_text_inside"],
)
def test_forbidden_compression_ends_the_connection(testee, frames, code):
    with opened(testee, Sec_WebSocket_Extensions=DEFLATE) as peer:
        peer.send_frame(TEXT, HELLO, reserved=4)
        assert peer.receive_frame()[0] == TEXT
        play(peer, frames, whole)
        peer.expect_close(code)


def test_a_message_that_inflates_too_far_is_refused(start_router):
    """A thousand times its size, and never held: the limit is the message's, not the frame's."""
    options = {"compression": {"deflate": {}}, "max_message_size": 1_000}
    router = start_router(config.node([], [websocket(options=options)]))
    deflater = zlib.compressobj(wbits=-15)
    bomb = deflater.compress(b"0" * 500_000) + deflater.flush(zlib.Z_SYNC_FLUSH)
    assert len(bomb) < 1_000
    with opened(router, Sec_WebSocket_Extensions=DEFLATE) as peer:
        peer.send_frame(TEXT, bomb[:-4], reserved=4)
        peer.expect_close(1009)
