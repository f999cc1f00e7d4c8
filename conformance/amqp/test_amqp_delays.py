"""Delayed messages (`x-delayed-message`): in their order, over kills, more than memory holds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pika
import pytest
from rig.broker import Crosstie
from rig.brokers import connect
from rig.waiting import DEADLINE_S, await_true

PERSISTENT = pika.BasicProperties(delivery_mode=2)
LIMITS = {"memory_bytes_max": 8 << 20}
# Several times what the node may hold in memory.
DEEP = 12_000
BODY = b"x" * 1000
FAR_MS = 3_600_000


def declare(channel) -> None:
    """Declare an exchange that delays, and a queue behind it."""
    arguments = {"x-delayed-type": "direct"}
    channel.exchange_declare("x", "x-delayed-message", durable=True, arguments=arguments)
    channel.queue_declare("q", durable=True)
    channel.queue_bind("q", "x", "k")


def delay(channel, number: int, delay_ms: int, body: bytes = b"") -> None:
    """Publish a numbered message with a delay."""
    properties = pika.BasicProperties(delivery_mode=2, headers={"x-delay": delay_ms})
    channel.basic_publish("x", "k", b"%08d" % number + body, properties)


def take(channel, count: int) -> Iterator[tuple[int, int]]:
    """Take that many messages: their numbers, and their headers."""
    channel.basic_qos(prefetch_count=500)
    messages = channel.consume("q", inactivity_timeout=30)
    for got, (method, properties, body) in enumerate(messages, 1):
        assert method is not None, f"only {got - 1} of {count} came"
        channel.basic_ack(method.delivery_tag)
        yield int(body[:8]), properties.headers["x-delay"]
        if got == count:
            break
    channel.cancel()


def delayed(broker: Crosstie) -> int:
    """Return how many messages are held back."""
    return int(broker.router.metric("amqp_messages_delayed"))


def test_messages_leave_in_the_order_of_their_due_times_and_none_before_it(start_broker) -> None:
    broker = start_broker()
    with connect(broker) as connection:
        channel = connection.channel()
        declare(channel)
        delays = [random.Random(7).randrange(1, 4_000) for _ in range(2_000)]
        due: dict[int, float] = {}
        for number, delay_ms in enumerate(delays):
            # The broker counts from no earlier moment, in whole milliseconds.
            due[number] = time.monotonic() + delay_ms / 1000 - 0.002
            delay(channel, number, delay_ms)
        late_s = []
        for number, header in take(channel, len(delays)):
            assert header == -delays[number]
            late_s.append(time.monotonic() - due[number])
        assert min(late_s) >= 0
        assert broker.router.metric("amqp_queues") == 1
        assert delayed(broker) == 0


def test_delayed_messages_survive_kills_and_restarts(start_broker) -> None:
    broker = start_broker()
    with connect(broker) as connection:
        channel = connection.channel()
        declare(channel)
        for number in range(300):
            delay(channel, number, FAR_MS + number)
        channel.confirm_delivery()
        delay(channel, 300, 1)
        await_true("one is due", lambda: delayed(broker) == 300, DEADLINE_S)
    for kill in (True, False, True):
        broker.restart(kill=kill)
        assert delayed(broker) == 300
    with connect(broker) as connection:
        channel = connection.channel()
        assert channel.queue_declare("q", passive=True).method.message_count == 1
        channel.exchange_delete("x")
        assert delayed(broker) == 0
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"", PERSISTENT)
    broker.restart(kill=True)
    assert delayed(broker) == 0


def test_more_delayed_messages_than_memory_holds_arrive_after_a_kill(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        declare(channel)
        chosen = random.Random(7)
        far = [chosen.randrange(FAR_MS, 40 * FAR_MS) for _ in range(DEEP)]
        for number, delay_ms in enumerate(far):
            delay(channel, DEEP + number, delay_ms, BODY)
        soon = [chosen.randrange(8_000, 14_000) for _ in range(2_000)]
        for number, delay_ms in enumerate(soon):
            delay(channel, number, delay_ms, BODY)
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"", PERSISTENT)
        channel.queue_purge("q")
        assert broker.router.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
    broker.restart(kill=True)
    with connect(broker) as connection:
        arrived = [number for number, _ in take(connection.channel(), len(soon))]
        assert sorted(arrived) == list(range(len(soon)))
    assert delayed(broker) == DEEP


def test_many_delayed_messages_go_with_their_exchange(start_broker) -> None:
    """Those that are due soon, those that wait on the disk, and those published meanwhile."""
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection, connect(broker) as other:
        channel, publisher = connection.channel(), other.channel()
        declare(channel)
        chosen = random.Random(7)
        for number in range(DEEP):
            near_ms, far_ms = chosen.randrange(60_000, 70_000), chosen.randrange(FAR_MS, 9 * FAR_MS)
            delay(publisher, number, near_ms if number % 2 else far_ms, BODY)
        publisher.queue_declare("q", passive=True)
        assert delayed(broker) == DEEP
        # The publisher goes on until its channel is closed, since the exchange is gone.
        for number in range(100):
            delay(publisher, number, FAR_MS)
        channel.exchange_delete("x")

        def go_on() -> None:
            # Any of its messages may be the one that is refused.
            delay(publisher, 0, FAR_MS)
            publisher.queue_declare("q", passive=True)

        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no exchange 'x'"):
            go_on()
        assert delayed(broker) == 0
        await_true("memory is free", lambda: broker.router.metric("amqp_memory_bytes") == 0)
        # An exchange of the same name has none of them.
        declare(channel)
        delay(channel, 7, 1)
        assert [number for number, _ in take(channel, 1)] == [7]
        assert delayed(broker) == 0
