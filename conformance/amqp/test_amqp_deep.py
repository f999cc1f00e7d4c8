"""Queues larger than memory: no publisher is blocked, and every message comes once and in order."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from rig import amqp_wire as wire
from rig.amqp_peer import Peer
from rig.brokers import connect
from rig.waiting import await_true

BODY = b"x" * 1000
# Several times what the node may hold in memory.
COUNT = 24_000
LIMITS = {"memory_bytes_max": 8 << 20}


def publish(channel, queue: str, numbers: range, delivery_mode: int) -> None:
    """Publish numbered messages; the last one is confirmed, and so are all before it."""
    properties = pika.BasicProperties(delivery_mode=delivery_mode)
    for number in numbers:
        channel.basic_publish("", queue, b"%08d" % number + BODY, properties)


def take(channel, queue: str, count: int) -> Iterator[tuple[int, bool]]:
    """Consume that many messages: their numbers, and whether they are marked as redelivered."""
    channel.basic_qos(prefetch_count=500)
    for got, (method, _, body) in enumerate(channel.consume(queue, inactivity_timeout=30), 1):
        assert method is not None, f"only {got - 1} of {count} came"
        yield int(body[:8]), method.redelivered
        if got % 250 == 0 or got == count:
            channel.basic_ack(method.delivery_tag, multiple=True)
        if got == count:
            break
    channel.cancel()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("mode", ["persistent", "transient"])
def test_a_queue_larger_than_memory_is_drained_in_order(start_broker, kind: str, mode: str) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("deep", durable=True, arguments={"x-queue-type": kind})
        publish(channel, "deep", range(COUNT), {"persistent": 2, "transient": 1}[mode])
        declared = channel.queue_declare("deep", passive=True)
        assert declared.method.message_count == COUNT
        assert broker.router.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
        taken = list(take(channel, "deep", COUNT))
        assert taken == [(number, False) for number in range(COUNT)]
        assert channel.queue_declare("deep", passive=True).method.message_count == 0


@pytest.mark.parametrize("kill", [False, True], ids=["running", "killed"])
def test_a_queue_with_priorities_is_larger_than_memory(start_broker, kill: bool) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    priorities = 5
    count = COUNT // 2
    with connect(broker) as connection:
        channel = connection.channel()
        arguments = {"x-max-priority": priorities - 1}
        channel.queue_declare("deep", durable=True, arguments=arguments)
        for number in range(count):
            priority = number // 500 % priorities
            properties = pika.BasicProperties(delivery_mode=2, priority=priority)
            channel.basic_publish("", "deep", b"%08d" % number + BODY, properties)
        # A commit contains all that precede it.
        channel.queue_declare("after", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "after", b"", pika.BasicProperties(delivery_mode=2))
        assert channel.queue_declare("deep", passive=True).method.message_count == count
        assert broker.router.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
    if kill:
        broker.restart(kill=True)
        assert broker.router.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
    with connect(broker) as connection:
        channel = connection.channel()
        taken = [number for number, _ in take(channel, "deep", count)]
        expected = sorted(range(count), key=lambda number: (-(number // 500 % priorities), number))
        assert taken == expected
        for queue in ("deep", "after"):
            channel.queue_delete(queue)
        assert broker.router.metric("amqp_memory_bytes") == 0


def test_a_queue_larger_than_memory_survives_a_kill(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("deep", durable=True)
        channel.queue_declare("passing")
        channel.confirm_delivery()
        publish(channel, "passing", range(100), 1)
        publish(channel, "deep", range(2_000), 2)
    broker.restart(kill=True)
    with connect(broker) as connection:
        channel = connection.channel()
        assert channel.queue_declare("deep", passive=True).method.message_count == 2_000
        publish(channel, "deep", range(2_000, 2_100), 2)
        taken = list(take(channel, "deep", 2_100))
        assert [number for number, _ in taken] == list(range(2_100))
        assert all(redelivered for number, redelivered in taken if number < 2_000)
        assert not any(redelivered for number, redelivered in taken if number >= 2_000)


@pytest.mark.parametrize("mode", ["persistent", "transient"])
def test_many_queues_that_are_not_long_are_larger_than_memory(start_broker, mode: str) -> None:
    limits = {"memory_bytes_max": 4 << 20}
    queues, count = [f"short.{nth}" for nth in range(30)], 700
    broker = start_broker(amqp={"limits": limits})

    def memory() -> float:
        return broker.router.metric("amqp_memory_bytes")

    delivery_mode = {"persistent": 2, "transient": 1}[mode]
    with connect(broker) as connection:
        channel = connection.channel()
        for queue in queues:
            channel.queue_declare(queue, durable=True)
        # No queue is long, and together they have twice as much as memory may hold.
        for queue in queues:
            publish_short(channel, queue, count, delivery_mode)
        for queue in queues:
            assert channel.queue_declare(queue, passive=True).method.message_count == count
        assert memory() < limits["memory_bytes_max"]
    if mode == "persistent":
        broker.restart(kill=True)
        assert memory() < limits["memory_bytes_max"] / 2
    with connect(broker) as connection:
        channel = connection.channel()
        for queue in queues:
            assert [number for number, _ in take(channel, queue, count)] == list(range(count))
            channel.queue_delete(queue)
        await_true("nothing is held", lambda: memory() == 0)


def publish_short(channel, queue: str, count: int, delivery_mode: int) -> None:
    """Publish numbered messages that are short."""
    properties = pika.BasicProperties(delivery_mode=delivery_mode)
    for number in range(count):
        channel.basic_publish("", queue, b"%08d" % number, properties)


def test_basic_get_waits_for_a_message_that_is_on_the_disk(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("deep", durable=True)
        publish(channel, "deep", range(COUNT), 2)
        for number in range(COUNT):
            method, _, body = channel.basic_get("deep", auto_ack=True)
            assert method is not None, number
            assert int(body[:8]) == number
        assert channel.basic_get("deep")[0] is None


def test_what_was_sent_before_a_waiting_get_is_handled_once(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    peer = Peer(socket.create_connection(broker.address)).open()
    peer.channel()
    for queue in ("deep", "other"):
        peer.call("queue.declare", queue=queue, durable=True)
        peer.expect("queue.declare-ok")
    for number in range(COUNT):
        peer.publish("", "deep", b"%08d" % number + BODY, {"delivery_mode": 2})
    own = wire.method_payload("basic.publish", routing_key="other")
    get = wire.method_payload("basic.get", queue="deep", no_ack=True)
    one = wire.frame(wire.METHOD, 1, own) + wire.content({}, b"1", 1)
    pairs, at_once = COUNT // 4, 100
    for number in range(0, pairs, at_once):
        peer.send((one + wire.frame(wire.METHOD, 1, get)) * at_once)
        for place in range(at_once):
            assert int(peer.expect("basic.get-ok").body[:8]) == number + place
    peer.call("queue.declare", queue="other", passive=True)
    assert peer.expect("queue.declare-ok")["messages"] == pairs


def test_a_purge_and_a_deletion_leave_nothing_on_the_disk(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("deep", durable=True)
        publish(channel, "deep", range(COUNT), 2)
        held, _, body = channel.basic_get("deep")
        assert int(body[:8]) == 0
        assert channel.queue_purge("deep").method.message_count == COUNT - 1
        publish(channel, "deep", range(COUNT, COUNT + 10), 2)
        channel.basic_nack(held.delivery_tag)
        taken = [number for number, _ in take(channel, "deep", 11)]
        assert taken == [0, *range(COUNT, COUNT + 10)]
        channel.queue_delete("deep")
        assert broker.router.metric("amqp_memory_bytes") == 0


def test_a_queue_that_cannot_be_read_is_named_and_others_are_served(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        for queue in ("deep", "other"):
            channel.queue_declare(queue, durable=True)
            publish(channel, queue, range(6_000), 2)
    broker.restart()
    # Queue "deep" was written first.
    body = b"%08d" % 4_000 + BODY[:100]
    segments = sorted((broker.directory / "amqp.store").glob("*.segment"))
    file = next(file for file in segments if body in file.read_bytes())
    write(file, file.read_bytes().index(body), b"%08d" % 9_000)
    with connect(broker) as connection:
        channel = connection.channel()
        assert [number for number, _ in take(channel, "other", 6_000)] == list(range(6_000))
        channel.basic_qos(prefetch_count=6_000)
        got = []
        for _, _, body in channel.consume("deep", inactivity_timeout=2):
            if body is None:
                break
            got.append(int(body[:8]))
        assert got == list(range(len(got)))
        assert len(got) == 4_000
        told = broker.router.page("/health")
        assert "the next messages of queue 'deep' in vhost '/' cannot be read" in told
        # A purge needs to read nothing, and makes the queue one like the others again.
        purged = channel.queue_purge("deep").method.message_count
        assert purged == 6_000 - len(got)
        publish(channel, "deep", range(6_000, 6_010), 2)
        for _, _, body in channel.consume("deep", inactivity_timeout=30):
            got.append(int(body[:8]))
            if len(got) == 6_000 - purged + 10:
                break
        assert got[-10:] == list(range(6_000, 6_010))

    def is_forgotten() -> bool:
        return "queue 'deep'" not in broker.router.page("/health")

    await_true("the alarm has ended", is_forgotten)


def write(file: Path, place: int, octets: bytes) -> None:
    """Replace some bytes of a file."""
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(octets)
