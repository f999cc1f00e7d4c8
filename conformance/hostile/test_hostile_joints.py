"""Floods through joints, and what they hold: peers of one protocol against those of the other."""

from __future__ import annotations

from rig.session import CALL, ERROR
from rig.waiting import await_true

from hostile.stage import Stage
from hostile.test_hostile_amqp import publication

PLACE = {"realm": "realm1", "role": "anonymous", "user": "test"}
CALLS = {
    "type": "procedure-to-target",
    "procedure": "com.joined.",
    "match": "prefix",
    "topic": "unserved",
    "exchange": "unserved",
    "pending_max": 100,
}
EVENTS = {"type": "exchange-to-topic", "exchange": "joined", "topic": "com.joined"}


def joined(attacked, joint: dict) -> Stage:
    """Start a node with a joint, and wait until it is there."""
    stage = attacked(joints=({"id": "joint", **PLACE, **joint},))
    stage.router.await_log(lambda line: line.text == "Joint 'joint' is there")
    return stage


def counted(stage: Stage, outcome: str) -> float:
    return stage.metric("joint_messages_total", outcome=outcome)


def test_calls_without_an_answer(attacked):
    stage = joined(attacked, CALLS)
    with stage.peer() as peer:
        peer.call("queue.declare", queue="unserved")
        peer.expect("queue.declare-ok")
        peer.call("queue.bind", queue="unserved", exchange="unserved", routing_key="unserved")
        peer.expect("queue.bind-ok")
        session = stage.session()
        for number in range(5_000):
            session.ask(CALL, {}, "com.joined.call", [], {"n": number, "more": "x" * 1000})
        # All but as many as may wait are told so.
        for _ in range(4_900):
            assert session.hear(ERROR)[4] == "crosstie.error.joint_pending_max"
        stage.everybody_else_is_served()
        # With their caller they are gone, and there is room for others.
        session.close()
        with stage.session() as other:

            def is_taken() -> bool:
                other.ask(CALL, {"timeout": 1}, "com.joined.call")
                return other.hear(ERROR)[4] == "wamp.error.timeout"

            await_true("a call is taken again", is_taken, 60)
    stage.grew_at_most(64)


def test_bodies_that_are_none(attacked):
    stage = joined(attacked, EVENTS)
    bodies = [b"[" * 1000, b'{"a":' * 1000, b"\xff" * 1000, b'"\\ud800"', b"1e999", b"{" * 4000]
    with stage.peer() as peer:
        for _ in range(500):
            peer.send(b"".join(publication("joined", "x", body=body) for body in bodies))
        peer.round_trip()
        rejected = "all are rejected"
        await_true(rejected, lambda: counted(stage, "refused") == 500 * len(bodies), 60)
    stage.grew_at_most(64)


def test_bodies_that_become_much(attacked):
    """A megabyte of small values is many times that while it is read."""
    stage = joined(attacked, EVENTS)
    many = b"[" + b"[]," * 300_000 + b"[]]"
    longer = b" " * (2 << 20)
    with stage.peer() as peer:
        for _ in range(20):
            peer.send(publication("joined", "x", body=many))
            peer.send(publication("joined", "x", body=longer))
        peer.round_trip()
        await_true("half are passed on", lambda: counted(stage, "passed") == 20, 60)
        await_true("half are rejected", lambda: counted(stage, "refused") == 20, 60)
    stage.grew_at_most(160)
