"""Single active consumers: the order of messages at a change, and who succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import amqp
import pytest
from rig.broker import Broker
from rig.waiting import await_true

QUORUM = {"x-queue-type": "quorum"}


def connect(broker: Broker) -> amqp.Connection:
    """Connect, with confirms for what is published."""
    place = f"{broker.host}:{broker.port}"
    connection = amqp.Connection(place, userid="test", password="test", confirm_publish=True)
    connection.connect()
    return connection


class Consumer:
    """A connection of py-amqp's with one consumer."""

    def __init__(self, broker: Broker, queue: str, prefetch: int = 0, priority: int | None = None):
        self.connection = connect(broker)
        self.channel = self.connection.channel()
        self.channel.basic_qos(0, prefetch, False)
        self.got: list[int] = []
        arguments = {} if priority is None else {"x-priority": priority}
        self.tag = self.channel.basic_consume(queue, callback=self._take, arguments=arguments)

    def _take(self, message) -> None:
        self.got.append(int(message.body))
        self.last = message.delivery_tag

    def pump(self) -> None:
        """Take what has come so far."""
        try:
            while True:
                self.connection.drain_events(timeout=0.05)
        except TimeoutError:
            pass

    def await_got(self, *expected: int) -> None:
        """Wait until that has come, and nothing else."""

        def has_come() -> bool:
            self.pump()
            return len(self.got) >= len(expected)

        await_true(f"{expected} have come", has_come)
        assert self.got == list(expected)


@pytest.fixture
def declare(broker: Broker) -> Iterator[Callable[..., amqp.Channel]]:
    """Declare queues with a single active consumer; they are deleted after the test."""
    declared: list[str] = []

    def make(queue: str, arguments: dict) -> amqp.Channel:
        declared.append(queue)
        arguments = {**arguments, "x-single-active-consumer": True}
        channel = connect(broker).channel()
        channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
        return channel

    yield make
    connection = connect(broker)
    for queue in declared:
        connection.channel().queue_delete(queue)
    connection.close()


@pytest.fixture
def consumer(broker: Broker, declare) -> Iterator[Callable[..., Consumer]]:
    """Make consumers; their connections end before their queues."""
    assert declare
    made: list[Consumer] = []

    def make(*arguments, **more) -> Consumer:
        made.append(Consumer(broker, *arguments, **more))
        return made[-1]

    yield make
    for each in made:
        each.connection.close()


@pytest.mark.parametrize("way", ["close", "requeue"])
def test_the_successor_begins_with_what_a_cancelled_consumer_gives_back(
    declare, consumer, way: str
):
    """An active consumer that leaves by cancel and close changes no order."""
    channel = declare(f"order-{way}", {})
    active, successor = consumer(f"order-{way}", 5), consumer(f"order-{way}")
    for number in range(8):
        channel.basic_publish(amqp.Message(str(number)), "", f"order-{way}")
    active.await_got(0, 1, 2, 3, 4)
    active.channel.basic_cancel(active.tag)
    successor.pump()
    assert successor.got == []
    if way == "close":
        active.channel.close()
    else:
        active.channel.basic_recover(requeue=True)
    successor.await_got(*range(8))
    channel.connection.close()


@pytest.mark.parametrize("broker", ["crosstie"], indirect=True)
def test_the_successor_begins_when_all_is_acknowledged(declare, consumer):
    """A consumer that finishes its work after it has been cancelled hands over at its end."""
    channel = declare("finishing", {})
    active, successor = consumer("finishing", 2), consumer("finishing")
    for number in range(4):
        channel.basic_publish(amqp.Message(str(number)), "", "finishing")
    active.await_got(0, 1)
    active.channel.basic_cancel(active.tag)
    active.channel.basic_ack(1)
    # The answer comes behind whatever the acknowledgement had the broker send.
    active.channel.basic_qos(0, 1, False)
    successor.pump()
    assert successor.got == []
    active.channel.basic_ack(2)
    successor.await_got(2, 3)
    channel.connection.close()


def test_the_successor_on_a_quorum_queue_is_the_one_that_has_waited_longest(declare, consumer):
    """Priorities do not count there, and the successor does not wait."""
    channel = declare("waited", QUORUM)
    active = consumer("waited", 1)
    longest, urgent = consumer("waited", 1), consumer("waited", 1, priority=5)
    for number in range(2):
        channel.basic_publish(amqp.Message(str(number)), "", "waited")
    active.await_got(0)
    active.channel.basic_cancel(active.tag)
    longest.await_got(1)
    urgent.pump()
    assert urgent.got == []
    channel.connection.close()


def test_a_quorum_queue_with_a_single_active_consumer_is_not_read_by_get(declare):
    """`basic.get` would go past the order that the queue is there for."""
    channel = declare("locked", QUORUM)
    with pytest.raises(amqp.exceptions.ResourceLocked, match=r"basic\.get operations are not"):
        channel.basic_get("locked")
    channel.connection.close()
