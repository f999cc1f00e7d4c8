"""Messages from client to client: QoS, filters, subscriptions that overlap, connections' begins."""

from __future__ import annotations

import pytest
from rig import mqtt_wire as wire
from rig.mqtt_broker import FORBIDDEN, Broker
from rig.mqtt_peer import plain
from rig.mqtt_wire import V5, V31, V311, Connack, Filter, Publish


def test_each_qos_to_oneself(broker: Broker, version: int, names) -> None:
    client = broker.client(names.client(), version)
    topic = names.topic()
    assert client.subscribe(topic, qos=2) == [2]
    for qos in (0, 1, 2):
        client.publish(topic, b"at %d" % qos, qos)
    heard = [plain(each) for each in client.messages(3)]
    # Publications of different QoS may overtake each other.
    assert sorted(heard, key=lambda each: each.qos) == [
        Publish(topic, b"at %d" % qos, qos) for qos in (0, 1, 2)
    ]
    client.leave()


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_the_lower_qos_counts(broker: Broker, version: int, names, granted: int) -> None:
    client = broker.client(names.client(), version)
    assert client.subscribe(names.topic("+"), qos=granted) == [granted]
    for qos in (0, 1, 2):
        client.publish(names.topic(str(qos)), b"", qos)
    assert {each.topic: each.qos for each in client.messages(3)} == {
        names.topic(str(qos)): min(qos, granted) for qos in (0, 1, 2)
    }


def test_messages_of_a_publisher_keep_their_order(broker: Broker, version: int, names) -> None:
    sender, receiver = broker.client("", V5), broker.client(names.client(), version)
    receiver.subscribe(names.topic(), qos=1)
    for number in range(200):
        sender.say(Publish(names.topic(), b"%d" % number, 1, id=sender.next_id()))
        receiver_has_room = number % 10 == 9
        if receiver_has_room:
            assert [int(each.payload) for each in receiver.messages(10)] == list(
                range(number - 9, number + 1)
            )


def test_a_second_connect_ends_the_connection(broker: Broker, version: int, names) -> None:
    client = broker.client(names.client(), version)
    client.say(wire.Connect(names.client()))
    client.expect_disconnect(0x82)


@pytest.mark.parametrize(("protocol", "level"), [("hj", 4), ("mqtt", 4), ("MQTTX", 5), ("", 4)])
def test_a_protocol_of_another_name(broker: Broker, protocol: str, level: int, names) -> None:
    peer = broker.peer(V311)
    peer.say(wire.Connect(names.client(), protocol=protocol, level=level))
    peer.expect_end()


@pytest.mark.parametrize("level", [0, 2, 6, 127])
def test_a_level_that_there_is_not(broker: Broker, level: int, names) -> None:
    """The answer has the form of 3.1.1, in which code 1 says this, or that of MQTT 5."""
    peer = broker.peer(V311)
    peer.say(wire.Connect(names.client(), level=level))
    assert peer.receive_all() in (b"\x20\2\0\1", b"\x20\3\0\x84\0")


def test_the_bit_of_a_bridge(broker: Broker, names) -> None:
    """Bridges of mosquitto set the highest bit of the level; it is taken, as brokers do."""
    peer = broker.peer(V311)
    assert peer.ask_to_connect(names.client(), level=0x84) == Connack()
    peer.round_trip()


def test_no_client_id_and_a_session_that_ends(broker: Broker) -> None:
    broker.client("", V311, clean=True).round_trip()


def test_no_client_id_and_a_session_that_stays(broker: Broker) -> None:
    """Nobody could come back to it."""
    peer = broker.peer(V311)
    assert peer.ask_to_connect("", clean=False) == Connack(2)
    peer.expect_end()


@pytest.mark.parametrize("clean", [False, True])
def test_a_client_id_is_assigned(broker: Broker, clean: bool) -> None:
    """MQTT 5 tells it, so that the client can come back; two are never equal."""
    given = [broker.peer(V5).connect("", clean=clean) for _ in range(2)]
    first, second = (each.properties["assigned_client_id"] for each in given)
    assert first
    assert first != second


@pytest.mark.parametrize("client_id", ["with space", "a/b", "ä€😀", "a.b-c_d:e", "$x", "x" * 200])
def test_client_ids(broker: Broker, client_id: str) -> None:
    peer = broker.client(client_id, V5)
    peer.round_trip()
    peer.leave()


@pytest.mark.parametrize(
    "topic",
    [
        *["/", "//", "/a", "a/", "a//b", "a b", "a.b/c", "a..b", ".", "a*b", "a/*/b", "ä/€/😀"],
        *["a#b", "a,b;c", "wamp", "A/a", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p", "x" * 1000],
    ],
)
def test_topics_of_every_kind(broker: Broker, topic: str, names) -> None:
    """A topic reaches MQTT clients as it was written, also one that no URI can express."""
    if "#" in topic:
        topic = topic.replace("#", "%23")
    topic = names.root + topic if topic.startswith("/") else names.topic(topic)
    client = broker.client(names.client(), V5)
    assert client.subscribe(topic) == [2]
    client.publish(topic, b"exact", 1)
    assert plain(client.message()) == Publish(topic, b"exact", 1)
    assert client.unsubscribe(topic) == [0]
    assert client.subscribe(names.root + "/#") == [2]
    client.publish(topic, b"by pattern", 1)
    assert plain(client.message()) == Publish(topic, b"by pattern", 1)


# Section 4.7: filter, topic, whether they match; each below a root of the test's own, `~`.
MATCHES = [
    ("~/a/#", "~/a", True),
    ("~/a/#", "~/a/", True),
    ("~/a/#", "~/a/b/c", True),
    ("~/a/#", "~/ab", False),
    ("~/#", "~", True),
    ("~/+", "~", False),
    ("~/+", "~/", True),
    ("~/+", "~/a", True),
    ("~/+", "~/a/", False),
    ("~/+/", "~/a/", True),
    ("~/+/", "~/a", False),
    ("~/+/b", "~/a/b", True),
    ("~/+/b", "~//b", True),
    ("~/+/b", "~/a/c/b", False),
    ("~/+/+", "~/a/b", True),
    ("~/+/+", "~/a", False),
    ("~/+/#", "~/a", True),
    ("~/+/#", "~/a/b/c", True),
    ("~/+/#", "~", False),
    ("~/+/b/#", "~/a/b", True),
    ("~/+/b/#", "~/a/c", False),
    ("~//a", "~/a", False),
    ("~/a", "~/A", False),
    ("~/a.b", "~/a/b", False),
    ("~/a/b", "~/a.b", False),
    ("~/*", "~/a", False),
    ("+/~", "/~", True),
    ("/+", "/~", True),
    ("+", "/~", False),
    ("+/+/~", "a/b/~", True),
    ("#", "~/a/b", True),
    ("+/a", "~/a", True),
    ("#", "$own/~/a", False),
    ("+/a", "$own/~/a", False),
    ("$own/~/#", "$own/~/a", True),
    ("$own/~/+", "$own/~/a", True),
]


@pytest.mark.parametrize(("filter_", "topic", "matches"), MATCHES)
def test_which_topics_a_filter_matches(
    broker: Broker, filter_: str, topic: str, matches: bool, names
) -> None:
    filter_, topic = (each.replace("~", names.root) for each in (filter_, topic))
    end = names.topic("the end")
    # Filters without a root hear other tests, too.
    client = broker.client(names.client(), V5)
    assert client.subscribe(filter_, end, qos=1) == [1, 1]
    client.publish(topic, b"sought", 1)
    client.publish(end, b"end", 1)
    heard = []
    while not heard or heard[-1].topic != end:
        heard.append(client.message())
    assert (topic in [each.topic for each in heard]) == matches


def test_several_filters_in_one_packet(broker: Broker, version: int, names) -> None:
    client = broker.client(names.client(), version)
    filters = [Filter(names.topic(str(qos)), qos) for qos in (2, 0, 1)]
    assert client.subscribe(*filters) == [2, 0, 1]
    for each in filters:
        client.publish(each.filter, b"", 2)
    assert {each.topic: each.qos for each in client.messages(3)} == {
        each.filter: each.qos for each in filters
    }
    client.unsubscribe(filters[0].filter, filters[1].filter)
    for each in filters:
        client.publish(each.filter, b"", 1)
    assert client.message().topic == filters[2].filter


def test_unsubscribing(broker: Broker, version: int, names) -> None:
    first, second = broker.client(names.client("a"), version), broker.client("", V5)
    topics = [names.topic(name) for name in "abc"]
    for topic in topics:
        assert first.subscribe(topic) == [2]
    assert first.unsubscribe(topics[0]) == ([0] if version == V5 else [])
    for topic in topics:
        second.publish(topic, b"", 1)
    assert [each.topic for each in first.messages(2)] == topics[1:]
    # MQTT 5 tells that there was nothing to end.
    assert first.unsubscribe(topics[0]) == ([0x11] if version == V5 else [])


def test_a_filter_again_replaces_the_first(broker: Broker, version: int, names) -> None:
    client = broker.client(names.client(), version)
    topic = names.topic()
    assert client.subscribe(topic, qos=2) == [2]
    assert client.subscribe(topic, qos=0) == [0]
    client.publish(topic, b"once", 2)
    client.publish(topic, b"end", 0)
    assert [(each.payload, each.qos) for each in client.messages(2)] == [(b"once", 0), (b"end", 0)]
    client.unsubscribe(topic)
    client.subscribe(names.topic("end"), qos=0)
    client.publish(topic, b"none")
    client.publish(names.topic("end"))
    assert client.message().topic == names.topic("end")


def test_the_same_filter_twice_in_one_packet(broker: Broker, version: int, names) -> None:
    """Each has its code; the later one counts."""
    client = broker.client(names.client(), version)
    topic = names.topic()
    assert client.subscribe(Filter(topic, 2), Filter(topic, 1)) == [2, 1]
    client.publish(topic, b"once", 2)
    client.publish(topic, b"end", 0)
    assert sorted((each.payload, each.qos) for each in client.messages(2)) == [
        (b"end", 0),
        (b"once", 1),
    ]


@pytest.mark.parametrize("order", ["more exact last", "more exact first"])
def test_filters_that_overlap(broker: Broker, version: int, names, order: str) -> None:
    """One copy at the highest QoS of them, or one for each at its own."""
    client = broker.client(names.client(), version)
    filters = [
        Filter(names.topic("#"), 1),
        Filter(names.topic("+"), 2),
        Filter(names.topic("a"), 0),
    ]
    for each in filters if order == "more exact last" else reversed(filters):
        client.subscribe(each)
    client.publish(names.topic("a"), b"overlapping", 2)
    client.subscribe(names.topic("end/b"), qos=2)
    client.unsubscribe(names.topic("#"))
    client.publish(names.topic("end/b"), b"", 2)
    heard = [client.message()]
    while heard[-1].payload:
        heard.append(client.message())
    assert sorted(each.qos for each in heard[:-1]) in ([2], [0, 1, 2])


@pytest.mark.parametrize("filter_", [f"{FORBIDDEN}/a", f"{FORBIDDEN}/#"])
def test_a_subscription_that_is_refused(strict: Broker, version: int, names, filter_: str) -> None:
    """The other filters of the packet count; 3.1 knows no refusal, and has the one of 3.1.1."""
    client = strict.client(names.client(), version)
    refused = 0x87 if version == V5 else 0x80
    assert client.subscribe(names.topic(), filter_) == [2, refused]
    client.publish(names.topic(), b"heard", 1)
    assert client.message().payload == b"heard"


def test_a_publication_that_is_refused(strict: Broker, version: int, names) -> None:
    """MQTT 5 tells; before, it is acknowledged and dropped. The connection remains."""
    client = strict.client(names.client(), version)
    code = 0x87 if version == V5 else 0
    assert client.publish(f"{FORBIDDEN}/a", b"", 1) == code
    assert client.publish(f"{FORBIDDEN}/a", b"", 2) == code
    assert client.publish(f"{FORBIDDEN}/a", b"", 0) == 0
    client.round_trip()


def test_the_end_of_a_refused_publication_of_qos_2(strict: Broker, names) -> None:
    """PUBREC with an error ends it, but clients answer with PUBREL all the same."""
    client = strict.client(names.client(), V5)
    client.say(Publish(f"{FORBIDDEN}/a", b"", 2, id=7))
    assert client.ack(wire.PUBREC, 7).code == 0x87
    client.say(wire.Ack(wire.PUBREL, 7))
    assert client.ack(wire.PUBCOMP, 7).code in (0, 0x92)
    client.round_trip()


def test_publications_without_subscribers(broker: Broker, version: int, names) -> None:
    """MQTT 5 may tell of a PUBACK that there are none."""
    client = broker.client(names.client(), version)
    assert client.publish(names.topic(), b"", 1) in ({0, 0x10} if version == V5 else {0})
    assert client.publish(names.topic(), b"", 2) in ({0, 0x10} if version == V5 else {0})


@pytest.mark.parametrize("size", [0, 127, 128, 16_383, 16_384, 300_000])
def test_payloads_of_every_length(broker: Broker, size: int, names) -> None:
    client = broker.client(names.client(), V5)
    client.subscribe(names.topic(), qos=1)
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    client.publish(names.topic(), payload, 1)
    assert client.message().payload == payload


def test_everything_in_one_piece_with_connect(broker: Broker, version: int, names) -> None:
    """A client may send on before CONNACK."""
    peer = broker.peer(version)
    topic = names.topic()
    peer.say(
        wire.Connect(names.client()),
        wire.Subscribe(1, [Filter(topic, 1)]),
        Publish(topic, b"early", 1, id=2),
        wire.Ping(wire.PINGREQ),
    )
    assert isinstance(peer.hear(), Connack)
    assert peer.codes(wire.SUBACK, 1, 1) == [1]
    assert peer.message().payload == b"early"
    peer.ack(wire.PUBACK, 2)
    peer.expect(wire.Ping)


def test_one_octet_at_a_time(broker: Broker, version: int, names) -> None:
    peer = broker.peer(version)
    topic = names.topic()
    packets = (wire.Connect(names.client()), wire.Subscribe(1, [Filter(topic)]), Publish(topic))
    for octet in b"".join(wire.encode(each, version) for each in packets):
        peer.send(bytes([octet]))
    assert isinstance(peer.hear(), Connack)
    assert peer.message().topic == topic


@pytest.mark.parametrize(("one", "other"), [(V31, V5), (V5, V31), (V311, V5), (V5, V311)])
def test_versions_with_each_other(broker: Broker, one: int, other: int, names) -> None:
    sender = broker.client(names.client("a"), one)
    receiver = broker.client(names.client("b"), other)
    receiver.subscribe(names.topic())
    for qos in (0, 1, 2):
        sender.publish(names.topic(), b"%d" % qos, qos)
        assert plain(receiver.message()) == Publish(names.topic(), b"%d" % qos, qos)
