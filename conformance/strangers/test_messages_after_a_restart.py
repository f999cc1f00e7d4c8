"""`redelivered` after a restart: exact after an orderly end, and set for all after a kill."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable

import pika
import pytest
from rig.broker import Broker, Crosstie
from rig.router import binary

PERSISTENT = pika.BasicProperties(delivery_mode=2)
KINDS = {"classic": {}, "quorum": {"x-queue-type": "quorum"}}


def connect(broker: Broker) -> pika.BlockingConnection:
    """Connect as pika's users do."""
    return pika.BlockingConnection(pika.URLParameters(broker.url("test")))


def fill(broker: Broker, name: str, kind: str) -> None:
    """Declare a durable queue with the messages 1, 2 and 3."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True, arguments=KINDS[kind])
        for number in (1, 2, 3):
            channel.basic_publish("", name, str(number).encode(), PERSISTENT)


def hold_one(broker: Broker, name: str) -> pika.BlockingConnection:
    """Return a connection whose consumer has been sent message 1 and has not acknowledged it."""
    connection = connect(broker)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=1)
    for _, _, body in channel.consume(name):
        assert body == b"1"
        break
    return connection


def redelivered(broker: Broker, name: str) -> list[tuple[bytes, bool]]:
    """Take everything out of a queue, and say what is marked as redelivered."""
    found = []
    with connect(broker) as connection:
        channel = connection.channel()
        while True:
            method, _, body = channel.basic_get(name, auto_ack=True)
            if method is None:
                return found
            found.append((body, method.redelivered))


@pytest.mark.parametrize("kind", KINDS)
def test_an_undelivered_message_is_not_redelivered_after_a_stop(
    start_broker: Callable[..., Crosstie], kind: str
):
    """A stopped node says of each message whether it was delivered, and of no other."""
    broker = start_broker()
    fill(broker, "waiting", kind)
    fill(broker, "held", kind)
    connection = hold_one(broker, "held")
    broker.restart()
    assert redelivered(broker, "waiting") == [(b"1", False), (b"2", False), (b"3", False)]
    assert redelivered(broker, "held") == [(b"1", True), (b"2", False), (b"3", False)]
    with contextlib.suppress(pika.exceptions.AMQPError):
        connection.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_may_have_been_delivered_is_redelivered_after_a_kill(
    start_broker: Callable[..., Crosstie], kind: str
):
    """Messages of before a kill may have been delivered; those that come later were not."""
    broker = start_broker()
    fill(broker, "waiting", kind)
    broker.restart()
    broker.restart(kill=True)
    with connect(broker) as connection:
        connection.channel().basic_publish("", "waiting", b"4", PERSISTENT)
    broker.restart()
    expected = [(b"1", True), (b"2", True), (b"3", True), (b"4", False)]
    assert redelivered(broker, "waiting") == expected


def test_a_copy_of_a_running_node_says_what_was_delivered(
    start_broker: Callable[..., Crosstie], tmp_path
):
    """`crosstie backup` of a running node; a node that begins with it marks what was out."""
    broker = start_broker()
    fill(broker, "waiting", "classic")
    fill(broker, "held", "classic")
    connection = hold_one(broker, "held")
    copy = tmp_path / "copy.store"
    command = [str(binary()), "backup", str(copy), "--cbdir", str(broker.directory)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    # The node itself goes on, and a kill is a kill.
    broker.restart(kill=True)
    assert redelivered(broker, "waiting") == [(b"1", True), (b"2", True), (b"3", True)]
    second = start_broker(amqp={"store": str(copy)})
    assert redelivered(second, "waiting") == [(b"1", False), (b"2", False), (b"3", False)]
    assert redelivered(second, "held") == [(b"1", True), (b"2", False), (b"3", False)]
    with contextlib.suppress(pika.exceptions.AMQPError):
        connection.close()
