"""Streams over AMQP 0-9-1: what their tests declare, publish and read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pika
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from rig.broker import Broker

STREAM = {"x-queue-type": "stream"}


@contextmanager
def channel_of(broker: Broker, *, prefetch: int = 100) -> Iterator:
    """Open a channel with confirms and a limit."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url()))
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        if prefetch:
            channel.basic_qos(prefetch_count=prefetch)
        yield channel
    finally:
        with suppress(pika.exceptions.AMQPError):
            connection.close()


def publish(channel, stream: str, *bodies: str, **properties: object) -> None:
    """Publish; each is confirmed before the next one."""
    for body in bodies:
        channel.basic_publish("", stream, body, pika.BasicProperties(**properties))


def read(
    channel, stream: str, count: int, offset: object = None, *, prefetch: int = 0, **others: object
) -> list:
    """Consume that many messages from an offset on: their offsets, bodies and properties.

    With a prefetch each is acknowledged, and they are all there are. pika rejects what a consumer
    has not handled when it ends, so no other may be on its way.
    """
    got: list = []

    def on_message(channel, method, properties, body) -> None:
        assert not method.redelivered
        got.append((properties.headers["x-stream-offset"], body.decode(), properties))
        if prefetch:
            channel.basic_ack(method.delivery_tag)

    arguments = {name.replace("_", "-"): value for name, value in others.items()}
    if offset is not None:
        arguments["x-stream-offset"] = offset
    reader = channel.connection.channel()
    reader.basic_qos(prefetch_count=prefetch or count)
    reader.basic_consume(stream, on_message, arguments=arguments)
    deadline = time.monotonic() + 30
    while len(got) < count:
        assert time.monotonic() < deadline, f"only {len(got)} of {count} came"
        reader.connection.process_data_events(time_limit=0.1)
    reader.close()
    return got


def bodies(messages: list) -> list[str]:
    return [body for _, body, _ in messages]


def refused(broker: Broker, ask, *, prefetch: int = 100) -> tuple[str, int, str]:
    """Return what is closed by a request, and why; names of streams are replaced."""
    with channel_of(broker, prefetch=prefetch) as channel:
        try:
            ask(channel)
            channel.connection.process_data_events(time_limit=1)
            channel.queue_declare("", exclusive=True)
        except ChannelClosedByBroker as closed:
            return "channel", closed.reply_code, closed.reply_text
        except ConnectionClosedByBroker as closed:
            return "connection", closed.reply_code, closed.reply_text
    raise AssertionError("it was accepted")


def declare(**options: object):
    arguments = {**STREAM, **options.pop("arguments", {})}
    options = {"durable": True, "queue": "refused", **options}
    return lambda channel: channel.queue_declare(arguments=arguments, **options)
