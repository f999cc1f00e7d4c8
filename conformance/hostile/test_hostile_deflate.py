"""permessage-deflate as a weapon: messages that inflate to much, and sessions that all compress.

Sizes are small enough for a debug build.
"""

from __future__ import annotations

import random
import re
import socket
import zlib

from rig.session import EVENT, PUBLISH, PUBLISHED
from rig.websocket import TEXT, WebSocket

from hostile.stage import MIB, Stage
from hostile.witness import PATIENCE_S

COMPRESSION = {"compression": {"deflate": {}}}
TAIL = b"\0\0\xff\xff"


class Compressing(WebSocket):
    """A client that compresses what it sends, with context takeover, and inflates what comes."""

    def open(self, serializer: str = "json", path: str = "/ws") -> Compressing:
        """Upgrade with compression."""
        self.serializer = serializer
        offer = "permessage-deflate; client_max_window_bits"
        status, headers, body = self.upgrade(
            f"wamp.2.{serializer}", path, Sec_WebSocket_Extensions=offer
        )
        assert status == 101, (status, body)
        agreed = headers["sec-websocket-extensions"]
        asked = re.search(r"client_max_window_bits=(\d+)", agreed)
        window_bits = int(asked[1]) if asked else 15
        self.deflater = zlib.compressobj(6, zlib.DEFLATED, -window_bits)
        self.inflater = zlib.decompressobj(-15)
        return self

    def send_octets(self, octets: bytes) -> None:
        """Send one compressed message."""
        compressed = self.deflater.compress(octets) + self.deflater.flush(zlib.Z_SYNC_FLUSH)
        self.send_frame(TEXT, compressed.removesuffix(TAIL), reserved=4)

    def receive_frame(self) -> tuple[int, bytes]:
        """Return the next frame's opcode and inflated content."""
        first, length = self.receive(2)
        if length >= 126:
            length = int.from_bytes(self.receive(2 if length == 126 else 8))
        octets = self.receive(length)
        if first & 0x40:
            octets = self.inflater.decompress(octets + TAIL)
        return first & 0x0F, octets


def compressing(stage: Stage) -> Compressing:
    """Join with compression."""
    opened = Compressing.tcp(stage.router.address("tcp"))
    opened.socket.settimeout(PATIENCE_S)
    return opened.open().join()


def text(chance: random.Random, length: int) -> str:
    """Words of a few kinds, as applications send them."""
    words = [f"{name}-{chance.randrange(40)}" for name in ["room", "open", "state"]]
    return " ".join(chance.choices(words, k=length // 8))


def test_messages_that_inflate_to_much(attacked):
    """Some KiB inflate to 4 MiB for subscribers that do not read; one that reads gets all of it."""
    stage = attacked(limits={"queue_bytes_total_max": 64 * MIB}, websocket=COMPRESSION)
    deaf = [stage.websocket().join() for _ in range(8)]
    deaf += [compressing(stage) for _ in range(8)]
    for subscriber in deaf:
        subscriber.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        subscriber.subscribe("com.hostile.bomb")
    reader, publisher = compressing(stage), compressing(stage)
    reader.subscribe("com.hostile.bomb")
    for number in range(6):
        bomb = f"{number}" * (4 * MIB)
        request = publisher.ask(PUBLISH, {"acknowledge": True}, "com.hostile.bomb", [bomb])
        assert publisher.hear(PUBLISHED)[1] == request
        assert reader.hear(EVENT)[4] == [bomb]
    stage.everybody_else_is_served()
    stage.grew_at_most(200)
    for session in [*deaf, reader, publisher]:
        session.close()
    stage.nothing_is_held()


def test_sessions_that_all_compress(attacked):
    """More earlier messages than fit are dropped, and no session for them; each event arrives."""
    # 300 sessions with 4 KiB for each direction take 2.4 MB; a thread's compressor 0.4 MB.
    bound = 2_600_000
    limits = {"queue_bytes_total_max": bound}
    stage = attacked(limits=limits, websocket=COMPRESSION, threads=1)
    chance = random.Random(1)
    sessions = [compressing(stage) for _ in range(300)]
    for session in sessions:
        session.subscribe("com.hostile.squeezed")
    with stage.session("json") as publisher:
        for number in range(6):
            event = [number, text(chance, 1200)]
            publisher.publish("com.hostile.squeezed", *event)
            for session in sessions:
                assert session.hear(EVENT)[4] == event
                own = text(chance, 900)
                request = session.ask(PUBLISH, {"acknowledge": True}, "com.hostile.own", [own])
                assert session.hear(PUBLISHED)[1] == request
            assert stage.metric("held_bytes") <= 1.05 * bound
    assert stage.metric("held_bytes", kind="state") < 300 * 8192, "all of it has fit"
    assert stage.metric("connections_closed_for_debt_total") == 0
    stage.everybody_else_is_served()
    for session in sessions:
        session.close()
    stage.nothing_is_held()
