"""WebSocket by hand."""

from __future__ import annotations

import base64
import os
import struct

from rig.plain import Plain
from rig.session import ABORT, VIOLATION, Wamp

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class WebSocket(Wamp, Plain):
    """A connection that speaks WebSocket once it is upgraded."""

    # What the router may set of the reserved bits: one, where compression was agreed on. What it
    # compresses is not inflated here.
    reserved = 0

    def upgrade(
        self, subprotocol: str | None = "wamp.2.json", path: str = "/ws", **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask to be upgraded; return status, headers and, of a refusal, the body.

        `headers` change or, with None, leave out those of a right request; an underscore
        stands for a hyphen.
        """
        request = {
            "Host": "localhost",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Protocol": subprotocol,
        }
        request |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in request.items() if value is not None]
        self.send("\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode())
        status, headers, body = self.response()
        if "permessage-deflate" in headers.get("sec-websocket-extensions", ""):
            self.reserved = 0x40
        return status, headers, body

    def response(self) -> tuple[int, dict[str, str], bytes]:
        """Read an HTTP response."""
        status, *lines = self.receive_until(b"\r\n\r\n").decode().strip().split("\r\n")
        headers = {}
        for line in lines:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        body = self.receive(int(headers.get("content-length", 0)))
        return int(status.split()[1]), headers, body

    def open(self, serializer: str = "json", path: str = "/ws") -> WebSocket:
        """Upgrade, and hold the router to its agreement."""
        self.serializer = serializer
        status, headers, body = self.upgrade(f"wamp.2.{serializer}", path)
        assert status == 101, (status, body)
        assert headers["sec-websocket-protocol"] == f"wamp.2.{serializer}"
        return self

    def send_frame(
        self,
        opcode: int,
        octets: bytes = b"",
        *,
        fin: bool = True,
        reserved: int = 0,
        masked: bool = True,
        length: bytes | None = None,
    ) -> None:
        """Send one frame; `length` replaces the seven bits and what follows them."""
        head = bytes([fin << 7 | reserved << 4 | opcode])
        if length is None:
            length = payload_length(len(octets))
        if masked:
            mask = os.urandom(4)
            octets = bytes(octet ^ mask[at % 4] for at, octet in enumerate(octets))
            octets = mask + octets
            length = bytes([length[0] | 0x80]) + length[1:]
        self.send(head + length + octets)

    def receive_frame(self) -> tuple[int, bytes]:
        """Return the next frame's opcode and content."""
        first, second = self.receive(2)
        assert first & 0x70 & ~self.reserved == 0, f"reserved bits in {first:#x}"
        assert second & 0x80 == 0, "a router does not mask"
        length = second
        if length == 126:
            (length,) = struct.unpack("!H", self.receive(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.receive(8))
        return first & 0x0F, self.receive(length)

    def send_octets(self, octets: bytes) -> None:
        """Send the bytes of one message."""
        self.send_frame(TEXT if self.serializer.startswith("json") else BINARY, octets)

    def receive_octets(self) -> bytes:
        """Return the next message, and answer pings on the way."""
        while True:
            opcode, octets = self.receive_frame()
            if opcode == PING:
                self.send_frame(PONG, octets)
            else:
                assert opcode in (TEXT, BINARY), (opcode, octets)
                return octets

    def expect_close(self, *codes: int) -> None:
        """The router closes with one of these codes; perhaps after an ABORT."""
        opcode, octets = self.receive_frame()
        if opcode in (TEXT, BINARY):
            opcode, octets = self.receive_frame()
        assert opcode == CLOSE, (opcode, octets)
        (code,) = struct.unpack("!H", octets[:2])
        assert code in codes, (code, octets[2:])
        octets[2:].decode()
        self.expect_end()

    def expect_abort(self, *codes: int, reason: str = VIOLATION) -> dict:
        """The session is aborted for this reason, then closed; return the details."""
        abort = self.hear(ABORT)
        assert abort[2] == reason, abort
        self.expect_close(*codes)
        return abort[1]

    def expect_end(self) -> None:
        """Nothing more comes but the end."""
        assert self.receive_all() == b""


def payload_length(count: int) -> bytes:
    """Return the shortest way to write a length, as RFC 6455 section 5.2 wants it."""
    if count < 126:
        return bytes([count])
    if count < 1 << 16:
        return b"\x7e" + struct.pack("!H", count)
    return b"\x7f" + struct.pack("!Q", count)
