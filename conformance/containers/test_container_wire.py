"""Messages of a hosted component on the wire, with a router by hand at the other end."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.hosting import of_class
from rig.plain import Plain
from rig.rawsocket import PING, PONG, RawSocket


class Router16:
    """A RawSocket router by hand: for frames that a real one would not send."""

    def __init__(self, path: Path):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(path))
        self.listening.listen()

    def accept(self) -> RawSocket:
        """Take the component's connection, and its HELLO."""
        peer = RawSocket(self.listening.accept()[0])
        peer.serializer = "msgpack"
        assert peer.receive(4) == bytes([0x7F, 0xF2, 0, 0])
        peer.send(bytes([0x7F, 0xF2, 0, 0]))
        assert peer.hear(1)[1] == "realm1"
        return peer


@pytest.fixture
def router_by_hand(container, unix) -> Iterator[RawSocket]:
    """A component's connection, seen from the router's side."""
    own = Router16(container.directory / "hand.sock")
    endpoint = {"type": "unix", "path": "hand.sock"}
    container.start(of_class("Modern", {**unix, "endpoint": endpoint}))
    with own.accept() as peer:
        yield peer
    own.listening.close()


def test_rawsocket_pings_and_pieces(container, router_by_hand):
    peer = router_by_hand
    peer.send_frame(b"hello", PING)
    assert peer.receive_frame() == (PONG, b"hello")
    peer.send_frame(b"unasked for", PONG)
    welcome = b"\x93\x02\x07\x81\xa5roles\x82\xa6broker\x80\xa6dealer\x80"
    frame = struct.pack("!I", len(welcome)) + welcome
    for octet in struct.pack("!I", PING << 24 | 2) + b"ab" + frame:
        peer.send(bytes([octet]))
    assert peer.receive_frame() == (PONG, b"ab")
    assert peer.hear(64)[3] == "com.hosted.modern"
    peer.send_frame(b"p" * 300_000, PING)
    assert peer.receive_frame() == (PONG, b"p" * 300_000)


def test_waits_grow_while_no_session_lasts(container, unix):
    rounds = 8
    own = Router16(container.directory / "hand.sock")
    container.start(of_class("Modern", {**unix, "endpoint": {"type": "unix", "path": "hand.sock"}}))
    began = None
    for _ in range(rounds + 1):
        with own.accept() as peer:
            began = began or time.monotonic()
            peer.say(2, 7, {"roles": {"broker": {}, "dealer": {}}})
            assert peer.hear(64)[3] == "com.hosted.modern"
            peer.say(3, {"message": "go away"}, "com.example.enough")
            # Nothing more: no goodbye, no complaint.
            assert peer.receive_all() == b""
    # That is the sum of the waits at the least; the same wait each time would make 0.4 s.
    assert time.monotonic() - began > 0.9 * sum(0.05 * 1.5**number for number in range(rounds))
    own.listening.close()
    line = container.says("com.example.enough")
    assert "trying again" in container.says("connection ended: com.example.enough: go away").text
    assert line.level == 4


@pytest.mark.parametrize(
    "octets",
    [b"\x07\0\0\0", b"\xff\0\0\1x", b"\0\0\0\1\xc1", b"\0\0\0\2\x91\x00", b"\0\0\0\1\x07"],
)
def test_rawsocket_nonsense_ends_the_connection(container, router_by_hand, octets):
    router_by_hand.send(octets)
    router_by_hand.receive_all()
    container.says("it sent")
    container.says("trying again")


class WebSocketByHand(Plain):
    """The router's end of a WebSocket, byte by byte."""

    def accept(self) -> WebSocketByHand:
        """Take the handshake, and the component's HELLO."""
        request = self.receive_until(b"\r\n\r\n").decode()
        key = re.search(r"(?i)sec-websocket-key: (\S+)", request)[1]
        guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1((key + guid).encode()).digest()).decode()
        self.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n"
            "Sec-WebSocket-Protocol: wamp.2.json\r\n\r\n".encode()
        )
        assert json.loads(self.frame()[1])[:2] == [1, "realm1"]
        return self

    def frame(self) -> tuple[int, bytes]:
        """Return the next frame's first byte and content; it must be masked."""
        first, second = self.receive(2)
        assert second & 0x80
        length = second & 0x7F
        if length == 126:
            length = int.from_bytes(self.receive(2), "big")
        elif length == 127:
            length = int.from_bytes(self.receive(8), "big")
        mask = self.receive(4)
        masked = self.receive(length)
        return first, bytes(octet ^ mask[at % 4] for at, octet in enumerate(masked))


def of_frame(first: int, payload: bytes) -> bytes:
    """Return a server's frame."""
    length = len(payload)
    if length <= 125:
        return bytes((first, length)) + payload
    if length <= 0xFFFF:
        return bytes((first, 126)) + length.to_bytes(2, "big") + payload
    return bytes((first, 127)) + length.to_bytes(8, "big") + payload


WELCOME = json.dumps([2, 7, {"roles": {"broker": {}, "dealer": {}}, "ä": "x" * 200}]).encode()
WELCOME_AS_UTF8 = WELCOME.replace(b"\\u00e4", "ä".encode())


@pytest.fixture
def websocket_by_hand(container) -> Iterator[WebSocketByHand]:
    """A component's WebSocket, seen from the router's side."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        transport = {
            "type": "websocket",
            "url": f"ws://{host}:{port}/ws",
            "serializers": ["json"],
            "options": {"max_message_size": 100_000, "fail_by_drop": False},
        }
        container.start(of_class("Modern", transport))
        with WebSocketByHand(listening.accept()[0]) as peer:
            yield peer.accept()


@pytest.mark.parametrize(
    "octets",
    [
        of_frame(0x81, WELCOME),
        of_frame(0x81, WELCOME_AS_UTF8),
        of_frame(0x01, WELCOME_AS_UTF8[:50]) + of_frame(0x80, WELCOME_AS_UTF8[50:]),
        b"".join(
            [
                of_frame(0x89, b"one"),
                of_frame(0x01, b""),
                of_frame(0x8A, b"unasked for"),
                *(of_frame(0x00, WELCOME_AS_UTF8[at : at + 7]) for at in range(0, 500, 7)),
                of_frame(0x89, b"two"),
                of_frame(0x80, b""),
            ]
        ),
    ],
    ids=["whole", "beyond-ascii", "two-fragments", "many-fragments-and-pings"],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_websocket_frames(container, websocket_by_hand, octets, piece):
    peer = websocket_by_hand
    for at in range(0, len(octets), piece):
        peer.send(octets[at : at + piece])
    if octets[0] == 0x89:
        assert peer.frame() == (0x8A, b"one")
        assert peer.frame() == (0x8A, b"two")
    first, register = peer.frame()
    assert first == 0x81
    assert json.loads(register)[3] == "com.hosted.modern"
    registered = json.dumps([65, json.loads(register)[1], 9]).encode()
    invocation = json.dumps([68, 1, 9, {}]).encode()
    last = json.dumps([68, 2, 9, {}]).encode()
    # Several messages in one read, and a control frame and a piece of a message after them.
    peer.send(
        of_frame(0x81, registered)
        + of_frame(0x81, invocation)
        + of_frame(0x89, b"between")
        + of_frame(0x81, last)[:-3]
    )
    assert json.loads(peer.frame()[1]) == [70, 1, {}, ["modern"]]
    assert peer.frame() == (0x8A, b"between")
    peer.send(of_frame(0x81, last)[-3:])
    assert json.loads(peer.frame()[1]) == [70, 2, {}, ["modern"]]


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (of_frame(0x81, b"\xff\xfe"), 1007),
        (of_frame(0x81, WELCOME_AS_UTF8[:-3] + b"\xc3"), 1007),
        (of_frame(0x81, b"[2"), 1002),
        (of_frame(0x81, b"{}"), 1002),
        (of_frame(0x82, WELCOME), 1002),
        (of_frame(0xC1, WELCOME), 1002),
        (of_frame(0x80, WELCOME), 1002),
        (of_frame(0x83, WELCOME), 1002),
        (bytes((0x81, 0x82, 1, 2, 3, 4, 0, 0)), 1002),
        (bytes((0x81, 126, 0, 5)) + b"12345", 1002),
        (of_frame(0x81, b"[" + b" " * 100_000 + b"]"), 1009),
        (of_frame(0x88, (1001).to_bytes(2, "big")), 1000),
    ],
)
def test_websocket_nonsense_ends_the_connection(container, websocket_by_hand, octets, code):
    websocket_by_hand.send(octets)
    first, reason = websocket_by_hand.frame()
    assert first == 0x88
    assert int.from_bytes(reason[:2], "big") == code
    websocket_by_hand.close()
    container.says("trying again")
