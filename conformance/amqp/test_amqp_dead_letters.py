"""Dead letters that arrive at least once: over kills, in deep queues, beside purge and delete."""

from __future__ import annotations

import pika
from rig.broker import Crosstie
from rig.brokers import connect
from rig.waiting import DEADLINE_S, await_true

ARGUMENTS = {
    "x-queue-type": "quorum",
    "x-overflow": "reject-publish",
    "x-dead-letter-strategy": "at-least-once",
    "x-dead-letter-exchange": "dlx",
}
PERSISTENT = pika.BasicProperties(delivery_mode=2)
LIMITS = {"memory_bytes_max": 8 << 20}
# Several times what the node may hold in memory.
DEEP = 16_000
BODY = b"x" * 1000


def kept(broker: Crosstie) -> int:
    """Return how many dead letters wait for their targets."""
    return int(broker.router.metric("amqp_dead_letters_kept"))


def await_kept(broker: Crosstie, count: int, within_s: float = DEADLINE_S) -> None:
    """Await that so many are kept."""
    await_true(f"{count} letters are kept", lambda: kept(broker) == count, within_s)


def publish(channel, queue: str, numbers: range, body: bytes = b"") -> None:
    """Publish numbered messages, and await the confirm of the last."""
    for number in numbers:
        channel.basic_publish("", queue, b"%08d" % number + body, PERSISTENT)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"last")


def reject(channel, queue: str, count: int) -> None:
    """Take that many messages and reject them."""
    for _ in range(count):
        method, _, _ = channel.basic_get(queue)
        channel.basic_reject(method.delivery_tag, requeue=False)


def numbers_in(channel, queue: str, count: int) -> list[int]:
    """Take that many numbered messages out of a queue."""
    channel.basic_qos(prefetch_count=500)
    found: list[int] = []
    for method, _, body in channel.consume(queue, inactivity_timeout=30):
        assert method is not None, f"only {len(found)} of {count} came"
        channel.basic_ack(method.delivery_tag)
        found.append(int(body[:8]))
        if len(found) == count:
            break
    channel.cancel()
    return found


def test_letters_are_kept_until_their_exchange_has_a_queue(start_broker) -> None:
    broker = start_broker()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True, arguments=ARGUMENTS)
        publish(channel, "q", range(3))
        reject(channel, "q", 3)
        await_kept(broker, 3)
        status, text = broker.router.health()
        assert status == 200
        assert "keeps 3 dead letters" in text
        assert "'q'" in text
        assert broker.router.metric("amqp_queues") == 1
        assert channel.queue_purge("q").method.message_count == 1
        channel.exchange_declare("dlx", "fanout")
        channel.queue_declare("dead")
        channel.queue_bind("dead", "dlx")
        await_kept(broker, 0)
        assert numbers_in(channel, "dead", 3) == [0, 1, 2]
        assert "dead letters" not in broker.router.health()[1]
        assert broker.router.metric("amqp_dead_letters_published_total") == 3


def test_letters_survive_kills_and_restarts(start_broker) -> None:
    broker = start_broker()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True, arguments=ARGUMENTS)
        publish(channel, "q", range(100))
        reject(channel, "q", 100)
        await_kept(broker, 100)
        # What is confirmed after them is on the disk after them.
        channel.basic_publish("", "q", b"later")
    for kill in (True, False, True):
        broker.restart(kill=kill)
        await_kept(broker, 100)
    with connect(broker) as connection:
        channel = connection.channel()
        assert channel.queue_declare("q", passive=True).method.message_count == 2
        channel.exchange_declare("dlx", "fanout", durable=True)
        channel.queue_declare("dead", durable=True)
        channel.queue_bind("dead", "dlx")
        await_kept(broker, 0)
        channel.confirm_delivery()
        channel.basic_publish("", "dead", b"later", PERSISTENT)
    broker.restart(kill=True)
    with connect(broker) as connection:
        assert numbers_in(connection.channel(), "dead", 100) == list(range(100))
    assert kept(broker) == 0


def test_a_full_target_gets_letters_as_it_has_room(start_broker) -> None:
    broker = start_broker()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.exchange_declare("dlx", "fanout")
        full = {"x-max-length": 10, "x-overflow": "reject-publish"}
        channel.queue_declare("dead", arguments=full)
        channel.queue_bind("dead", "dlx")
        channel.queue_declare("q", durable=True, arguments={**ARGUMENTS, "x-message-ttl": 1})
        publish(channel, "q", range(99))
        await_kept(broker, 90)
        channel.queue_unbind("dead", "dlx")
        channel.queue_bind("dead", "dlx")
        assert kept(broker) == 90
        assert numbers_in(channel, "dead", 99) == list(range(99))
        await_kept(broker, 0)


def test_a_deep_queue_of_letters_is_on_the_disk_and_leaves_in_order(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True, arguments={**ARGUMENTS, "x-message-ttl": 1})
        publish(channel, "q", range(DEEP), BODY)
        await_kept(broker, DEEP + 1, 60)
        assert broker.router.metric("amqp_memory_bytes") < LIMITS["memory_bytes_max"]
    broker.restart(kill=True)
    await_kept(broker, DEEP + 1)
    with connect(broker) as connection:
        channel = connection.channel()
        channel.exchange_declare("dlx", "fanout", durable=True)
        channel.queue_declare("dead", durable=True)
        channel.queue_bind("dead", "dlx")
        assert numbers_in(channel, "dead", DEEP) == list(range(DEEP))
        await_kept(broker, 0)


def test_a_deleted_queue_takes_its_letters_along(start_broker) -> None:
    broker = start_broker(amqp={"limits": LIMITS})
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True, arguments={**ARGUMENTS, "x-message-ttl": 1})
        publish(channel, "q", range(DEEP // 2), BODY)
        await_kept(broker, DEEP // 2 + 1, 60)
        assert channel.queue_delete("q").method.message_count == 0
        await_kept(broker, 0)
        is_empty = lambda: broker.router.metric("amqp_memory_bytes") == 0  # noqa: E731
        await_true("no message is in memory", is_empty, DEADLINE_S)
        # What is confirmed after the deletion is on the disk after it.
        channel.queue_declare("later", durable=True)
        channel.basic_publish("", "later", b"", PERSISTENT)
    broker.restart(kill=True)
    assert kept(broker) == 0
