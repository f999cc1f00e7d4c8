"""Poison messages: they are counted, give way to others, and are dead at their limit."""

from __future__ import annotations

from collections.abc import Callable

import pika
import pytest
from rig.broker import Broker, Crosstie
from rig.waiting import DEADLINE_S, await_true

QUORUM = {"x-queue-type": "quorum"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def connect(broker: Broker) -> pika.BlockingConnection:
    """Connect as pika's users do."""
    return pika.BlockingConnection(pika.URLParameters(broker.url("test")))


class Consumer:
    """A consumer with a prefetch of 1, which settles nothing by itself."""

    def __init__(self, broker: Broker, queue: str):
        self.connection = connect(broker)
        self.channel = self.connection.channel()
        self.channel.basic_qos(prefetch_count=1)
        self.got = []
        self.channel.basic_consume(queue, self._take)

    def _take(self, _channel, method, properties, body) -> None:
        count = (properties.headers or {}).get("x-delivery-count", 0)
        self.got.append((int(body), int(count), method.delivery_tag))

    def next(self) -> tuple[int, int, int]:
        """Return the next message, its `x-delivery-count` and its tag."""

        def has_come() -> bool:
            self.connection.process_data_events(0.05)
            return bool(self.got)

        await_true("a message is delivered", has_come)
        return self.got.pop(0)


def publish(broker: Broker, queue: str, arguments: dict, *numbers: int) -> None:
    """Declare a durable queue, and publish these to it."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_delete(queue)
        channel.queue_declare(queue, durable=True, arguments=arguments)
        for number in numbers:
            channel.basic_publish("", queue, str(number).encode(), PERSISTENT)


def test_a_poison_message_is_dead_at_its_limit_though_the_broker_is_killed_each_time(
    start_broker: Callable[..., Crosstie],
):
    """0, 1, 2, dead-lettered: deliveries count that were out when the broker was killed."""
    broker = start_broker()
    with connect(broker) as connection:
        connection.channel().queue_declare("dead", durable=True)
    limited = {
        **QUORUM,
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    publish(broker, "poison", limited, 1)
    counts = []
    for _ in range(3):
        consumer = Consumer(broker, "poison")
        counts.append(consumer.next()[1])
        # The confirmed marker was written after the delivery.
        publish(broker, "marker", {}, 0)
        broker.restart(kill=True)
    assert counts == [0, 1, 2]
    with connect(broker) as connection:
        channel = connection.channel()
        _, properties, body = channel.basic_get("dead", auto_ack=True)
        assert body == b"1"
        (death,) = properties.headers["x-death"]
        assert (death["reason"], death["queue"]) == ("delivery_limit", "poison")
        assert channel.basic_get("poison") == (None, None, None)


@pytest.mark.parametrize("way", ["nack", "reject", "recover"])
def test_a_requeued_message_goes_behind_the_others_of_a_quorum_queue(broker: Broker, way: str):
    """Without a limit a poison message does not starve the queue."""
    queue = f"poison-{way}"
    publish(broker, queue, QUORUM, 1, 2, 3)
    consumer = Consumer(broker, queue)
    order = []
    for _ in range(7):
        number, count, tag = consumer.next()
        order.append((number, count))
        if way == "nack":
            consumer.channel.basic_nack(tag, requeue=True)
        elif way == "reject":
            consumer.channel.basic_reject(tag, requeue=True)
        else:
            consumer.channel.basic_recover(requeue=True)
    assert order == [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1), (1, 2)]
    consumer.channel.queue_delete(queue)
    consumer.connection.close()


def test_a_message_keeps_its_place_with_a_limit_and_when_its_connection_is_lost(broker: Broker):
    """A delivery limit, or the loss of a connection, lets a message come again at once."""
    publish(broker, "limited", {**QUORUM, "x-delivery-limit": 20}, 1, 2)
    consumer = Consumer(broker, "limited")
    for expected in range(3):
        number, count, tag = consumer.next()
        assert (number, count) == (1, expected)
        consumer.channel.basic_nack(tag, requeue=True)
    consumer.channel.queue_delete("limited")
    consumer.connection.close()
    publish(broker, "lost", QUORUM, 1, 2)
    for expected in range(3):
        consumer = Consumer(broker, "lost")
        assert consumer.next()[:2] == (1, expected)
        consumer.connection.close()
    with connect(broker) as connection:
        connection.channel().queue_delete("lost")


def test_dead_letters_that_cannot_arrive_at_least_once_are_warned_of(
    start_broker: Callable[..., Crosstie],
):
    """Without `reject-publish` the declaration falls back to at most once, as in RabbitMQ."""
    broker = start_broker()
    since = len(broker.router.log)
    arguments = {
        **QUORUM,
        "x-dead-letter-exchange": "",
        "x-dead-letter-strategy": "at-least-once",
    }
    with connect(broker) as connection:
        channel = connection.channel()
        for _ in range(3):
            channel.queue_declare("delayed", durable=True, arguments=arguments)

    def warnings() -> list:
        lines = broker.router.log[since:]
        return [line for line in lines if "published at most once" in line.text]

    await_true("the declaration is warned of", lambda: bool(warnings()), DEADLINE_S)
    assert len(warnings()) == 1
