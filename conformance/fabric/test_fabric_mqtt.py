"""MQTT in a realm of two nodes: messages cross, and each node has its own MQTT sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from rig import mqtt_broker
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import V311, Publish
from rig.router import Router
from rig.waiting import await_true

from fabric.stage import await_neighbours, node_config

LONG_S = 100_000


@pytest.fixture
def pair(nats, start) -> list[Router]:
    """Start two nodes with MQTT."""
    (server,) = nats()
    started = []
    for _ in range(2):
        settings = node_config([server.url])
        settings["workers"][0]["transports"].append(mqtt_broker.transport())
        started.append(start(settings))
    await_neighbours(started)
    return started


@pytest.fixture
def client(request) -> Iterator[Callable[..., Peer]]:
    """Connect to a node."""

    def connect(node: Router, client_id: str, **more: object) -> Peer:
        peer = Peer.to(node.address("mqtt"), version=more.pop("version", 5))
        request.addfinalizer(peer.close)
        peer.connect(client_id, **more)
        return peer

    return connect


READY = b"ready"


def await_heard(publisher: Peer, receiver: Peer, topic: str) -> None:
    """Publish until a subscription of another node is known: SUBACK does not wait for that."""

    def is_heard() -> bool:
        publisher.publish(topic, READY, 1)
        receiver.round_trip()
        return any(isinstance(each, Publish) for each in receiver.kept)

    await_true("the other node knows of the subscription", is_heard)


def message(receiver: Peer) -> Publish:
    """Return the next message behind those that a subscription was awaited with."""
    while (found := receiver.message()).payload == READY:
        pass
    return found


def test_messages_cross(pair, client) -> None:
    here, there = pair
    publisher, receiver = client(here, "publisher"), client(there, "receiver", version=V311)
    receiver.subscribe("a/+/c", "a/b/#", qos=2)
    await_heard(publisher, receiver, "a/x/c")
    for number, qos in enumerate((0, 1, 2)):
        publisher.publish("a/b/c", b"%d" % number, qos)
    # Once for both filters, and with QoS 1 as other events.
    for number in range(3):
        assert plain(message(receiver)) == Publish("a/b/c", b"%d" % number, 1)


def test_the_same_identifier_on_the_other_node(pair, client) -> None:
    """It begins a session of its own, and the client of the first node stays."""
    here, there = pair
    first = client(here, "same", session_expiry=LONG_S)
    first.subscribe("a", qos=1)
    second = client(there, "same", session_expiry=LONG_S, clean=False)
    second.subscribe("b", qos=1)
    publisher = client(there, "publisher")
    await_heard(publisher, first, "a")
    publisher.publish("a", b"of the first", 1)
    publisher.publish("b", b"of the second", 1)
    assert message(first).payload == b"of the first"
    assert message(second).payload == b"of the second"
    first.leave()
    publisher.publish("a", b"kept", 1)
    again = client(here, "same", session_expiry=LONG_S, clean=False)
    assert message(again).payload == b"kept"


def test_retained_messages_cross(pair, client) -> None:
    """The newest one counts on both nodes."""
    here, there = pair
    publishers = [client(node, "publisher") for node in pair]

    def late(node: Router) -> list[bytes]:
        peer = client(node, "")
        peer.subscribe("kept/#", qos=1)
        peer.round_trip()
        heard = [each.payload for each in peer.kept if isinstance(each, Publish) and each.retain]
        peer.close()
        return heard

    for number, publisher in enumerate([*publishers, *publishers]):
        payload = b"%d" % number
        publisher.publish("kept/a", payload, 1, retain=True)
        for node in (here, there):
            await_true(f"{number} is retained", lambda n=node, p=payload: late(n) == [p])
