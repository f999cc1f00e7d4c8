"""A member of a realm that says what no node would: frames by hand, over a plain client of NATS."""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Iterator

import cbor2
from rig.nats import NatsClient, NatsServer
from rig.waiting import await_true

KINDS = (
    "event",
    "hello",
    "heartbeat",
    "leave",
    "barrier",
    "passed",
    "pair",
    "call",
    "continue",
    "cancel",
    "result",
    "error",
    "bounce",
    "offer",
    "withdraw",
    "revoke",
    "ask",
    "known",
    "question",
    "answer",
)
NODE, SERVER, NUMBER, PAIR, SIDE, SAID, MATCH, PROCEDURE, POLICY, PART = (
    4,
    5,
    6,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
)
HEAD = struct.Struct(">BBBBIQQ")
# A question contains a CALL in CBOR, whose number says that no answer comes.
CBOR = 2
UNANSWERED = 1 << 53


def frame(
    kind: str,
    incarnation: int,
    fields: dict[int, bytes | int] | None = None,
    *,
    sequence: int = 0,
    epoch: int = 1,
    rest: bytes = b"",
    serializer: int = 0,
) -> bytes:
    """Return the octets of a frame."""
    text = HEAD.pack(1, KINDS.index(kind) + 1, 0, serializer, epoch, incarnation, sequence)
    for field, value in (fields or {}).items():
        octets = value.to_bytes(8, "big") if isinstance(value, int) else value
        text += bytes([field]) + len(octets).to_bytes(4, "big") + octets
    return text + b"\0" + rest


class Member:
    """One that has been let in, and goes through the motions of a pair."""

    def __init__(self, client: NatsClient, incarnation: int):
        self.client = client
        self.incarnation = incarnation
        client.subscribe(f"W1.realm1.n.{incarnation:016x}")
        client.flush()

    def hello(self) -> None:
        """Say who it is."""
        self.tell("hello", {NODE: b"hostile", SERVER: b"nowhere"})

    def tell(self, kind: str, fields: dict[int, bytes | int], **more: int) -> None:
        """Say something to all nodes."""
        self.client.publish("W1.realm1.c", frame(kind, self.incarnation, fields, **more))

    def pair(self) -> tuple[int, int]:
        """Agree on a pair with the first node that offers one: its incarnation, and its side."""
        self.hello()
        found: list[tuple[int, int]] = []

        def is_offered() -> bool:
            self.client.flush()
            for _, text in self.client.messages:
                _, kind, _, _, _, incarnation, _ = HEAD.unpack_from(text)
                if KINDS[kind - 1] == "pair":
                    # The first field is the other side's number.
                    found.append((incarnation, int.from_bytes(text[29:37], "big")))
            return bool(found)

        await_true("a pair is offered", is_offered)
        node, side = found[0]
        self.say(node, "pair", {SIDE: 1, PAIR: side, NUMBER: 1})
        return node, side

    def say(
        self, node: int, kind: str, fields: dict[int, bytes | int], rest: bytes = b"", **more: int
    ) -> None:
        """Say something to one node."""
        text = frame(kind, self.incarnation, fields, rest=rest, **more)
        self.client.publish(f"W1.realm1.n.{node:016x}", text)

    def ask(self, node: int, side: int, sequence: int, procedure: str, said: dict) -> None:
        """Say something to one node's realm that has no answer."""
        call = cbor2.dumps([48, UNANSWERED, {}, procedure, [], said])
        fields = {PAIR: side}
        self.say(node, "question", fields, call, sequence=sequence, serializer=CBOR)

    @contextlib.contextmanager
    def beating(self, server: NatsServer, node: int, side: int) -> Iterator[None]:
        """Have it be heard meanwhile, by another connection, whatever else it says."""
        said = struct.pack(">QQQ", node, side, 0)
        text = frame("heartbeat", self.incarnation, {NODE: b"hostile", SERVER: b"s", SAID: said})
        is_over = threading.Event()

        def beat() -> None:
            with server.client() as client:
                while not is_over.wait(0.3):
                    client.publish("W1.realm1.c", text)
                    client.flush()

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def left_behind(session: int, publication: int, topic: str, *args: object) -> dict:
    """Return a testament as one node entrusts it to another."""
    message = cbor2.dumps([16, publication, {}, topic, list(args)])
    return {"session": session, "scope": 1, "serializer": CBOR, "message": message}


def offer(side: int, procedure: bytes) -> dict[int, bytes | int]:
    """Return the fields of a registration."""
    part = struct.pack(">QQQQ", 1, 1, 1, 1)
    return {PAIR: side, MATCH: b"\0", PROCEDURE: procedure, POLICY: b"\0", PART: part}
