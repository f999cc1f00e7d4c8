"""AMQP by hand: for what no client library would say, and to see every byte that comes."""

from __future__ import annotations

import select
import socket
import struct

from rig import amqp_wire as wire
from rig.amqp_wire import Frame, Method
from rig.plain import ClosedError, Plain

CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


class Peer(Plain):
    """A connection that says exactly what it is told to."""

    frame_max = 131072

    def __init__(self, connected):
        super().__init__(connected)
        if connected.family == socket.AF_INET:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Frames of channels without a waiting reader.
        self.waiting: list[tuple[int, Method]] = []

    def open(
        self,
        user: str = "test",
        password: str = "test",
        vhost: str = "/",
        *,
        mechanism: str = "PLAIN",
        response: bytes | None = None,
        heartbeat: int = 0,
        frame_max: int | None = None,
        channel_max: int | None = None,
        properties: dict | None = None,
    ) -> Peer:
        """Negotiate, and open the vhost; a refusal is an assertion that names it."""
        self.start(user, password, mechanism=mechanism, response=response, properties=properties)
        tune = self.expect("connection.tune")
        self.frame_max = tune["frame_max"] if frame_max is None else frame_max
        self.call(
            "connection.tune-ok",
            0,
            channel_max=tune["channel_max"] if channel_max is None else channel_max,
            frame_max=self.frame_max,
            heartbeat=heartbeat,
        )
        self.call("connection.open", 0, vhost=vhost)
        self.expect("connection.open-ok")
        return self

    def start(
        self,
        user: str = "test",
        password: str = "test",
        *,
        mechanism: str = "PLAIN",
        response: bytes | None = None,
        properties: dict | None = None,
    ) -> Method:
        """Say the header and who this is; return the broker's `connection.start`."""
        self.send(wire.HEADER)
        start = self.expect("connection.start")
        if properties is None:
            properties = {"product": "conformance", "capabilities": CAPABILITIES}
        self.call(
            "connection.start-ok",
            0,
            properties=properties,
            mechanism=mechanism,
            response=plain(user, password) if response is None else response,
            locale="en_US",
        )
        return start

    def channel(self, number: int = 1) -> int:
        """Open a channel."""
        self.call("channel.open", number)
        self.expect("channel.open-ok", number)
        return number

    def call(self, method: str, channel: int = 1, **arguments: object) -> None:
        """Send a method."""
        self.send_frame(wire.METHOD, channel, wire.method_payload(method, **arguments))

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: dict | None = None,
        channel: int = 1,
        **more: object,
    ) -> None:
        """Send a message."""
        payload = wire.method_payload(
            "basic.publish", exchange=exchange, routing_key=routing_key, **more
        )
        content = wire.content(properties or {}, body, channel, self.frame_max or 131072)
        self.send(wire.frame(wire.METHOD, channel, payload) + content)

    def send_frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Send a well-formed frame, whatever it says."""
        self.send(wire.frame(kind, channel, payload))

    def receive_frame(self) -> Frame:
        """Return the next frame, heartbeats too."""
        kind, channel, size = struct.unpack("!BHI", self.receive(7))
        assert kind in (1, 2, 3, 8), (kind, channel, size)
        assert size <= (self.frame_max or 2**32) - 8, f"a frame of {size} bytes"
        payload = self.receive(size)
        assert self.receive(1) == b"\xce"
        return Frame(kind, channel, payload)

    def receive_method(self) -> tuple[int, Method]:
        """Return the next method with its content, and on which channel it came."""
        while (first := self.receive_frame()).kind == wire.HEARTBEAT:
            pass
        assert first.kind == wire.METHOD, first
        method = wire.parse_method(first.payload)
        if method.name in wire.CONTENT:
            header = self._content_frame(wire.CONTENT_HEADER, first.channel)
            method.properties, left = wire.parse_properties(header.payload)
            while left:
                part = self._content_frame(wire.BODY, first.channel).payload
                method.body += part
                left -= len(part)
                assert left >= 0, method
        return first.channel, method

    def hear(self, channel: int = 1) -> Method:
        """Return the next method on a channel."""
        for at, (number, method) in enumerate(self.waiting):
            if number == channel:
                del self.waiting[at]
                return method
        while True:
            number, method = self.receive_method()
            if number == channel:
                return method
            self.waiting.append((number, method))

    def expect(self, name: str, channel: int | None = None) -> Method:
        """Return the next method, which must be this one."""
        method = self.hear(0 if name.startswith("connection.") else channel or 1)
        assert method.name == name, method
        return method

    def expect_connection_close(self) -> tuple[int, str, int, int]:
        """Return how the broker closes the connection, and agree; then the socket ends."""
        while True:
            number, close = self.receive_method()
            if number == 0 and close.name == "connection.close":
                break
        self.call("connection.close-ok", 0)
        rest = self.receive_all()
        assert rest == b"", rest
        return tuple(close.arguments.values())

    def expect_channel_close(self, channel: int = 1) -> tuple[int, str, int, int]:
        """Return how the broker closes a channel, and agree."""
        close = self.expect("channel.close", channel)
        self.call("channel.close-ok", channel)
        return tuple(close.arguments.values())

    def expect_end(self) -> None:
        """Nothing more comes but the end."""
        assert self.receive_all() == b""

    def has_heard(self, seconds: float) -> bool:
        """Whether something comes within this time, be it the end."""
        return bool(self._kept or select.select([self.socket], [], [], seconds)[0])

    def leave(self) -> None:
        """Close the connection in good order."""
        self.call("connection.close", 0, code=200, text="bye")
        while self.receive_method()[1].name != "connection.close-ok":
            pass
        self.close()

    def round_trip(self, channel: int = 1) -> None:
        """Hold the broker to serving this connection."""
        self.call("basic.qos", channel)
        self.expect("basic.qos-ok", channel)

    def _content_frame(self, kind: int, channel: int) -> Frame:
        """The broker may not put anything of the same channel, nor we expect another, between."""
        while (part := self.receive_frame()).kind == wire.HEARTBEAT:
            pass
        assert (part.kind, part.channel) == (kind, channel), part
        return part


def plain(user: str, password: str) -> bytes:
    """Return the response of SASL PLAIN."""
    return b"\0" + user.encode() + b"\0" + password.encode()


def amqplain(user: str, password: str) -> bytes:
    """Return the response of AMQPLAIN: a table without its length."""
    return wire.table({"LOGIN": user, "PASSWORD": password})[4:]


__all__ = ["ClosedError", "Peer", "amqplain", "plain"]
