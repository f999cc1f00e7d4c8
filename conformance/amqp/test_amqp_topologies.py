"""The exchanges and queues that MassTransit and NServiceBus declare, on both brokers.

Their libraries run on .NET. Here is what they declare, and the way of a message through it.
"""

from __future__ import annotations

import itertools

import pika
import pytest
from rig.broker import Broker, Crosstie
from rig.brokers import connect
from rig.waiting import await_true

PERSISTENT = 2
# NServiceBus delays by the bits of a number of seconds; each bit has a queue.
LEVELS = 28


def fanouts(channel, *names: str, **more: object) -> None:
    """Declare a chain of exchanges, each bound to the one before it."""
    for name in names:
        channel.exchange_declare(name, "fanout", durable=True, **more)
    for source, destination in itertools.pairwise(names):
        channel.exchange_bind(destination, source)


def endpoint(channel, name: str, arguments: dict, **more: bool) -> None:
    """Declare an endpoint of MassTransit: a queue behind an exchange of its name."""
    channel.queue_declare(name, durable=True, arguments=arguments, **more)
    channel.exchange_declare(
        name, "fanout", durable=True, auto_delete=more.get("auto_delete", False)
    )
    channel.queue_bind(name, name)


def got(channel, queue: str) -> tuple[bytes, dict]:
    """Take the next message; return its body and headers."""
    found: list = []

    def is_there() -> bool:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        found.extend([(body, properties.headers or {})] if method else [])
        return bool(found)

    await_true(f"a message is in {queue}", is_there)
    return found[0]


ENDPOINTS = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum", "x-quorum-initial-group-size": 1},
    "single active consumer": {"x-single-active-consumer": True},
    "priorities": {"x-max-priority": 10},
    "lazy": {"x-queue-mode": "lazy"},
    "expiring": {"x-expires": 60_000},
}


@pytest.mark.parametrize("kind", ENDPOINTS)
def test_an_endpoint_of_masstransit_gets_published_and_sent_messages(broker: Broker, kind) -> None:
    name = f"submit-order-{kind.replace(' ', '-')}"
    types = [f"Contracts:{kind}:OrderSubmitted", f"Contracts:{kind}:Event"]
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        endpoint(channel, name, ENDPOINTS[kind])
        # A type's exchange leads to those of the types that it implements, and to endpoints.
        fanouts(channel, *types, name)
        for faulty in ("error", "skipped"):
            endpoint(channel, f"{name}_{faulty}", {})
        properties = pika.BasicProperties(delivery_mode=PERSISTENT, headers={"MT-Host": "x"})
        for exchange in (types[0], name):
            channel.basic_publish(exchange, "", exchange.encode(), properties, mandatory=True)
            body, headers = got(channel, name)
            assert (body, headers["MT-Host"]) == (exchange.encode(), "x")
        channel.basic_publish(f"{name}_error", "", b"faulty", properties, mandatory=True)
        assert got(channel, f"{name}_error")[0] == b"faulty"
        # All of it is declared again by each process of the endpoint.
        endpoint(channel, name, ENDPOINTS[kind])
        fanouts(channel, *types, name)
        for queue in (name, f"{name}_error", f"{name}_skipped"):
            channel.queue_delete(queue)
            channel.exchange_delete(queue)
        for exchange in types:
            channel.exchange_delete(exchange)


def test_the_scheduler_of_masstransit_delays_by_an_exchange(crosstie_broker: Crosstie) -> None:
    with connect(crosstie_broker) as connection:
        channel = connection.channel()
        endpoint(channel, "later", {})
        arguments = {"x-delayed-type": "fanout"}
        channel.exchange_declare(
            "later_delay", "x-delayed-message", durable=True, arguments=arguments
        )
        channel.exchange_bind("later", "later_delay")
        properties = pika.BasicProperties(delivery_mode=PERSISTENT, headers={"x-delay": 300})
        channel.basic_publish("later_delay", "", b"later", properties)
        assert channel.basic_get("later")[0] is None
        assert got(channel, "later")[0] == b"later"
        for exchange in ("later_delay", "later"):
            channel.exchange_delete(exchange)
        channel.queue_delete("later")


def level(number: int) -> str:
    return f"nsb.v2.delay-level-{number:02}"


def declare_delays(channel) -> None:
    """Declare the queues of NServiceBus that delay: one for each bit."""
    delivery = "nsb.v2.delay-delivery"
    channel.exchange_declare(delivery, "topic", durable=True)
    for number in range(LEVELS):
        below = level(number - 1) if number else delivery
        channel.exchange_declare(level(number), "topic", durable=True)
        arguments = {
            "x-queue-type": "quorum",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-message-ttl": 1000 << number,
            "x-dead-letter-exchange": below,
        }
        channel.queue_declare(level(number), durable=True, arguments=arguments)
        bits = "*." * (LEVELS - 1 - number)
        channel.queue_bind(level(number), level(number), f"{bits}1.#")
        channel.exchange_bind(below, level(number), f"{bits}0.#")


def test_a_delay_of_nservicebus_passes_the_queue_of_each_bit(broker: Broker) -> None:
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        declare_delays(channel)
        channel.queue_declare("Sales", durable=True, arguments={"x-queue-type": "quorum"})
        channel.exchange_declare("Sales", "fanout", durable=True)
        channel.queue_bind("Sales", "Sales")
        channel.exchange_bind("Sales", "nsb.v2.delay-delivery", "#.Sales")
        properties = pika.BasicProperties(delivery_mode=PERSISTENT, headers={"NServiceBus": "x"})
        for seconds in (0, 1):
            key = ".".join(f"{seconds:0{LEVELS}b}") + ".Sales"
            body = str(seconds).encode()
            channel.basic_publish(level(LEVELS - 1), key, body, properties, mandatory=True)
        assert got(channel, "Sales")[0] == b"0"
        body, headers = got(channel, "Sales")
        assert (body, headers["NServiceBus"]) == (b"1", "x")
        (death,) = headers["x-death"]
        assert (death["queue"], death["reason"]) == (level(0), "expired")
        # Each process declares all of it again.
        declare_delays(channel)
        for number in range(LEVELS):
            channel.queue_delete(level(number))
            channel.exchange_delete(level(number))
        for exchange in ("nsb.v2.delay-delivery", "Sales"):
            channel.exchange_delete(exchange)
        channel.queue_delete("Sales")
