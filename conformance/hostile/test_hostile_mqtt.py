"""MQTT clients that try to stop all others: much that is held, and much to do for one packet.

Sizes are small enough for a debug build.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from rig import mqtt_wire as wire
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5, V311, Ack, Filter, Publish, Subscribe, Will
from rig.plain import ClosedError
from rig.waiting import await_true

LONG_S = 100_000


@pytest.fixture
def stage(attacked):
    """A node with the default limits, its witness, and a well-behaved pair of MQTT clients."""
    return attacked(mqtt={})


@contextlib.contextmanager
def beside(stage) -> Iterator[None]:
    """A pair of MQTT clients is served before, and after."""
    with stage.mqtt() as sender, stage.mqtt() as receiver:
        receiver.connect("witness-receiver")
        sender.connect("witness-sender")
        receiver.subscribe("witness/+", qos=2)
        sender.publish("witness/a", b"before", 2)
        assert receiver.message().payload == b"before"
        yield
        sender.publish("witness/a", b"after", 2)
        assert receiver.message().payload == b"after"


def test_a_client_that_takes_over_its_own_id(stage) -> None:
    with beside(stage):
        for number in range(500):
            version = (V311, V5)[number % 2]
            with stage.mqtt(version) as peer:
                peer.connect("again", will=Will("gone", b"x"))
                stage.router.process.poll()
    stage.everybody_else_is_served()
    stage.grew_at_most(64)


def test_as_many_retained_topics_as_there_may_be(attacked) -> None:
    """Another one is refused; one that replaces another is not."""
    stage = attacked(mqtt={"mqtt_retained_messages_max": 1000})
    with beside(stage), stage.mqtt() as peer:
        peer.connect("keeper")
        codes = [peer.publish(f"kept/{n}", b"x" * 100, 1, retain=True) for n in range(1200)]
        assert all(code in (0, 0x10) for code in codes[:1000])
        assert codes[1000:] == [0x97] * 200
        assert peer.publish("kept/7", b"y", 1, retain=True) in (0, 0x10)
        # One that is cleared makes room.
        peer.publish("kept/8", b"", 1, retain=True)
        assert peer.publish("kept/1100", b"y", 1, retain=True) in (0, 0x10)
    stage.grew_at_most(64)


def test_as_many_octets_as_may_be_retained(attacked) -> None:
    stage = attacked(mqtt={"mqtt_retained_bytes_max": 4 << 20})
    with beside(stage), stage.mqtt() as peer:
        peer.connect("keeper")
        codes = [peer.publish(f"kept/{n}", bytes(1 << 17), 1, retain=True) for n in range(40)]
        assert codes[0] in (0, 0x10)
        assert codes[-1] == 0x97
    stage.grew_at_most(64)


def test_as_many_subscriptions_as_there_may_be(attacked) -> None:
    stage = attacked(mqtt={"mqtt_subscriptions_max": 5000})
    with beside(stage), stage.mqtt() as peer:
        peer.connect("subscriber")
        codes = []
        for number in range(60):
            codes += peer.subscribe(*(f"many/{number}/{each}/+" for each in range(100)), qos=0)
        assert codes[:4000] == [0] * 4000
        assert codes[-500:] == [0x97] * 500
        # A refusal is of one packet; the client goes on.
        peer.unsubscribe("many/0/0/+")
        peer.round_trip()
    stage.grew_at_most(96)


def test_as_many_sessions_as_there_may_be(attacked) -> None:
    """Sessions whose client is away count; another client is refused by name."""
    stage = attacked(mqtt={"mqtt_sessions_max": 100})
    refused = 0
    with beside(stage):
        for number in range(150):
            with stage.mqtt() as peer:
                answer = peer.ask_to_connect(f"s{number}", session_expiry=LONG_S)
                refused += answer.code == 0x97
                assert answer.code in (0, 0x97)
                if answer.code == 0:
                    # One that waits for nothing would end for a new one.
                    peer.subscribe("news", qos=1)
    assert refused >= 50
    stage.everybody_else_is_served()


def test_filters_that_nearly_match(stage) -> None:
    """Each goes down every branch of the tree."""
    with beside(stage), stage.mqtt() as peer:
        peer.connect("deep")
        for number in range(40):
            filters = []
            for each in range(100):
                bits = number * 100 + each
                levels = ["+" if bits >> bit & 1 else "a" for bit in range(12)]
                filters.append("/".join([*levels, "z"]))
            peer.subscribe(*filters, qos=0)
        topic = "/".join(["a"] * 13)
        peer.say(*(Publish(topic) for _ in range(300)))
        stage.everybody_else_is_served()
        peer.round_trip()
    stage.grew_at_most(96)


def test_topics_as_deep_as_they_can_be(stage) -> None:
    """Some 32,000 levels, in topics, filters and retained messages."""
    deep = "/".join(["a"] * 32_000)
    with beside(stage), stage.mqtt() as peer:
        peer.connect("deep")
        with contextlib.suppress(ClosedError, AssertionError):
            for filter_ in (deep, f"{deep}/#", "/".join(["+"] * 32_000)):
                peer.subscribe(filter_)
                peer.publish(deep, b"x", 1, retain=True)
            peer.round_trip()
    stage.everybody_else_is_served()
    stage.grew_at_most(96)


def test_everything_in_flight_at_once(stage) -> None:
    """65,535 messages of QoS 2 that are never released, or as many as the node takes."""
    with beside(stage), stage.mqtt() as peer:
        most = peer.connect("flood").properties.get("receive_maximum", 0xFFFF)
        peer.say(*(Publish("in/flight", b"x" * 100, 2, id=id_) for id_ in range(1, most + 1)))
        for id_ in range(1, most + 1):
            peer.ack(wire.PUBREC, id_)
        stage.everybody_else_is_served()
        peer.say(*(Ack(wire.PUBREL, id_) for id_ in range(1, most + 1)))
        for id_ in range(1, most + 1):
            peer.ack(wire.PUBCOMP, id_)
    stage.grew_at_most(64)


def test_a_subscriber_that_stops_reading(stage) -> None:
    """Its messages are dropped, or it is; others are served."""
    with beside(stage), stage.mqtt() as publisher:
        publisher.connect("publisher")
        for version, qos in ((V5, 2), (V311, 1), (V5, 0)):
            with Peer.tcp(stage.router.address("mqtt"), receive_buffer=4096) as deaf:
                deaf.version = version
                deaf.connect(f"deaf{qos}")
                deaf.subscribe(f"flood/{qos}", qos=qos)
                for _ in range(200):
                    publisher.publish(f"flood/{qos}", bytes(100_000), 1)
    stage.everybody_else_is_served()
    stage.grew_at_most(128)


def test_a_session_that_never_comes_back(stage) -> None:
    """What waits for it has a bound, in messages and in octets."""
    with beside(stage), stage.mqtt() as publisher, stage.mqtt() as away:
        away.connect("away", session_expiry=LONG_S)
        away.subscribe("many", "large", qos=1)
        away.leave()
        publisher.connect("publisher")
        for _ in range(3000):
            publisher.publish("many", b"x", 1)
        for _ in range(100):
            publisher.publish("large", bytes(500_000), 1)
        back = stage.mqtt()
        assert back.connect("away", clean=False).present
        # The newest ones are there.
        publisher.publish("large", b"end", 1)
        count = 1
        while back.message().payload != b"end":
            count += 1
        assert count <= 1100
        back.close()
    stage.grew_at_most(96)


def test_wills_that_all_fall_due(stage) -> None:
    """Hundreds of clients are lost at once."""
    with beside(stage), stage.mqtt() as heir:
        heir.connect("heir")
        heir.subscribe("wills/+", qos=1)
        mortals = []
        for number in range(300):
            peer = stage.mqtt()
            peer.connect(f"m{number}", will=Will(f"wills/{number}", bytes(1000), 1))
            mortals.append(peer)
        for peer in mortals:
            peer.reset()
        assert len({each.topic for each in heir.messages(300)}) == 300
    stage.grew_at_most(64)


def test_packets_that_never_come_whole(stage) -> None:
    """A length is no reason to hold as much memory."""
    with beside(stage):
        peers = []
        for number in range(60):
            peer = stage.mqtt(V311)
            peer.connect(f"p{number}")
            # As long as the node takes any.
            peer.send(b"\x30" + wire.variable((1 << 20) - 10) + wire.text("a") + bytes(1000))
            peers.append(peer)
        stage.everybody_else_is_served()
        for peer in peers:
            peer.close()
    stage.grew_at_most(32)


def test_one_packet_of_many_filters(stage) -> None:
    """As many as fit into a packet; each is answered, or the client is closed."""
    with beside(stage), stage.mqtt() as peer:
        peer.connect("wide")
        filters = [Filter(f"w/{number}") for number in range(60_000)]
        peer.say(Subscribe(1, filters))
        with contextlib.suppress(ClosedError):
            assert len(peer.codes(wire.SUBACK, 1, len(filters))) == len(filters)
        stage.everybody_else_is_served()
    stage.grew_at_most(128)


def test_retained_messages_for_everything(stage) -> None:
    """A client subscribes again and again to all that is retained, and reads nothing."""
    with beside(stage):
        with stage.mqtt() as keeper:
            keeper.connect("keeper")
            for number in range(1000):
                keeper.publish(f"kept/{number}", bytes(1000), 1, retain=True)
        with Peer.tcp(stage.router.address("mqtt"), receive_buffer=4096) as deaf:
            deaf.version = V5
            deaf.connect("deaf")
            deaf.say(*(Subscribe(id_, [Filter("kept/#", 0)]) for id_ in range(1, 200)))
            stage.everybody_else_is_served()
    stage.grew_at_most(128)


def test_passwords_that_are_guessed(stage) -> None:
    """Logins fail, and others do not wait for them."""
    with beside(stage):
        for number in range(30):
            with stage.mqtt(V311) as guesser:
                answer = guesser.ask_to_connect("g", user="joe", password=b"%d" % number)
                assert answer.code in (0, 4, 5)


def test_what_attackers_held_is_given_back(stage) -> None:
    """The account of memory is empty once they have gone."""
    with stage.mqtt() as publisher, stage.mqtt() as away:
        away.connect("away")
        away.subscribe("held", qos=1)
        publisher.connect("publisher")
        for _ in range(50):
            publisher.publish("held", bytes(100_000), 1)
    await_true("they have gone", lambda: stage.metric("held_bytes") < 1 << 20, 40)
    stage.nothing_is_held()
