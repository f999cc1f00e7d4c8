"""Careless clients: types of arguments, frames behind a goodbye, headers written by hand."""

from __future__ import annotations

import pika
import pytest
from rig import amqp_wire as wire
from rig.amqp_peer import Peer
from rig.broker import Broker
from rig.waiting import await_true

QUORUM = {"x-queue-type": "quorum"}
# pika writes `str` as text and `bytes` as octets, and integers in as few octets as they need.
SAME = {
    "overflow": ({"x-overflow": "reject-publish"}, {"x-overflow": b"reject-publish"}),
    "type": (QUORUM, {"x-queue-type": b"quorum"}),
    "exchange": ({"x-dead-letter-exchange": "dx"}, {"x-dead-letter-exchange": b"dx"}),
    "length": ({"x-max-length": 5}, {"x-max-length": pika.compat.long(5)}),
    "limit": (
        {**QUORUM, "x-delivery-limit": 5},
        {**QUORUM, "x-delivery-limit": pika.compat.long(5)},
    ),
}


def connect(broker: Broker) -> pika.BlockingConnection:
    """Connect as pika's users do."""
    return pika.BlockingConnection(pika.URLParameters(broker.url("test")))


@pytest.mark.parametrize("what", SAME)
def test_a_queue_is_the_same_whatever_types_its_arguments_have(broker: Broker, what: str):
    """A program in another language declares the queue that is there, and is let on."""
    queue = f"same-{what}"
    first, second = SAME[what]
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, arguments=first)
        channel.queue_declare(queue, durable=True, arguments=second)
        channel.queue_delete(queue)


def test_an_exchange_is_the_same_whatever_types_its_arguments_have(broker: Broker):
    """The same of `alternate-exchange`."""
    with connect(broker) as connection:
        channel = connection.channel()
        for alternate in ("ae", b"ae"):
            arguments = {"alternate-exchange": alternate}
            channel.exchange_declare("same-exchange", arguments=arguments)
        channel.exchange_delete("same-exchange")


def test_another_value_is_no_equivalent(broker: Broker):
    """Arguments in octets are compared by their content."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("other", arguments={"x-overflow": "reject-publish"})
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="inequivalent"):
            channel.queue_declare("other", arguments={"x-overflow": b"drop-head"})
        connection.channel().queue_delete("other")


@pytest.mark.parametrize("size", [10, 300_000])
def test_frames_behind_a_clients_own_close_are_ignored(crosstie_broker: Broker, size: int):
    """A client that publishes behind `channel.close` keeps its connection."""
    with Peer.tcp(crosstie_broker.address) as peer:
        peer.open()
        peer.channel(1)
        peer.call("queue.declare", 1, queue="late", exclusive=True)
        peer.expect("queue.declare-ok", 1)
        goodbye = wire.frame(wire.METHOD, 1, wire.method_payload("channel.close"))
        publish = wire.method_payload("basic.publish", exchange="", routing_key="late")
        content = wire.content({}, b"x" * size, 1, peer.frame_max)
        behind = wire.frame(wire.METHOD, 1, publish) + content
        peer.send(goodbye + behind + behind)
        peer.expect("channel.close-ok", 1)
        peer.channel(1)
        peer.call("queue.declare", 1, queue="late", passive=True)
        assert peer.expect("queue.declare-ok", 1)["messages"] == 0


def test_a_death_without_a_count_is_counted_as_one(broker: Broker):
    """`x-death` written by hand, by a tool that moves messages, does not stay without its count."""
    with connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("buried")
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "buried"}
        channel.queue_declare("dying", arguments=dead)
        for deaths in (
            [{"queue": "dying", "reason": "rejected"}],
            [{"queue": b"dying", "reason": b"rejected", "count": 2}],
        ):
            headers = pika.BasicProperties(headers={"x-death": deaths})
            channel.basic_publish("", "dying", b"m", headers)
            method = next_message(channel, "dying")[0]
            channel.basic_reject(method.delivery_tag, requeue=False)
            found = next_message(channel, "buried")[1].headers["x-death"]
            channel.basic_ack(0, multiple=True)
            assert [death["count"] for death in found] == [deaths[0].get("count", 0) + 1]
        channel.queue_delete("dying")
        channel.queue_delete("buried")


def next_message(channel, queue: str):
    """Return the next message of a queue, which another process may still have on its way."""
    found = []

    def has_come() -> bool:
        found[:] = channel.basic_get(queue)
        return found[0] is not None

    await_true("a message is there", has_come)
    return found
