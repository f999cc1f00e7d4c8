"""AMQP clients that try to stop all others: one operation that costs much, or much that is held.

Sizes are small enough for a debug build; those of `crosstie bench hostile` are not.
"""

from __future__ import annotations

import contextlib
import random
import struct

from rig import amqp_wire as wire
from rig.amqp_peer import Peer
from rig.waiting import await_true

# A routing key as long as there may be, of words that every pattern below has.
KEY = ".".join(["a"] * 120)


def frame(channel: int, method: str, **arguments: object) -> bytes:
    """Return the bytes of one method."""
    return wire.frame(wire.METHOD, channel, wire.method_payload(method, **arguments))


def publication(
    exchange: str, key: str, properties: dict | None = None, body: bytes = b""
) -> bytes:
    """Return the bytes of one message on channel 1."""
    method = frame(1, "basic.publish", exchange=exchange, routing_key=key)
    return method + wire.content(properties or {}, body, 1)


def declare(peer: Peer, queue: str, **arguments: object) -> None:
    peer.call("queue.declare", queue=queue, exclusive=True, arguments=arguments)
    peer.expect("queue.declare-ok")


def held(peer: Peer, queue: str, count: int) -> None:
    """Publish so many messages and be sent all of them, unacknowledged."""
    declare(peer, queue)
    peer.call("basic.consume", queue=queue, tag="held")
    peer.expect("basic.consume-ok")
    for _ in range(count // 1000):
        peer.send(publication("", queue, body=b"x") * 1000)
        for _ in range(1000):
            assert peer.hear().name == "basic.deliver"


def test_the_end_of_a_connection_with_many_consumers(attacked):
    stage = attacked()
    peer = stage.peer(channels=10)
    declare(peer, "consumed")
    for channel in range(1, 11):
        consume = [
            frame(channel, "basic.consume", queue="consumed", tag=str(number), nowait=True)
            for number in range(2000)
        ]
        peer.send(b"".join(consume))
        peer.round_trip(channel)
    assert stage.metric("amqp_consumers") >= 20_000
    peer.reset()
    await_true("the consumers are gone", lambda: stage.metric("amqp_consumers") < 100, 60)
    stage.grew_at_most(64)


def test_dead_letters_that_multiply(attacked):
    """Ten queues without room, each the others' dead letters."""
    stage = attacked()
    with stage.peer() as peer:
        peer.call("exchange.declare", exchange="dead", type="fanout")
        peer.expect("exchange.declare-ok")
        for number in range(10):
            room = {"x-max-length": 0, "x-dead-letter-exchange": "dead"}
            declare(peer, f"dead{number}", **room)
            peer.call("queue.bind", queue=f"dead{number}", exchange="dead")
            peer.expect("queue.bind-ok")
        peer.send(publication("dead", "") * 50)
        stage.everybody_else_is_served()
    stage.grew_at_most(64)


def test_prefetch_that_changes_with_much_unacknowledged(attacked):
    stage = attacked()
    with stage.peer() as peer:
        held(peer, "held", 20_000)
        changes = [
            frame(1, "basic.qos", count=1 + number % 2, is_global=number % 2 == 0)
            for number in range(3000)
        ]
        peer.send(b"".join(changes))
        for _ in changes:
            peer.expect("basic.qos-ok")


def test_the_end_of_a_connection_with_much_unacknowledged(attacked):
    stage = attacked()
    with stage.peer() as owner:
        owner.call("queue.declare", queue="kept")
        owner.expect("queue.declare-ok")
        peer = stage.peer()
        peer.call("basic.consume", queue="kept", tag="held")
        peer.expect("basic.consume-ok")
        for _ in range(20):
            peer.send(publication("", "kept", body=b"x") * 1000)
            for _ in range(1000):
                assert peer.hear().name == "basic.deliver"
        peer.reset()
        await_true("all are ready", lambda: stage.metric("amqp_messages_ready") >= 20_000, 60)


def test_messages_given_back_in_any_order(attacked):
    stage = attacked()
    with stage.peer() as peer:
        held(peer, "held", 20_000)
        peer.call("basic.cancel", tag="held")
        peer.expect("basic.cancel-ok")
        tags = list(range(1, 20_001))
        random.Random(1).shuffle(tags)
        peer.send(b"".join(frame(1, "basic.nack", delivery=tag, requeue=True) for tag in tags))
        peer.round_trip()
        peer.call("basic.get", queue="held", no_ack=True)
        assert peer.expect("basic.get-ok")["messages"] == 19_999


def bind_patterns(peer: Peer) -> None:
    """Bind patterns of which a key of `a` alone goes down every branch, and matches none.

    The first that would make a message too dear is refused, and says why; then the channel is anew.
    """
    declare(peer, "bound")
    peer.call("exchange.declare", exchange="patterns", type="topic", auto_delete=True)
    peer.expect("exchange.declare-ok")
    for number in range(2000):
        words = ["*" if number >> bit & 1 else "a" for bit in range(13)]
        key = ".".join([*words, "#", "z"])
        peer.call("queue.bind", queue="bound", exchange="patterns", routing_key=key)
        answer = peer.hear()
        if answer.name == "channel.close":
            assert answer["code"] == 406
            assert "exchange_steps_max" in answer["text"]
            peer.call("channel.close-ok")
            peer.channel()
            return
        assert answer.name == "queue.bind-ok"
    raise AssertionError("2,000 such patterns were taken")


def test_topics_that_nearly_match(attacked):
    stage = attacked()
    with stage.peer() as peer:
        bind_patterns(peer)
        peer.send(publication("patterns", KEY) * 200)
        peer.round_trip()


def test_one_message_with_many_routing_keys(attacked):
    """More than a message may cost closes the publisher's channel, and names the bound."""
    stage = attacked()
    with stage.peer() as peer:
        bind_patterns(peer)
        keys = [f"{KEY}.{number}" for number in range(450)]
        peer.send(publication("patterns", KEY, {"headers": {"CC": keys}}))
        code, text, *_ = peer.expect_channel_close()
        assert code == 406
        assert "CC and BCC" in text
    with stage.peer() as peer:
        declare(peer, "copied")
        peer.send(publication("", "nowhere", {"headers": {"CC": ["copied"]}}, b"copy"))
        peer.round_trip()
        peer.call("basic.get", queue="copied", no_ack=True)
        assert peer.expect("basic.get-ok").body == b"copy"


def test_many_bindings_of_a_headers_exchange(attacked):
    stage = attacked()
    with stage.peer() as peer:
        declare(peer, "bound")
        peer.call("exchange.declare", exchange="fields", type="headers", auto_delete=True)
        peer.expect("exchange.declare-ok")
        bindings = [
            frame(
                1,
                "queue.bind",
                queue="bound",
                exchange="fields",
                nowait=True,
                arguments={"x-match": "all", "k": str(number)},
            )
            for number in range(10_000)
        ]
        peer.send(b"".join(bindings))
        peer.round_trip()
        peer.send(publication("fields", "", {"headers": {"k": "none"}}) * 200)
        peer.send(publication("fields", "", {"headers": {"k": "77"}}, b"found"))
        peer.round_trip()
        peer.call("basic.get", queue="bound", no_ack=True)
        assert peer.expect("basic.get-ok").body == b"found"


def test_bodies_that_never_come_whole(attacked):
    """The client that holds most is closed, and not the next one."""
    stage = attacked(amqp={"memory_bytes_max": 64 << 20})
    peer = stage.peer(channels=13)
    part = wire.frame(wire.BODY, 1, b"x" * 131_064)
    # Bytes after the end are not read.
    peer.socket.settimeout(3)
    with contextlib.suppress(TimeoutError):
        for channel in range(1, 14):
            number = struct.pack("!H", channel)
            header = struct.pack("!HHQH", 60, 0, 100 << 20, 0)
            peer.call("basic.publish", channel)
            peer.send_frame(wire.CONTENT_HEADER, channel, header)
            # All together are a little more than there may be.
            peer.send((part[:1] + number + part[3:]) * (40 if channel < 13 else 33))
    closed = "amqp_connections_closed_incomplete_total"
    await_true("who holds most is closed", lambda: stage.metric(closed) == 1)
    with stage.peer() as small:
        declare(small, "small")
        small.call("confirm.select")
        small.expect("confirm.select-ok")
        for _ in range(20):
            small.publish("", "small", b"x" * 200_000)
            small.expect("basic.ack")
            small.call("queue.purge", queue="small")
            small.expect("queue.purge-ok")
    stage.everybody_else_is_served()
    stage.grew_at_most(200)
    peer.close()


def test_passwords_that_are_guessed(attacked):
    stage = attacked()
    for _ in range(5):
        with Peer.tcp(stage.router.address("amqp")) as guesser:
            guesser.start("test", "wrong")
            assert guesser.expect_connection_close()[0] == 403
    assert stage.metric("amqp_logins_failed_total") == 5
    stage.everybody_else_is_served()
    assert stage.metric("amqp_logins_delayed_total") > 0
