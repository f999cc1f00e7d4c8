"""RawSocket by hand."""

from __future__ import annotations

import struct

from rig.plain import Plain
from rig.session import ABORT, VIOLATION, Wamp

NUMBERS = {"json": 1, "msgpack": 2, "cbor": 3}
MESSAGE, PING, PONG = 0, 1, 2
# 16 MiB, the longest there is.
LENGTH_EXPONENT_MAX = 15


class RawSocket(Wamp, Plain):
    """A connection that speaks RawSocket once it has shaken hands."""

    def shake_hands(
        self, serializer: str = "json", exponent: int = LENGTH_EXPONENT_MAX
    ) -> RawSocket:
        """Ask for a serializer and hold the router to its agreement."""
        self.serializer = serializer
        number = NUMBERS[serializer]
        reply = self.handshake(bytes([0x7F, exponent << 4 | number, 0, 0]))
        assert (reply[0], reply[1] & 0x0F, reply[2:]) == (0x7F, number, b"\0\0"), reply
        self.router_exponent = reply[1] >> 4
        return self

    def handshake(self, request: bytes) -> bytes:
        """Send any handshake; return the answer."""
        self.send(request)
        return self.receive(4)

    def send_frame(self, octets: bytes, kind: int = MESSAGE) -> None:
        """Send one frame with a right prefix."""
        self.send(struct.pack("!I", kind << 24 | len(octets)) + octets)

    def receive_frame(self) -> tuple[int, bytes]:
        """Return the next frame's kind and content."""
        (prefix,) = struct.unpack("!I", self.receive(4))
        return prefix >> 24, self.receive(prefix & 0xFFFFFF)

    def send_octets(self, octets: bytes) -> None:
        """Send the bytes of one message."""
        self.send_frame(octets)

    def receive_octets(self) -> bytes:
        """Return the next message, and answer pings on the way."""
        while True:
            kind, octets = self.receive_frame()
            if kind == PING:
                self.send_frame(octets, PONG)
            elif kind == MESSAGE:
                return octets

    def expect_abort(self, reason: str = VIOLATION) -> dict:
        """The session is aborted for this reason, and the connection ends; return the details."""
        abort = self.hear(ABORT)
        assert abort[2] == reason, abort
        self.expect_end()
        return abort[1]

    def expect_end(self) -> None:
        """Nothing more comes but the end."""
        assert self.receive_all() == b""
