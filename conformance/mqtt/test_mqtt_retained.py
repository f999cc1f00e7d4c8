"""Retained messages: which are kept, who is sent them, and how they end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rig.mqtt_broker import Broker
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import V5, Filter, Publish


@pytest.fixture
def keeper(broker: Broker, names) -> Iterator[Peer]:
    """A client that retains messages; what is below the test's own root is cleared after it."""
    yield broker.client(names.client("keeper"), V5)
    with broker.client("", V5) as cleaner:
        cleaner.subscribe(names.topic("#"))
        cleaner.publish(names.topic("the/end"), b"", 1)
        while (message := cleaner.message()).retain:
            cleaner.publish(message.topic, b"", 1, retain=True)


def await_nothing(client: Peer, sender: Peer, topic: str) -> None:
    """Nothing came before a message that is published now."""
    client.subscribe(topic)
    sender.publish(topic, b"end", 1)
    assert client.message().payload == b"end"


def test_retained_at_each_qos(broker: Broker, keeper: Peer, version: int, names) -> None:
    for qos in (0, 1, 2):
        keeper.publish(names.topic(f"a {qos}"), b"%d" % qos, qos, retain=True)
    keeper.round_trip()
    client = broker.client(names.client(), version)
    client.subscribe(names.topic("+"))
    heard = [plain(each) for each in client.messages(3)]
    assert sorted(heard, key=lambda each: each.qos) == [
        Publish(names.topic(f"a {qos}"), b"%d" % qos, qos, True) for qos in (0, 1, 2)
    ]
    for qos in (0, 1, 2):
        keeper.publish(names.topic(f"a {qos}"), b"", qos, retain=True)
    keeper.round_trip()
    other = broker.client(names.client("b"), version)
    other.subscribe(names.topic("+"))
    await_nothing(other, keeper, names.topic("end"))


def test_the_last_one_counts(broker: Broker, keeper: Peer, version: int, names) -> None:
    for number in range(3):
        keeper.publish(names.topic(), b"%d" % number, 1, retain=True)
    keeper.publish(names.topic(), b"not kept", 1)
    client = broker.client(names.client(), version)
    assert client.subscribe(names.topic(), qos=0) == [0]
    assert client.message() == Publish(names.topic(), b"2", 0, True)
    await_nothing(client, keeper, names.topic("end"))


def test_a_live_copy_is_not_marked(broker: Broker, keeper: Peer, version: int, names) -> None:
    client = broker.client(names.client(), version)
    client.subscribe(names.topic())
    keeper.publish(names.topic(), b"live", 1, retain=True)
    assert plain(client.message()) == Publish(names.topic(), b"live", 1)
    # So is what clears it; it is delivered like others.
    keeper.publish(names.topic(), b"", 1, retain=True)
    assert plain(client.message()) == Publish(names.topic(), b"", 1)


def test_subscribing_again_sends_again(broker: Broker, keeper: Peer, version: int, names) -> None:
    keeper.publish(names.topic(), b"kept", 1, retain=True)
    client = broker.client(names.client(), version)
    for _ in range(2):
        client.subscribe(names.topic())
        assert plain(client.message()) == Publish(names.topic(), b"kept", 1, True)


@pytest.mark.parametrize(
    ("filter_", "topics"),
    [
        ("#", {"a", "a/b", "a/b/c", "d//e", "f.g"}),
        ("a/#", {"a", "a/b", "a/b/c"}),
        ("+", {"a", "f.g"}),
        ("+/b", {"a/b"}),
        ("+/+/+", {"a/b/c", "d//e"}),
        ("a/+/#", {"a/b", "a/b/c"}),
        ("d//+", {"d//e"}),
        ("f/g", set()),
    ],
)
def test_retained_by_a_pattern(broker: Broker, keeper: Peer, names, filter_, topics) -> None:
    for topic in ("a", "a/b", "a/b/c", "d//e", "f.g"):
        keeper.publish(names.topic(topic), topic.encode(), 1, retain=True)
    client = broker.client(names.client(), V5)
    client.subscribe(names.topic(filter_))
    client.subscribe(names.root)
    keeper.publish(names.root, b"end", 1)
    heard = []
    while not heard or heard[-1] != "end":
        heard.append(client.message().payload.decode())
    assert (len(heard), set(heard)) == (len(topics) + 1, topics | {"end"})


def test_retained_below_a_dollar(broker: Broker, names) -> None:
    sender = broker.client("", V5)
    topic = f"$own/{names.root}"
    sender.publish(topic, b"kept", 1, retain=True)
    client = broker.client(names.client(), V5)
    client.subscribe(f"+/{names.root}")
    client.subscribe("$own/+")
    assert client.message().topic == topic
    sender.publish(topic, b"", 1, retain=True)


def test_retained_with_properties(broker: Broker, keeper: Peer, names) -> None:
    properties = {
        "payload_format": 1,
        "content_type": "text/plain",
        "response_topic": "a/b",
        "correlation_data": b"\0\1",
        "user_property": [("a", "2"), ("c", "3"), ("a", "1")],
    }
    keeper.publish(names.topic(), b"kept", 1, retain=True, **properties)
    client = broker.client(names.client(), V5)
    client.subscribe(names.topic())
    assert client.message().properties == properties


@pytest.mark.parametrize("handling", [0, 1, 2])
def test_retain_handling(broker: Broker, keeper: Peer, names, handling: int) -> None:
    """0 sends them at each SUBSCRIBE, 1 at the first one, and 2 at none."""
    keeper.publish(names.topic(), b"kept", 1, retain=True)
    client = broker.client(names.client(), V5)
    asked = Filter(names.topic(), 2, retain_handling=handling)
    for sends in ([True, True, True], [True, False, False], [False] * 3)[handling]:
        client.subscribe(asked)
        keeper.publish(names.topic("between"), b"", 1)
        if sends:
            assert client.message().retain
    await_nothing(client, keeper, names.topic("end"))
    # An end and a new beginning is a first one.
    client.unsubscribe(names.topic())
    client.subscribe(asked)
    if handling < 2:
        assert client.message().retain
    await_nothing(client, keeper, names.topic("end"))


@pytest.mark.parametrize("as_published", [False, True])
def test_retain_as_published(broker: Broker, keeper: Peer, names, as_published: bool) -> None:
    client = broker.client(names.client(), V5)
    client.subscribe(Filter(names.topic(), 1, retain_as_published=as_published))
    keeper.publish(names.topic(), b"not", 1)
    keeper.publish(names.topic(), b"is", 1, retain=True)
    assert [each.retain for each in client.messages(2)] == [False, as_published]
    # One that was kept is always marked.
    client.subscribe(Filter(names.topic(), 1, retain_as_published=as_published))
    assert client.message().retain


def test_retained_and_no_local(broker: Broker, keeper: Peer, names) -> None:
    """It was the client's own, and its own does not come back to it."""
    keeper.publish(names.topic(), b"own", 1, retain=True)
    keeper.subscribe(Filter(names.topic("#"), 1, no_local=True))
    with broker.client("", V5) as other:
        other.publish(names.topic("end"), b"end", 1)
    heard = [keeper.message().payload]
    while heard[-1] != b"end":
        heard.append(keeper.message().payload)
    # The specification leaves open whether a kept one counts as its publisher's own.
    assert heard in ([b"end"], [b"own", b"end"])


def test_retained_for_a_shared_subscription(broker: Broker, keeper: Peer, names) -> None:
    keeper.publish(names.topic(), b"kept", 1, retain=True)
    client = broker.client(names.client(), V5)
    assert client.subscribe(f"$share/group/{names.topic()}", qos=1) == [1]
    keeper.publish(names.topic(), b"live", 1)
    assert client.message().payload == b"live"


def test_retained_that_expires(broker: Broker, keeper: Peer, await_seconds, names) -> None:
    keeper.publish(names.topic("long"), b"kept", 1, retain=True, message_expiry=1000)
    keeper.publish(names.topic("short"), b"lost", 1, retain=True, message_expiry=1)
    await_seconds(3)
    with broker.client(names.client(), V5) as client:
        client.subscribe(names.topic("long"))
        assert client.message().properties["message_expiry"] < 1000
    with broker.client(names.client(), V5) as client:
        client.subscribe(names.topic("short"))
        await_nothing(client, keeper, names.topic("end"))


def test_a_session_is_not_sent_them_again(broker: Broker, keeper: Peer, names) -> None:
    """Retained messages belong to SUBSCRIBE, and not to a connection."""
    keeper.publish(names.topic(), b"kept", 1, retain=True)
    client = broker.client(names.client(), V5, session_expiry=1000)
    client.subscribe(names.topic())
    assert client.message().retain
    client.leave()
    client = broker.client(names.client(), V5, clean=False)
    await_nothing(client, keeper, names.topic("end"))
