"""An MQTT client by hand: it says what tests want, and keeps what it hears until it is wanted."""

from __future__ import annotations

import itertools
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rig import mqtt_wire as wire
from rig.mqtt_wire import Ack, Codes, Connack, Connect, Disconnect, Filter, Packet, Ping, Publish
from rig.plain import ClosedError, Plain
from rig.waiting import DEADLINE_S
from rig.websocket import CLOSE, WebSocket


class Peer(Plain):
    """A connection that speaks one version of MQTT.

    `hear` returns packets in the order of their arrival. `expect` returns the first one of a kind
    and keeps others for later, so that an acknowledgement is found among publications.
    """

    def __init__(self, connected: socket.socket, version: int = wire.V5):
        super().__init__(connected)
        self.version = version
        self.kept: list[Packet] = []
        self.ids = itertools.count(1)

    @classmethod
    def to(
        cls, address: tuple[str, int], version: int = wire.V5, patience_s: float = DEADLINE_S
    ) -> Peer:
        """Open a connection; `patience_s` is how long it waits for any answer."""
        opened = socket.create_connection(address, patience_s)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = cls(opened, version)
        opened.settimeout(patience_s)
        return peer

    @classmethod
    def secure(cls, address: tuple[str, int], context: ssl.SSLContext, version: int) -> Peer:
        """Open a connection over TLS."""
        opened = socket.create_connection(address, DEADLINE_S)
        return cls(context.wrap_socket(opened, server_hostname="localhost"), version)

    @classmethod
    def over_websocket(
        cls, address: tuple[str, int], version: int = wire.V5, path: str = "/ws"
    ) -> Peer:
        """Open a connection over WebSocket with the subprotocol `mqtt`."""
        websocket = WebSocket.tcp(address)
        status, headers, body = websocket.upgrade("mqtt", path)
        assert status == 101, (status, body)
        assert headers["sec-websocket-protocol"] == "mqtt", headers
        return cls(Tunnel(websocket), version)

    @classmethod
    def unix_mqtt(cls, path: Path, version: int = wire.V5) -> Peer:
        """Open a connection over a Unix socket."""
        peer = cls.unix(path)
        peer.version = version
        return peer

    def say(self, *packets: Packet) -> None:
        """Send packets in one piece."""
        self.send(b"".join(wire.encode(each, self.version) for each in packets))

    def hear(self) -> Packet:
        """Return the next packet."""
        return self.kept.pop(0) if self.kept else self._read()

    def expect(self, kind: type, wanted: Callable[[Packet], bool] = lambda _: True) -> Packet:
        """Return the next packet of this type that is wanted; keep others."""
        for at, packet in enumerate(self.kept):
            if isinstance(packet, kind) and wanted(packet):
                return self.kept.pop(at)
        while True:
            packet = self._read()
            if isinstance(packet, kind) and wanted(packet):
                return packet
            if isinstance(packet, Disconnect):
                raise AssertionError(f"the broker disconnects: {packet}")
            self.kept.append(packet)

    def ack(self, kind: int, id_: int) -> Ack:
        """Return an acknowledgement."""
        return self.expect(Ack, lambda ack: (ack.kind, ack.id) == (kind, id_))

    def connect(self, client_id: str = "", **more: object) -> Connack:
        """Send CONNECT, and hold the broker to accepting it; see `ask_to_connect`."""
        connack = self.ask_to_connect(client_id, **more)
        assert connack.code == 0, connack
        return connack

    def ask_to_connect(self, client_id: str = "", **more: object) -> Connack:
        """Send CONNECT; return the answer. What is no field of Connect is a property."""
        fields = Connect.__dataclass_fields__
        own = {name: value for name, value in more.items() if name in fields}
        properties = {name: value for name, value in more.items() if name not in fields}
        self.say(Connect(client_id, **{"properties": properties, **own}))
        answer = self.hear()
        assert isinstance(answer, Connack), answer
        return answer

    def subscribe(self, *filters: str | Filter, qos: int = 2, **properties: object) -> list[int]:
        """Subscribe; return the codes. Retained messages that come first are kept."""
        named = [each if isinstance(each, Filter) else Filter(each, qos) for each in filters]
        id_ = self.next_id()
        self.say(wire.Subscribe(id_, named, properties))
        return self.codes(wire.SUBACK, id_, len(named))

    def unsubscribe(self, *filters: str) -> list[int]:
        """Unsubscribe; return the codes, of which there are none before MQTT 5."""
        id_ = self.next_id()
        self.say(wire.Unsubscribe(id_, list(filters)))
        return self.codes(wire.UNSUBACK, id_, len(filters) if self.version == wire.V5 else 0)

    def codes(self, kind: int, id_: int, count: int) -> list[int]:
        """Return the codes of an answer, which must be so many."""
        answer = self.expect(Codes, lambda codes: (codes.kind, codes.id) == (kind, id_))
        assert len(answer.codes) == count, answer
        return answer.codes

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, retain: bool = False, **properties
    ) -> int:
        """Publish, and see that through; return the code of the first acknowledgement."""
        message = Publish(topic, payload, qos, retain, properties=properties)
        if not qos:
            self.say(message)
            return 0
        message.id = self.next_id()
        self.say(message)
        if qos == 1:
            return self.ack(wire.PUBACK, message.id).code
        received = self.ack(wire.PUBREC, message.id)
        if received.code < 0x80:
            self.say(Ack(wire.PUBREL, message.id))
            self.ack(wire.PUBCOMP, message.id)
        return received.code

    def message(self) -> Publish:
        """Return the next message, acknowledged as its QoS wants."""
        message = self.expect(Publish)
        if message.qos == 1:
            self.say(Ack(wire.PUBACK, message.id))
        elif message.qos == 2:
            self.say(Ack(wire.PUBREC, message.id))
            self.ack(wire.PUBREL, message.id)
            self.say(Ack(wire.PUBCOMP, message.id))
        return message

    def messages(self, count: int) -> list[Publish]:
        """Return so many."""
        return [self.message() for _ in range(count)]

    def round_trip(self) -> None:
        """Ping; the broker has done what it was sent before."""
        self.say(Ping(wire.PINGREQ))
        self.expect(Ping)

    def next_id(self) -> int:
        """Return a packet id that is free."""
        return (next(self.ids) - 1) % 0xFFFF + 1

    def leave(self, code: int = 0, **properties: object) -> None:
        """Disconnect in good order, and wait until the broker has closed."""
        self.say(Disconnect(code, properties))
        self.expect_end()
        self.close()

    def expect_end(self) -> None:
        """Nothing more comes but the end."""
        assert not self.kept, f"{self.kept} before the end"
        assert self.receive_all() == b""

    def expect_disconnect(self, *codes: int) -> Disconnect | None:
        """The broker closes; in MQTT 5 after a DISCONNECT with one of these codes.

        Return it. Before MQTT 5 a broker can say nothing. Other packets may come before the end.
        """
        packet = None
        try:
            while True:
                packet = self.hear()
        except ClosedError:
            pass
        if self.version < wire.V5:
            return None
        assert isinstance(packet, Disconnect), f"closed after {packet}"
        assert packet.code in codes, packet
        return packet

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Packet:
        (first,) = self.receive(1)
        length, shift = 0, 0
        while True:
            (octet,) = self.receive(1)
            length |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                break
            assert shift < 28, "a length of more than four octets"
        return wire.decode(first, self.receive(length), self.version)


class Tunnel:
    """Takes the place of a socket: octets go in frames of a WebSocket, in whatever pieces."""

    def __init__(self, websocket: WebSocket):
        self.websocket = websocket

    def sendall(self, octets: bytes) -> None:
        """Send octets as one message."""
        self.websocket.send_frame(2, bytes(octets))

    def recv(self, _: int) -> bytes:
        """Return the content of the next frame, or nothing at the end."""
        try:
            opcode, octets = self.websocket.receive_frame()
        except ClosedError:
            return b""
        if opcode == CLOSE:
            return b""
        assert opcode in (0, 2), f"opcode {opcode}: packets are binary"
        return octets or self.recv(0)

    def settimeout(self, seconds: float) -> None:
        """Wait so long for anything."""
        self.websocket.socket.settimeout(seconds)

    def close(self) -> None:
        """Close the connection."""
        self.websocket.close()


def plain(message: Publish) -> Publish:
    """Return a message without what is its connection's alone: packet id and DUP."""
    return replace(message, id=0, dup=False)
