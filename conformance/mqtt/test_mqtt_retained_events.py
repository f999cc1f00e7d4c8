"""Retained events of WAMP publishers as retained messages of MQTT clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rig import mqtt_broker
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import Filter, Publish
from rig.rawsocket import RawSocket
from rig.session import EVENT, PUBLISH, SUBSCRIBE
from rig.waiting import await_true

PUBLISHED, SUBSCRIBED = 17, 33
# More than two pages.
MANY = 1_500


@pytest.fixture
def node(start_node) -> mqtt_broker.Node:
    """A node of the test's own: it has no other retained events."""
    limits = {"retained_events_max": 10_000, "wildcard_shapes_max": 2}
    return start_node(mqtt_broker.configuration(limits=limits))


@pytest.fixture
def session(node) -> Iterator[RawSocket]:
    """A WAMP client."""
    with RawSocket.tcp(node.router.address("tcp")).shake_hands().join() as joined:
        yield joined


def retain(session: RawSocket, topic: str, *args: object, **options: object) -> None:
    """Publish a retained event."""
    session.ask(PUBLISH, {"acknowledge": True, "retain": True, **options}, topic, list(args))
    session.hear(PUBLISHED)


def nothing_more(client: Peer) -> bool:
    """Return whether the client was sent nothing else."""
    client.round_trip()
    return client.kept == []


@pytest.mark.parametrize("qos", [0, 1])
def test_more_of_them_than_a_page(node, session: RawSocket, qos: int) -> None:
    for number in range(MANY):
        retain(session, f"many.t{number}", number)
    client = node.broker().client("many")
    client.subscribe("many/#", qos=qos)
    heard = client.messages(MANY)
    assert {each.topic for each in heard} == {f"many/t{number}" for number in range(MANY)}
    assert all(each.retain and each.qos == qos for each in heard)
    assert nothing_more(client)
    # The space keeps none of them.
    assert node.router.metric("mqtt_retained_messages", realm="realm1") == 0


def test_a_client_that_acknowledges_nothing(node, session: RawSocket) -> None:
    """It is sent as many as it may have, and the rest with its acknowledgements."""
    for number in range(MANY):
        retain(session, f"many.t{number}", number)
    client = node.broker().client("slow", receive_maximum=10)
    client.subscribe("many/#", qos=1)
    client.round_trip()
    assert len(client.kept) == 10
    assert len({each.topic for each in client.messages(MANY)}) == MANY


def test_the_newest_one_counts(node, session: RawSocket) -> None:
    """Whoever has published it."""
    publisher = node.broker().client("publisher")

    def late(filter_: str) -> list[Publish]:
        with Peer.to(node.address()) as client:
            client.connect()
            client.subscribe(filter_)
            client.round_trip()
            return [plain(each) for each in client.kept]

    def kept(payload: bytes, qos: int) -> list[Publish]:
        return [Publish("a/b", payload, qos, True)]

    for filter_ in ("a/b", "a/+", "#"):
        publisher.publish("a/b", b"1", 2, retain=True)
        assert late(filter_) == kept(b"1", 2)
        retain(session, "a.b", "2")
        assert late(filter_) == kept(b"2", 1)
        retain(session, "a.b", "3")
        assert late(filter_) == kept(b"3", 1)
        publisher.publish("a/b", b"4", 2, retain=True)
        assert late(filter_) == kept(b"4", 2)
        retain(session, "a.b", "5")
        publisher.publish("a/b", b"", 1, retain=True)
        assert late(filter_) == []


def test_it_expires_with_the_realms(node, session: RawSocket) -> None:
    """The rest of its time is its message expiry."""
    client = node.broker().client("client")
    retain(session, "short.a", "gone", retain_ms=3_600_000)
    retain(session, "short.a", "gone", retain_ms=0)
    retain(session, "short.b", "there", retain_ms=3_600_000)
    client.subscribe("short/#")
    message = client.message()
    assert message.payload == b"there"
    assert 3_500 < message.properties["message_expiry"] <= 3_600
    assert nothing_more(client)


def test_retain_handling(node, session: RawSocket) -> None:
    client = node.broker().client("client")
    retain(session, "a", "kept")
    for handling, expected in ((2, 0), (1, 0), (0, 1)):
        client.subscribe(Filter("a", 1, retain_handling=handling))
        client.round_trip()
        assert len(client.kept) == expected
    client.unsubscribe("a")
    client.message()
    client.subscribe(Filter("a", 1, retain_handling=1))
    assert client.message().payload == b"kept"
    client.subscribe("$share/group/a")
    assert nothing_more(client)


def test_an_attribute_of_mqtt_is_no_mark(node, session: RawSocket) -> None:
    """WAMP clients are shown none, and can hide no event from MQTT clients."""
    client = node.broker().client("client")
    session.ask(SUBSCRIBE, {}, "a")
    session.hear(SUBSCRIBED)
    client.publish("a", b"1", 1, retain=True)
    shown = session.hear(EVENT)[3]
    assert not [key for key in shown if key.startswith("_")]
    client.subscribe("a", "b")
    assert client.message().payload == b"1"
    retain(session, "b", "2", **shown, _mqtt_space="0" * 16)
    assert client.message().payload == b"2"


def test_filters_that_the_realm_has_no_room_for(node, session: RawSocket) -> None:
    """Their events come by a wider pattern."""
    client = node.broker().client("client")
    filters = ["a/+/c", "a/b/+/d", "a/+/+/d", "+/b/+", "x/+/+/+/z"]
    assert client.subscribe(*filters, qos=1) == [1] * 5
    for topic in ("a.b.c", "a.b.c.d", "x.1.2.3.z", "x.1.2.3.y", "end.b.1"):
        session.ask(PUBLISH, {"acknowledge": True}, topic, [topic])
        session.hear(PUBLISHED)
    heard = set()
    while "end/b/1" not in heard:
        heard.add(client.message().topic)
    assert heard == {"a/b/c", "a/b/c/d", "x/1/2/3/z", "end/b/1"}
    client.unsubscribe(*filters)
    await_true(
        "no pattern is left", lambda: node.router.metric("realm_subscriptions", realm="realm1") == 0
    )


def test_one_that_is_too_long(node) -> None:
    """The bound of the realm's retained events holds for MQTT clients, too."""
    client = node.broker().client("client")
    client.subscribe("a")
    assert client.publish("a", bytes(300_000), 1, retain=True) == 0x97
    assert client.publish("a", bytes(300_000), 1) == 0
    assert len(client.message().payload) == 300_000
    client.subscribe("a")
    assert nothing_more(client)
