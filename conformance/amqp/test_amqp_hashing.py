"""Queues that hashing exchanges choose: thousands of random messages on both brokers."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pika
import pytest
from rig.broker import Broker, Crosstie
from rig.rabbitmq import RabbitMq

MESSAGES = 3_000
WEIGHTS = (1, 1, 2, 3, 5, 8, 13, 100)


@contextmanager
def channel_of(broker: Broker) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url(vhost="/")))
    try:
        yield connection.channel()
    finally:
        connection.close()


def text(chance: random.Random) -> str:
    letters = [chance.choice("abcdefghijklmnopqrstuvwxyz.0123456789-äé€") for _ in range(40)]
    return "".join(letters[: chance.randrange(40)])


def value(chance: random.Random) -> object:
    """Return a header's value of any kind that pika sends."""
    size = chance.choice((4, 7, 20, 27, 28, 31, 32, 40, 62))
    number = chance.randrange(-(1 << size), 1 << size)
    kinds: tuple[Callable[[], object], ...] = (
        lambda: text(chance),
        lambda: number,
        lambda: chance.random() < 0.5,
        lambda: chance.randbytes(chance.randrange(30)),
        lambda: [text(chance), number, [True, None]],
        lambda: {text(chance)[:20] or "k": text(chance), "inner": {"n": number}},
        lambda: None,
    )
    return chance.choice(kinds)()


# By the argument that selects what is hashed.
MESSAGE_OF: dict[str, Callable[[random.Random], tuple[str, dict]]] = {
    "routing key": lambda chance: (text(chance), {}),
    "hash-header": lambda chance: ("k", {"headers": {"h": value(chance)}}),
    "hash-property message_id": lambda chance: ("k", {"message_id": text(chance)}),
    "hash-property correlation_id": lambda chance: ("k", {"correlation_id": text(chance)}),
    "hash-property timestamp": lambda chance: ("k", {"timestamp": chance.randrange(1 << 40)}),
}


def queues_of(name: str) -> list[str]:
    return [f"{name}.{number}" for number in range(len(WEIGHTS))]


def declare(channel, name: str, kind: str, arguments: dict) -> list[str]:
    """Declare a durable exchange and its queues; bind these in an order that is not theirs."""
    channel.exchange_declare(name, kind, durable=True, arguments=arguments)
    queues = queues_of(name)
    for queue in queues:
        channel.queue_declare(queue, durable=True)
    for queue, weight in reversed(list(zip(queues, WEIGHTS, strict=True))):
        channel.queue_bind(queue, name, str(weight))
    return queues


def published(channel, name: str, messages: list[tuple[str, dict]]) -> list[str]:
    """Publish the messages; return the queue of each."""
    channel.tx_select()
    for number, (key, properties) in enumerate(messages):
        channel.basic_publish(name, key, str(number), pika.BasicProperties(**properties))
    channel.tx_commit()
    found = [""] * len(messages)
    for queue in queues_of(name):
        while True:
            method, _, body = channel.basic_get(queue, auto_ack=True)
            if method is None:
                break
            found[int(body)] += queue.rpartition(".")[2]
    return found


def choices(broker: Broker, name: str, kind: str, arguments: dict, messages: list) -> list[str]:
    with channel_of(broker) as channel:
        queues = declare(channel, name, kind, arguments)
        try:
            return published(channel, name, messages)
        finally:
            channel.exchange_delete(name)
            for queue in queues:
                channel.queue_delete(queue)


@pytest.mark.parametrize("hashed", MESSAGE_OF)
def test_consistent_hash(hashed: str, rabbitmq: RabbitMq, crosstie_broker: Crosstie) -> None:
    chance = random.Random(hashed)
    messages = [MESSAGE_OF[hashed](chance) for _ in range(MESSAGES)]
    argument, _, property_name = hashed.partition(" ")
    arguments = {} if hashed == "routing key" else {argument: property_name or "h"}
    of_each = [
        choices(broker, "consistent", "x-consistent-hash", arguments, messages)
        for broker in (rabbitmq, crosstie_broker)
    ]
    assert of_each[0] == of_each[1]
    assert all(len(queue) == 1 for queue in of_each[0])
    # Else nothing would have been told apart.
    assert len(set(of_each[0])) == len(WEIGHTS)


def test_modulus_hash(rabbitmq: RabbitMq, crosstie_broker: Crosstie) -> None:
    chance = random.Random("modulus")
    messages = []
    for _ in range(MESSAGES):
        copies = {"CC": [text(chance) for _ in range(chance.randrange(3))]}
        messages.append((text(chance), {"headers": copies} if chance.random() < 0.5 else {}))
    of_each = [
        choices(broker, "modulus", "x-modulus-hash", {}, messages)
        for broker in (rabbitmq, crosstie_broker)
    ]
    assert of_each[0] == of_each[1]
    assert len(set(of_each[0])) == len(WEIGHTS)


def test_random_is_even(crosstie_broker: Crosstie) -> None:
    found = choices(crosstie_broker, "random", "x-random", {}, [("k", {})] * MESSAGES)
    shares = [found.count(str(number)) / MESSAGES for number in range(len(WEIGHTS))]
    # Six standard deviations of a fair draw.
    assert all(abs(share - 1 / len(WEIGHTS)) < 0.037 for share in shares)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_ring_is_the_same_after_a_restart(kill: bool, start_broker, tmp_path) -> None:
    broker = start_broker(amqp={"store": str(tmp_path / "store")})
    chance = random.Random("restart")
    messages = [MESSAGE_OF["routing key"](chance) for _ in range(500)]
    with channel_of(broker) as channel:
        declare(channel, "ring", "x-consistent-hash", {})
        # The first binding of the first queue goes, and its second one counts.
        channel.queue_bind("ring.0", "ring", "40")
        channel.queue_unbind("ring.0", "ring", str(WEIGHTS[0]))
        before = published(channel, "ring", messages)
    broker.restart(kill=kill)
    with channel_of(broker) as channel:
        assert published(channel, "ring", messages) == before
        channel.queue_unbind("ring.3", "ring", str(WEIGHTS[3]))
        channel.queue_bind("ring.3", "ring", str(WEIGHTS[3]))
        last = published(channel, "ring", messages)
    broker.restart(kill=kill)
    with channel_of(broker) as channel:
        assert published(channel, "ring", messages) == last
    assert last != before


def test_a_binding_that_remains_keeps_its_queue_on_the_ring(crosstie_broker: Crosstie) -> None:
    messages = [(str(number), {}) for number in range(200)]
    with channel_of(crosstie_broker) as channel:
        queues = declare(channel, "remains", "x-consistent-hash", {})
        before = published(channel, "remains", messages)
        channel.queue_bind("remains.6", "remains", "70")
        channel.queue_unbind("remains.6", "remains", "70")
        kept = published(channel, "remains", messages)
        channel.queue_bind("remains.7", "remains", "1000")
        channel.queue_unbind("remains.7", "remains", str(WEIGHTS[7]))
        grown = published(channel, "remains", messages)
        channel.exchange_delete("remains")
        for queue in queues:
            channel.queue_delete(queue)
    assert "6" in kept
    assert kept == before
    assert grown.count("7") > kept.count("7")


def test_a_ring_of_a_thousand_million_places(crosstie_broker: Crosstie) -> None:
    """A ring takes memory for its bindings, not for its places."""
    messages = [(struct.pack(">I", number).hex(), {}) for number in range(100)]
    with channel_of(crosstie_broker) as channel:
        channel.exchange_declare("large", "x-consistent-hash")
        for number in range(8):
            channel.queue_declare(f"large.{number}")
            channel.queue_bind(f"large.{number}", "large", "1000000000")
        found = published(channel, "large", messages)
        assert set(found) == set("01234567")
        for number in range(8):
            channel.queue_delete(f"large.{number}")
        channel.exchange_delete("large")
