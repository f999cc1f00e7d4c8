"""The choice of one of several consumers, for which a transcript would be too strict: RabbitMQ
draws lots."""

from __future__ import annotations

from collections import Counter

from rig.amqp_peer import Peer
from rig.broker import Broker

QUEUES = ("consumers.one", "consumers.two", "consumers.three")


def opened(broker: Broker) -> Peer:
    """Connect, with a channel."""
    peer = Peer.tcp(broker.address).open()
    peer.channel()
    return peer


def ask(peer: Peer, method: str, **arguments: object) -> None:
    """Say a method and await its positive answer."""
    peer.call(method, **arguments)
    peer.expect(f"{method}-ok")


def test_a_limit_of_all_consumers_is_shared(broker: Broker) -> None:
    """Three queues with work, ten messages under way: each gets a third, not the first all."""
    with opened(broker) as publisher, opened(broker) as worker:
        for queue in QUEUES:
            ask(publisher, "queue.declare", queue=queue)
            for number in range(1_000):
                publisher.publish("", queue, str(number).encode())
            publisher.round_trip()
        ask(worker, "basic.qos", count=10, is_global=True)
        for queue in QUEUES:
            worker.call("basic.consume", queue=queue, tag=queue, nowait=True)
        served: Counter[str] = Counter()
        order: dict[str, list[int]] = {queue: [] for queue in QUEUES}
        for number in range(1_100):
            delivery = worker.expect("basic.deliver")
            # Until the second and the third consume too, the first is given all. RabbitMQ draws
            # lots for each place that an acknowledgement frees, in runs: few deliveries do not
            # show the share.
            served[delivery["tag"]] += number >= 100
            order[delivery["tag"]].append(int(delivery.body))
            worker.call("basic.ack", delivery=delivery["delivery"])
        assert min(served[queue] for queue in QUEUES) >= 200, served
        assert all(numbers == sorted(numbers) for numbers in order.values())
        for queue in QUEUES:
            publisher.call("queue.delete", queue=queue)
            publisher.expect("queue.delete-ok")


def test_a_higher_priority_is_served_at_once(broker: Broker) -> None:
    """However many others wait: the next message goes to who came last with more."""
    queue = "consumers.urgent"
    with opened(broker) as publisher, opened(broker) as others, opened(broker) as urgent:
        ask(publisher, "queue.declare", queue=queue)
        for number in range(20):
            others.call("basic.consume", queue=queue, tag=f"other {number}")
            others.expect("basic.consume-ok")
        publisher.publish("", queue, b"for the others")
        assert others.expect("basic.deliver").body == b"for the others"
        urgent.call("basic.consume", queue=queue, tag="urgent", arguments={"x-priority": 1})
        urgent.expect("basic.consume-ok")
        for number in range(40):
            publisher.publish("", queue, str(number).encode())
        for number in range(40):
            assert urgent.expect("basic.deliver").body == str(number).encode()
        publisher.call("queue.delete", queue=queue)
        publisher.expect("queue.delete-ok")
