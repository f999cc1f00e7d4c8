"""Copies of published and delivered messages, as RabbitMQ's firehose has them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pika
import pytest
from rig.broker import Broker
from rig.brokers import connect
from rig.router import binary
from rig.waiting import await_true

EXCHANGE = "amq.rabbitmq.trace"
PROPERTIES = pika.BasicProperties(
    content_type="text/plain",
    delivery_mode=2,
    priority=3,
    timestamp=1_700_000_000,
    headers={"CC": ["more"], "mine": 1},
)


@pytest.fixture
def trace(broker: Broker) -> Callable[[str], str]:
    """Run `rabbitmqctl trace_on` or `trace_off`; return what it prints."""

    def run(command: str) -> str:
        if broker.name == "rabbitmq":
            return broker.control(command)
        words = ["rabbitmqctl", "--cbdir", broker.router.directory, "-q", command]
        done = subprocess.run([binary(), *words], check=True, capture_output=True, text=True)
        return done.stdout

    return run


def taken(channel, queue: str) -> list[tuple]:
    """Take all messages: keys, bodies and headers, without what differs between brokers."""
    found = []
    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
        method, properties, body = got
        headers = dict(properties.headers)
        assert headers.pop("node")
        assert " -> " in headers.pop("connection")
        assert (method.exchange, properties.delivery_mode) == (EXCHANGE, None)
        found.append((method.routing_key, body, headers))
    return found


def test_what_is_published_and_delivered(broker: Broker, trace) -> None:
    with connect(broker) as connection:
        channel, firehose = connection.channel(), connection.channel()
        channel.exchange_declare("traced", "direct", auto_delete=True)
        queue = channel.queue_declare("traced.q", exclusive=True).method.queue
        channel.queue_bind(queue, "traced", "key")
        copies = firehose.queue_declare("", exclusive=True).method.queue
        for key in ("publish.traced", "deliver.traced.q"):
            firehose.queue_bind(copies, EXCHANGE, key)
        channel.basic_publish("traced", "key", b"before")
        assert trace("trace_on") == "Trace enabled for vhost /\n"
        channel.basic_publish("traced", "key", b"traced", PROPERTIES)
        channel.basic_publish("traced", "elsewhere", b"lost")
        tag = channel.basic_get(queue)[0].delivery_tag
        channel.basic_reject(tag)
        heard = []
        consumer = channel.basic_consume(queue, lambda *it: heard.append(it[3]), auto_ack=True)

        def is_heard() -> bool:
            connection.process_data_events(0)
            return len(heard) == 2

        await_true("both are delivered", is_heard)
        channel.basic_cancel(consumer)
        assert trace("trace_off") == "Trace disabled for vhost /\n"
        channel.basic_publish("traced", "key", b"after")
        channel.basic_get(queue, auto_ack=True)
        found = taken(firehose, copies)
    about = {"vhost": "/", "channel": 1, "user": "test", "exchange_name": "traced"}
    published = {**about, "routing_keys": ["key", "more"], "routed_queues": ["traced.q"]}
    properties = {
        "content_type": "text/plain",
        "delivery_mode": 2,
        "priority": 3,
        "timestamp": 1_700_000_000,
        "headers": {"CC": ["more"], "mine": 1},
    }
    lost = {"routing_keys": ["elsewhere"], "routed_queues": [], "properties": {}}
    plain = {**about, "routing_keys": ["key"], "properties": {}}
    delivered = {**about, "routing_keys": ["key", "more"], "properties": properties}
    assert found == [
        ("publish.traced", b"traced", {**published, "properties": properties}),
        ("publish.traced", b"lost", {**about, **lost}),
        ("deliver.traced.q", b"before", {**plain, "redelivered": 0}),
        ("deliver.traced.q", b"before", {**plain, "redelivered": 1}),
        ("deliver.traced.q", b"traced", {**delivered, "redelivered": 0}),
    ]


def test_a_consumer_of_the_copies(broker: Broker, trace) -> None:
    """Copies that are delivered are not copied."""
    with connect(broker) as connection:
        channel = connection.channel()
        copies = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(copies, EXCHANGE, "#")
        keys = []
        channel.basic_consume(copies, lambda *it: keys.append(it[1].routing_key), auto_ack=True)
        trace("trace_on")
        channel.basic_publish("", "nowhere", b"1")
        channel.basic_publish("", "nowhere", b"2")

        def is_heard() -> bool:
            connection.process_data_events(0)
            return len(keys) == 2

        await_true("both are copied", is_heard)
        trace("trace_off")
        connection.process_data_events(0)
        assert keys == ["publish.", "publish."]
