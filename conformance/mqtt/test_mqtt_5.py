"""What only MQTT 5 has: properties, options of subscriptions, shared ones, limits, aliases."""

from __future__ import annotations

import pytest
from rig import mqtt_wire as wire
from rig.mqtt_broker import Broker
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import Ack, Filter, Ping, Publish

LONG_S = 100_000
# Properties that a broker passes on unchanged.
PASSED = {
    "payload_format": 1,
    "content_type": "My name",
    "response_topic": "answers/here",
    "correlation_data": b"\0\xff334",
    "user_property": [("a", "2"), ("c", "3"), ("a", "1"), ("", ""), ("ä", "€")],
}


@pytest.fixture
def pair(broker: Broker, names) -> tuple[Peer, Peer]:
    """A publisher and a subscriber."""
    return broker.client(names.client("a")), broker.client(names.client("b"))


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("name", [*PASSED, "all"])
def test_properties_that_pass(pair, names, qos: int, name: str) -> None:
    properties = PASSED if name == "all" else {name: PASSED[name]}
    sender, receiver = pair
    receiver.subscribe(names.topic())
    sender.publish(names.topic(), "ä".encode(), qos, **properties)
    assert receiver.message().properties == properties


def test_properties_for_a_client_that_is_away(broker: Broker, names) -> None:
    client = broker.client(names.client(), session_expiry=LONG_S)
    client.subscribe(names.topic())
    client.leave()
    with broker.client() as sender:
        sender.publish(names.topic(), b"", 1, **PASSED)
    client = broker.client(names.client(), clean=False)
    assert client.message().properties == PASSED


def test_acknowledgements_have_codes_of_their_lists(pair, names) -> None:
    """A publisher's properties do not come back to it; clients refuse codes of other packets."""
    sender, receiver = pair
    receiver.subscribe(names.topic())
    for qos, kind in ((1, wire.PUBACK), (2, wire.PUBREC)):
        message = Publish(names.topic(), b"", qos, id=qos, properties=dict(PASSED))
        sender.say(message)
        assert sender.ack(kind, qos) == Ack(kind, qos)


def test_request_and_response(pair, names) -> None:
    requester, responder = pair
    for each in pair:
        each.subscribe(Filter(names.topic(), 2, no_local=True))
    requester.publish(
        names.topic(), b"request", 1, response_topic=names.topic(), correlation_data=b"334"
    )
    request = responder.message()
    assert (request.payload, request.properties) == (
        b"request",
        {"response_topic": names.topic(), "correlation_data": b"334"},
    )
    responder.publish(request.properties["response_topic"], b"response", 1, correlation_data=b"334")
    response = requester.message()
    assert (response.payload, response.properties) == (b"response", {"correlation_data": b"334"})


def test_no_local(pair, names) -> None:
    """A client's own messages come to others only."""
    one, other = pair
    for each in pair:
        each.subscribe(Filter(names.topic(), 1, no_local=True))
    one.publish(names.topic(), b"of one", 1)
    other.publish(names.topic(), b"of other", 1)
    assert [one.message().payload, other.message().payload] == [b"of other", b"of one"]
    # Of overlapping filters, each has its own option.
    one.subscribe(names.topic("#"), qos=1)
    one.publish(names.topic(), b"own", 1)
    assert one.message().payload == b"own"


def test_messages_that_expire_while_they_wait(broker: Broker, await_seconds, names) -> None:
    """What is left of the interval comes with the message."""
    client = broker.client(names.client(), session_expiry=LONG_S)
    client.subscribe(names.topic())
    client.leave()
    with broker.client() as sender:
        for qos in (1, 2):
            sender.publish(names.topic(), b"lost", qos, message_expiry=1)
            sender.publish(names.topic(), b"kept", qos, message_expiry=1000)
        sender.publish(names.topic(), b"for ever", 1)
    await_seconds(3)
    client = broker.client(names.client(), clean=False)
    heard = client.messages(3)
    assert [each.payload for each in heard] == [b"kept", b"kept", b"for ever"]
    assert all(each.properties["message_expiry"] < 1000 for each in heard[:2])
    # No interval is added by the broker.
    assert heard[2].properties == {}


def test_identifiers_of_subscriptions(pair, names) -> None:
    """Those of all filters that match, in one copy or in one for each."""
    one, other = pair
    one.subscribe(names.topic(), subscription_identifier=456_789)
    other.subscribe(names.topic(), subscription_identifier=2)
    other.subscribe(names.topic("#"), subscription_identifier=3)
    other.subscribe(names.topic("end"), subscription_identifier=268_435_455)
    other.publish(names.topic(), b"", 1)
    other.publish(names.topic("end"), b"end", 1)
    assert one.message().properties == {"subscription_identifier": [456_789]}
    heard, found = [], []
    while (message := other.message()).payload != b"end":
        heard.append(message)
        found += message.properties["subscription_identifier"]
    assert sorted(found) == [2, 3]
    ends = list(message.properties["subscription_identifier"])
    if len(heard) == 1:
        assert sorted(ends) == [3, 268_435_455]
    # Another SUBSCRIBE replaces the identifier, or takes it away.
    one.subscribe(names.topic())
    one.publish(names.topic(), b"without", 1)
    assert one.message().properties == {}


@pytest.mark.parametrize("qos", [0, 1])
def test_an_alias_for_a_topic(broker: Broker, names, qos: int) -> None:
    client = broker.peer()
    connack = client.connect(names.client(), session_expiry=LONG_S)
    assert connack.properties["topic_alias_maximum"] > 0
    client.subscribe(names.topic("#"))
    client.publish(names.topic("a"), b"1", qos, topic_alias=1)
    client.publish("", b"2", qos, topic_alias=1)
    client.publish(names.topic("b"), b"3", qos, topic_alias=1)
    client.publish("", b"4", qos, topic_alias=1)
    # Aliases are of one direction: the broker uses none here.
    assert [plain(each) for each in client.messages(4)] == [
        Publish(names.topic(topic), payload, qos)
        for topic, payload in (("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"4"))
    ]
    client.leave()
    # They end with the connection, unlike the session.
    client = broker.client(names.client(), clean=False)
    client.say(Publish("", b"5", qos, id=1 if qos else 0, properties={"topic_alias": 1}))
    client.expect_disconnect(0x82, 0x94)


def test_the_greatest_alias(broker: Broker, names) -> None:
    client = broker.peer()
    most = client.connect(names.client()).properties["topic_alias_maximum"]
    client.subscribe(names.topic())
    client.publish(names.topic(), b"1", 1, topic_alias=most)
    client.publish("", b"2", 1, topic_alias=most)
    assert [each.payload for each in client.messages(2)] == [b"1", b"2"]
    if most < 0xFFFF:
        client.say(Publish(names.topic(), b"", properties={"topic_alias": most + 1}))
        client.expect_disconnect(0x94)


def test_alias_0(broker: Broker, names) -> None:
    client = broker.client(names.client())
    client.say(Publish(names.topic(), b"", properties={"topic_alias": 0}))
    client.expect_disconnect(0x94)


@pytest.mark.parametrize("most", [None, 0, 1, 5])
def test_aliases_of_the_broker(broker: Broker, names, most: int | None) -> None:
    """None that was not asked for, and the topic can be told from those that were."""
    client = broker.peer()
    client.connect(names.client(), **({} if most is None else {"topic_alias_maximum": most}))
    client.subscribe(names.topic("#"))
    known: dict[int, str] = {}
    for number in range(6):
        topic = names.topic(str(number // 2))
        client.publish(topic, b"", 1)
        message = client.message()
        alias = message.properties.get("topic_alias")
        if alias is None:
            assert message.topic == topic
            continue
        assert 0 < alias <= (most or 0)
        if message.topic:
            known[alias] = message.topic
        assert known[alias] == topic


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("way", ["stream", "websocket"])
def test_the_first_topics_have_aliases(crosstie: Broker, shared_node, names, way, qos) -> None:
    client = crosstie.peer()
    if way == "websocket":
        client = Peer.over_websocket(shared_node.address("tcp"))
    client.connect(names.client(), topic_alias_maximum=2)
    client.subscribe(names.topic("#"), qos=qos)
    with crosstie.client() as sender:
        for name in ("first", "second", "third", "first", "third", "second"):
            sender.publish(names.topic(name), name.encode(), qos)
    received = client.messages(6)
    aliases = [each.properties.get("topic_alias") for each in received]
    assert aliases == [1, 2, None, 1, None, 2]
    topics = [each.topic for each in received]
    known = [names.topic(name) for name in ("first", "second", "third", "third")]
    assert topics == [*known[:3], "", known[3], ""]
    client.leave()


def test_packets_that_are_too_large_for_a_receiver(pair, broker: Broker, names) -> None:
    """They are dropped for that client alone, as if they had been acknowledged."""
    sender, receiver = pair
    receiver.subscribe(names.topic())
    narrow = broker.client(names.client("narrow"), maximum_packet_size=100)
    narrow.subscribe(names.topic())
    for qos in (0, 1, 2):
        sender.publish(names.topic(), bytes(101), qos)
        sender.publish(names.topic(), b"small", qos)
    assert [each.payload for each in narrow.messages(3)] == [b"small"] * 3
    heard = [each.payload for each in receiver.messages(6)]
    assert sorted(heard) == [bytes(101)] * 3 + [b"small"] * 3
    # Properties count as well.
    sender.publish(names.topic(), b"long", 1, user_property=[("a", "b" * 100)])
    sender.publish(names.topic(), b"end", 1)
    assert narrow.message().payload == b"end"


def test_packets_that_are_too_large_for_the_broker(broker: Broker, names) -> None:
    client = broker.peer()
    most = client.connect(names.client()).properties.get("maximum_packet_size")
    if most is None:
        pytest.skip("it announces no maximum")
    body = wire.text(names.topic()) + b"\0"
    # The length alone says so.
    client.send(bytes([wire.PUBLISH << 4]) + wire.variable(most + 1) + body)
    client.expect_disconnect(0x95)


def test_the_keep_alive_of_the_broker(broker: Broker, names) -> None:
    """If one is announced, it is no longer than what was asked for, unless that was none."""
    for asked in (120, 0xFFFF):
        with broker.peer() as client:
            properties = client.connect(names.client(), keep_alive=asked).properties
            assert 0 < properties.get("server_keep_alive", asked) <= asked


def test_the_receive_maximum_of_a_client(pair, broker: Broker, names) -> None:
    """No more messages of QoS 1 and 2 are under way than it takes; QoS 0 does not count."""
    sender, _ = pair
    client = broker.client(names.client(), receive_maximum=2)
    client.subscribe(names.topic())
    for number in range(4):
        sender.publish(names.topic(), b"%d" % number, 1 + number % 2)
    sender.publish(names.topic(), b"at 0", 0)
    first, second = (client.expect(Publish, lambda each: each.qos > 0) for _ in range(2))
    client.round_trip()
    sender.round_trip()
    client.round_trip()
    assert [each for each in client.kept if isinstance(each, Publish) and each.qos] == []
    client.say(Ack(wire.PUBACK, first.id))
    third = client.expect(Publish, lambda each: each.qos > 0)
    # A message of QoS 2 counts until its PUBCOMP.
    client.say(Ack(wire.PUBREC, second.id))
    client.ack(wire.PUBREL, second.id)
    client.round_trip()
    assert [each for each in client.kept if isinstance(each, Publish) and each.qos] == []
    client.say(Ack(wire.PUBCOMP, second.id))
    client.say(Ack(wire.PUBACK, third.id))
    fourth = client.expect(Publish, lambda each: each.qos > 0)
    payloads = [each.payload for each in (first, second, third, fourth)]
    assert payloads == [b"0", b"1", b"2", b"3"]


def test_an_error_ends_a_message_of_qos_2(broker: Broker, names) -> None:
    """PUBREC with an error frees its place, and no PUBREL follows."""
    client = broker.client(names.client(), receive_maximum=1)
    client.subscribe(names.topic())
    client.publish(names.topic(), b"refused", 2)
    message = client.expect(Publish)
    client.say(Ack(wire.PUBREC, message.id, 0x97))
    client.publish(names.topic(), b"next", 2)
    assert client.message().payload == b"next"
    client.round_trip()
    assert client.kept == []


def test_the_receive_maximum_of_the_broker(broker: Broker, names) -> None:
    """One message of QoS 2 more than it takes: it disconnects, or reads on later."""
    client = broker.peer()
    most = client.connect(names.client()).properties.get("receive_maximum", 0xFFFF)
    client.say(*(Publish(names.topic(), b"", 2, id=id_) for id_ in range(1, most + 1)))
    for id_ in range(1, most + 1):
        client.ack(wire.PUBREC, id_)
    client.say(Publish(names.topic(), b"", 2, id=most % 0xFFFF + 1, dup=most == 0xFFFF))
    if most == 0xFFFF:
        client.ack(wire.PUBREC, 1)
        return
    client.expect_disconnect(0x93)


def test_a_shared_subscription(pair, broker: Broker, names) -> None:
    """Each message comes to one member, and to all plain subscriptions."""
    sender, outsider = pair
    outsider.subscribe(names.topic("#"), qos=1)
    shared = f"$share/group/{names.topic('#')}"
    members = [broker.client(names.client(name)) for name in "cde"]
    for each in members:
        assert each.subscribe(shared, qos=1) == [1]
        each.subscribe(names.root + "-end", qos=1)
    for number in range(30):
        sender.publish(names.topic(str(number)), b"", 1)
    sender.publish(names.root + "-end", b"end", 1)
    heard = []
    for each in members:
        before = len(heard)
        while (message := each.message()).payload != b"end":
            heard.append(message.topic)
        assert len(heard) > before, "one member has heard nothing"
    assert sorted(heard) == sorted(names.topic(str(number)) for number in range(30))
    assert len(outsider.messages(30)) == 30
    # Two groups have a copy each.
    other = broker.client(names.client("f"))
    other.subscribe(f"$share/other/{names.topic('+')}", qos=1)
    sender.publish(names.topic("two"), b"", 1)
    assert other.message().topic == names.topic("two")


def test_a_shared_subscription_and_members_that_are_away(pair, broker: Broker, names) -> None:
    """Those that are there get all of it."""
    sender, _ = pair
    shared = f"$share/group/{names.topic()}"
    away = broker.client(names.client("away"), session_expiry=LONG_S)
    away.subscribe(shared, qos=1)
    there = broker.client(names.client("there"))
    there.subscribe(shared, qos=1)
    away.leave()
    for number in range(10):
        sender.publish(names.topic(), b"%d" % number, 1)
    assert [int(each.payload) for each in there.messages(10)] == list(range(10))


def test_what_a_shared_member_leaves_behind(pair, broker: Broker, names) -> None:
    """Its session ends: what it had not acknowledged goes to another member."""
    sender, _ = pair
    shared = f"$share/group/{names.topic()}"
    leaving = broker.client(names.client("leaving"))
    leaving.subscribe(shared, qos=1)
    for number in range(5):
        sender.publish(names.topic(), b"%d" % number, 1)
        leaving.expect(Publish)
    staying = broker.client(names.client("staying"))
    staying.subscribe(shared, qos=1)
    leaving.reset()
    assert sorted(int(each.payload) for each in staying.messages(5)) == list(range(5))


def test_a_shared_subscription_ends(pair, broker: Broker, names) -> None:
    sender, client = pair
    shared = f"$share/group/{names.topic()}"
    client.subscribe(shared, qos=1)
    assert client.unsubscribe(names.topic()) == [0x11]
    assert client.unsubscribe(shared) == [0]
    client.subscribe(names.topic("end"))
    sender.publish(names.topic(), b"unheard", 1)
    sender.publish(names.topic("end"), b"end", 1)
    assert client.message().payload == b"end"


def test_no_problem_information(strict: Broker, names) -> None:
    """Who asks for none is sent no reason strings beside CONNACK and DISCONNECT."""
    client = strict.client(names.client(), request_problem_information=0)
    client.say(Publish("test/forbidden/a", b"", 1, id=1))
    assert client.ack(wire.PUBACK, 1).properties == {}
    client.say(wire.Subscribe(2, [Filter("test/forbidden/a")]))
    answer = client.expect(wire.Codes)
    assert answer.properties == {}
    client.say(Ping(wire.PINGREQ))
    assert client.hear() == Ping()


def test_a_method_of_authentication_that_there_is_not(broker: Broker, names) -> None:
    peer = broker.peer()
    answer = peer.ask_to_connect(names.client(), authentication_method="GS2-NONE")
    assert answer.code == 0x8C
    peer.expect_end()
