"""kombu: what it makes of the broker that it finds, and what it can ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import kombu
import pytest
from record import await_true

# How long nothing more has to come until nothing more is awaited: only what must not come depends
# on it.
SILENCE_S = 0.2


class Taker:
    """A consumer that keeps what it is handed, and acknowledges nothing by itself."""

    def __init__(self, connection: kombu.Connection, queue: kombu.Queue, prefetch: int) -> None:
        self.connection = connection
        self.messages: list[kombu.Message] = []
        self.consumer = kombu.Consumer(
            connection.channel(), [queue], on_message=self.messages.append
        )
        # As Celery does, where kombu says that only this reaches consumers that run.
        self.consumer.qos(prefetch_count=prefetch, apply_global=True)
        self.consumer.consume()

    def await_messages(self, count: int) -> list:
        """Return what came, in order, once it is so much and nothing more comes."""
        await_true(f"{count} messages", lambda: self._has(count))
        while self._take(SILENCE_S):
            pass
        assert len(self.messages) == count, [message.payload for message in self.messages]
        return [message.payload for message in self.messages]

    def _has(self, count: int) -> bool:
        self._take(0.01)
        return len(self.messages) >= count

    def _take(self, patience_s: float) -> bool:
        """Take in what comes in this time; return whether something did."""
        try:
            self.connection.drain_events(timeout=patience_s)
        except TimeoutError:
            return False
        return True


@pytest.fixture
def take(broker) -> Iterator[Callable[..., Taker]]:
    """Start consumers, each on a connection of its own."""
    running: list[kombu.Connection] = []

    def start(queue: kombu.Queue, prefetch: int) -> Taker:
        running.append(kombu.Connection(broker.url()))
        return Taker(running[-1], queue, prefetch)

    yield start
    for each in running:
        each.close()


def put(connection: kombu.Connection, queue: kombu.Queue, *payloads: object, **more: int) -> None:
    """Publish to a queue, declaring it before."""
    queue(connection.default_channel).declare()
    with connection.Producer() as producer:
        for payload in payloads:
            producer.publish(payload, routing_key=queue.name, **more)


def test_it_knows_what_prefetch_means_here(connection: kombu.Connection) -> None:
    """By product and version it decides whether its `basic.qos` is to be global."""
    connection.connect()
    assert connection.transport.qos_semantics_matches_spec(connection.connection) is False
    properties = connection.connection.server_properties
    assert properties["product"] == "RabbitMQ"
    assert properties["capabilities"]["consumer_priorities"] is True
    assert properties["cluster_name"]


def test_prefetch_is_raised_for_a_consumer_that_runs(
    connection: kombu.Connection, queue: str, take
) -> None:
    tasks = kombu.Queue(queue)
    put(connection, tasks, *range(10))
    taker = take(tasks, 2)
    assert taker.await_messages(2) == [0, 1]
    taker.consumer.qos(prefetch_count=5, apply_global=True)
    assert taker.await_messages(5) == [0, 1, 2, 3, 4]
    taker.messages[0].ack()
    assert taker.await_messages(6) == [0, 1, 2, 3, 4, 5]


def test_consumers_of_higher_priority_come_first(
    connection: kombu.Connection, queue: str, take
) -> None:
    put(connection, kombu.Queue(queue))
    low = take(kombu.Queue(queue, consumer_arguments={"x-priority": -1}), 100)
    plain = take(kombu.Queue(queue), 100)
    high = take(kombu.Queue(queue, consumer_arguments={"x-priority": 10}), 3)
    put(connection, kombu.Queue(queue), *range(5))
    # Those that it has no room for go to the next.
    assert high.await_messages(3) == [0, 1, 2]
    assert plain.await_messages(2) == [3, 4]
    assert low.await_messages(0) == []


def test_priorities_of_messages(connection: kombu.Connection, queue: str, take) -> None:
    tasks = kombu.Queue(queue, max_priority=10)
    for priority in (0, 5, 10, 3, 99):
        put(connection, tasks, f"first {priority}", f"second {priority}", priority=priority)
    taken = take(tasks, 0).await_messages(10)
    # 99 counts as the queue's highest.
    assert taken[:4] == ["first 10", "second 10", "first 99", "second 99"]
    assert taken[4:] == [f"{which} {level}" for level in (5, 3, 0) for which in ("first", "second")]


def test_a_requeued_message_comes_first_of_its_priority(
    connection: kombu.Connection, queue: str
) -> None:
    tasks = kombu.Queue(queue, max_priority=2)
    put(connection, tasks, "low", priority=0)
    put(connection, tasks, "high", "higher", priority=2)
    bound = tasks(connection.channel())
    first = bound.get()
    assert first.payload == "high"
    first.requeue()
    taken = [bound.get() for _ in range(3)]
    assert [each.payload for each in taken] == ["high", "higher", "low"]
    assert [each.delivery_info["redelivered"] for each in taken] == [True, False, False]
