"""WAMP sessions that try to stop all others: patterns, batches, parts, and who does not read.

Sizes are small enough for a debug build; those of `crosstie bench hostile` are not.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading

from rig.rawsocket import RawSocket
from rig.session import (
    CALL,
    ERROR,
    EVENT,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    RESULT,
    SUBSCRIBE,
    SUBSCRIBED,
    UNREGISTER,
    UNREGISTERED,
    YIELD,
)
from rig.waiting import await_true
from rig.websocket import TEXT, WebSocket, payload_length

from hostile.stage import MIB, Stage

PROGRESSIVE = {
    "roles": {
        role: {"features": {"progressive_call_invocations": True, "call_canceling": True}}
        for role in ("caller", "callee")
    }
}


def wildcards(count: int) -> list[str]:
    """Return patterns that a topic of `a` matches but for its end: it goes down every branch."""
    chance = random.Random(1)
    patterns: set[str] = set()
    while len(patterns) < count:
        patterns.add(".".join([*chance.choices(["a", ""], k=127), "z"]))
    return sorted(patterns)


def test_wildcard_patterns(attacked):
    """They take memory in proportion, and a publication does not delay other clients."""
    stage = attacked()
    with stage.session() as session:
        for pattern in wildcards(2000):
            session.ask(SUBSCRIBE, {"match": "wildcard"}, pattern)
        answers = [session.hear_any() for _ in range(2000)]
        refused = [answer for answer in answers if answer[0] == ERROR]
        assert 0 < len(refused) < 2000
        assert "wildcard_shapes_max" in str(refused[0]), refused[0]
        with stage.session() as publisher:
            for _ in range(20):
                publisher.publish(".".join(["a"] * 128))
        stage.everybody_else_is_served()
    stage.grew_at_most(32)


def test_a_batch_of_many_publications(attacked):
    """To subscribers who read: none of them is lost, and memory keeps its bound."""
    stage = attacked()
    publications = 30_000
    with contextlib.ExitStack() as stack:
        subscribers = [stack.enter_context(stage.session()) for _ in range(20)]
        for subscriber in subscribers:
            subscriber.subscribe("t")
        readers = [Reader(subscriber) for subscriber in subscribers]
        publisher = stack.enter_context(stage.websocket("json.batched"))
        publisher.serializer = "json"
        send_batch(publisher, [[1, "realm1", {"roles": {"publisher": {}}}]])
        publisher.receive_octets()
        send_batch(publisher, [[PUBLISH, 1, {}, "t", []]] * publications)
        send_batch(publisher, [[PUBLISH, 2, {"acknowledge": True}, "t", []]])
        assert f"[{PUBLISHED},2," in publisher.receive_octets().decode().replace(" ", "")
        stage.everybody_else_is_served()
        dropped = stage.metric("events_dropped_full_total")
        wanted = 20 * (publications + 1) - dropped
        await_true("the events came", lambda: sum(r.events for r in readers) >= wanted, 60)
        assert not any(reader.ended for reader in readers)
    stage.grew_at_most(128)


def send_batch(session: WebSocket, messages: list[list]) -> None:
    """Send one message of a batched subprotocol."""
    octets = "".join(f"{json.dumps(each, separators=(',', ':'))}\x1e" for each in messages).encode()
    # A mask of zeros is a mask, and takes no time here.
    length = payload_length(len(octets))
    head = bytes([0x80 | TEXT, length[0] | 0x80]) + length[1:]
    session.send(head + bytes(4) + octets)


class Reader:
    """A thread that counts a RawSocket's messages, and looks into none."""

    def __init__(self, session: RawSocket):
        self.events = 0
        self.ended = False
        self._session = session
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        kept = b""
        while True:
            try:
                more = self._session.socket.recv(1 << 20)
            except OSError:
                return
            if not more:
                self.ended = True
                return
            kept += more
            at = 0
            while len(kept) - at >= 4:
                end = at + 4 + (int.from_bytes(kept[at : at + 4]) & 0xFFFFFF)
                if end > len(kept):
                    break
                self.events += 1
                at = end
            kept = kept[at:]


def test_messages_that_never_become_whole(attacked):
    """Received parts are on the account; at its bound those with most are closed."""
    stage = attacked(limits={"queue_bytes_total_max": 64 * MIB})
    length = 16 * MIB - 1
    part = struct.pack("!I", length) + bytes(12 * MIB)
    sessions = [stage.session() for _ in range(20)]
    for session in sessions:
        session.send(part)
    stage.everybody_else_is_served()
    stage.grew_at_most(160)
    assert stage.metric("connections_closed_for_debt_total") > 0
    for session in sessions:
        session.close()
    stage.nothing_is_held()


def test_compressed_frames_before_hello(attacked):
    """No client holds 16 MiB before it has joined."""
    stage = attacked(websocket={"compression": {"deflate": {}}})
    connections = []
    for _ in range(20):
        connection = WebSocket.tcp(stage.router.address("tcp"))
        status, headers, _ = connection.upgrade(Sec_WebSocket_Extensions="permessage-deflate")
        assert status == 101
        assert "permessage-deflate" in headers["sec-websocket-extensions"]
        head = bytes([0xC1]) + struct.pack("!BQ", 127 | 0x80, 15 * MIB) + bytes(4)
        connection.send(head + b"\x55" * (8 * MIB))
        connections.append(connection)
        # Its end, or the Close before it.
        connection.receive_all()
    stage.everybody_else_is_served()
    stage.grew_at_most(64)
    for connection in connections:
        connection.close()
    stage.nothing_is_held()


def test_options_that_calls_keep(attacked):
    """Options that are passed on are bounded, for they stay as long as the call."""
    stage = attacked()
    with stage.session(**PROGRESSIVE) as callee, stage.session(**PROGRESSIVE) as caller:
        callee.register("com.hostile.progressive")
        invocations = Reader(callee)
        refused = 0
        for _ in range(20):
            options = {"progress": True, "_x": "x" * (4 * MIB)}
            request = caller.ask(CALL, options, "com.hostile.progressive")
            # The one that is not refused has no answer; the next request's then comes first.
            probe = caller.ask(SUBSCRIBE, {}, "com.hostile.probe")
            answer = caller.hear_any()
            if answer[0] == ERROR:
                assert answer[1:3] == [CALL, request], answer
                refused += 1
                answer = caller.hear_any()
            assert answer[:2] == [SUBSCRIBED, probe], answer
        assert refused or invocations.events
        stage.everybody_else_is_served()
    stage.grew_at_most(48)
    stage.nothing_is_held()


def small_buffers(session) -> None:
    """Messages to a client that does not read must wait in the router, and not here."""
    session.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)


def deaf(stage: Stage, count: int) -> list[RawSocket]:
    """Return subscribers that are owed 12 MiB each and read nothing."""
    subscribers = [stage.session() for _ in range(count)]
    for subscriber in subscribers:
        small_buffers(subscriber)
        subscriber.subscribe("com.hostile.much")
    with stage.session() as publisher:
        for _ in range(12):
            publisher.publish("com.hostile.much", "x" * MIB)
    return subscribers


def results_come(stage: Stage, count: int) -> None:
    """A caller gets results of 3 MB."""
    with stage.session() as caller, stage.session() as callee:
        registration = callee.register("com.innocent")
        for _ in range(count):
            request = caller.ask(CALL, {}, "com.innocent")
            callee.say(YIELD, callee.hear(INVOCATION)[1], {}, ["x" * 3_000_000])
            assert caller.hear(RESULT)[1] == request
        # The router need not have noticed the end of this session when the next one registers.
        callee.ask(UNREGISTER, registration)
        callee.hear(UNREGISTERED)


def test_subscribers_who_do_not_read(attacked):
    """Bytes that many are owed exist once, and callers beside them get their results."""
    stage = attacked(limits={"queue_bytes_total_max": 128 * MIB})
    subscribers = deaf(stage, 30)
    results_come(stage, 10)
    stage.everybody_else_is_served()
    stage.grew_at_most(160)
    for subscriber in subscribers:
        subscriber.close()
    stage.nothing_is_held()


def test_subscribers_who_hardly_read(attacked):
    stage = attacked(limits={"queue_bytes_total_max": 128 * MIB})
    subscribers = deaf(stage, 30)
    for _ in range(5):
        for subscriber in subscribers:
            with contextlib.suppress(OSError):
                subscriber.socket.recv(4096)
        results_come(stage, 2)
    stage.everybody_else_is_served()
    stage.grew_at_most(160)
    for subscriber in subscribers:
        subscriber.close()
    stage.nothing_is_held()


def test_messages_that_grow_as_they_are_transcoded(attacked):
    """A control character is one byte in MessagePack and six in JSON."""
    stage = attacked(limits={"queue_bytes_total_max": 24 * MIB})
    callees = []
    for number in range(6):
        callee = stage.websocket("json").join()
        small_buffers(callee)
        callee.register(f"com.hostile.callee{number}")
        callees.append(callee)
    with stage.session() as caller:
        for number in range(6):
            caller.ask(CALL, {}, f"com.hostile.callee{number}", ["\x01" * (2 * MIB)])
        caller.ask(PUBLISH, {"acknowledge": True}, "com.hostile.end")
        while caller.hear_any()[0] != PUBLISHED:
            pass
    stage.everybody_else_is_served()
    stage.grew_at_most(80)
    for callee in callees:
        callee.close()
    stage.nothing_is_held()


def test_many_subscriptions_whose_sessions_leave(attacked):
    stage = attacked()
    sessions = []
    for session in range(10):
        sessions.append(stage.session())
        for number in range(2000):
            sessions[-1].ask(SUBSCRIBE, {}, f"com.hostile.s{session}.t{number}")
        for _ in range(2000):
            sessions[-1].hear(SUBSCRIBED)
    assert stage.metric("realm_subscriptions") >= 20_000
    for session in sessions:
        session.reset()
    await_true("they are gone", lambda: stage.metric("realm_subscriptions") < 100, 60)
    stage.grew_at_most(96)


def test_many_calls_whose_callee_leaves(attacked):
    """Every caller is told of every one of its calls."""
    stage = attacked()
    callee = stage.session()
    callee.register("com.hostile.silent")
    invocations = Reader(callee)
    callers = []
    for _ in range(5):
        callers.append(stage.session())
        for _ in range(2000):
            callers[-1].ask(CALL, {}, "com.hostile.silent")
    await_true("all are invoked", lambda: invocations.events == 10_000, 60)
    callee.socket.shutdown(socket.SHUT_RDWR)
    for caller in callers:
        errors = {caller.hear(ERROR)[2] for _ in range(2000)}
        assert len(errors) == 2000
        caller.close()
    stage.grew_at_most(64)


def test_events_are_still_delivered_after_all_that(attacked):
    """Events come in their order beside those who subscribe by pattern and leave again."""
    stage = attacked()
    with stage.session() as subscriber, stage.session() as publisher:
        subscriber.subscribe("com.order")
        for number in range(200):
            with stage.session() as passing:
                passing.ask(SUBSCRIBE, {"match": "wildcard"}, "com.")
                publisher.ask(PUBLISH, {}, "com.order", [number])
        for number in range(200):
            assert subscriber.hear(EVENT)[4] == [number]
