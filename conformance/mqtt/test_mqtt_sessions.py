"""Sessions: what stays when a connection is lost, what is repeated, and when all of it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rig import mqtt_wire as wire
from rig.mqtt_broker import Broker
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import V5, Ack, Publish

LONG_S = 100_000
# Session expiry of "never".
NEVER = 0xFFFFFFFF


@pytest.fixture
def kept(broker: Broker, version: int) -> Callable[..., tuple[Peer, bool]]:
    """Connect with a session that stays; return whether it was there."""

    def connect(client_id: str, **more: object) -> tuple[Peer, bool]:
        peer = broker.peer(version)
        properties = {"session_expiry": LONG_S} if version == V5 else {}
        connack = peer.connect(client_id, clean=False, **{**properties, **more})
        # MQTT 3.1 has no flag of a session.
        return peer, connack.present

    return connect


def test_messages_for_a_client_that_is_away(broker: Broker, version: int, kept, names) -> None:
    client, present = kept(names.client())
    assert not present
    client.subscribe(names.topic("#"))
    client.leave()
    with broker.client("", V5) as sender:
        for qos in (1, 2, 1):
            sender.publish(names.topic(), b"at %d" % qos, qos)
    client, present = kept(names.client())
    assert present == (version > wire.V31)
    assert [(each.qos, each.dup) for each in client.messages(3)] == [(q, False) for q in (1, 2, 1)]
    # The subscription is there as well.
    client.publish(names.topic(), b"now", 2)
    assert client.message().payload == b"now"


def test_a_clean_start_ends_the_session(broker: Broker, version: int, kept, names) -> None:
    client, _ = kept(names.client())
    client.subscribe(names.topic("#"))
    client.leave()
    with broker.client("", V5) as sender:
        sender.publish(names.topic(), b"lost", 1)
    client = broker.client(names.client(), version, clean=True)
    client.publish(names.topic(), b"unheard", 1)
    client.subscribe(names.topic("#"))
    client.publish(names.topic(), b"heard", 1)
    assert client.message().payload == b"heard"
    client.leave()
    # Neither does that one stay.
    client, present = kept(names.client())
    assert not present
    client.publish(names.topic(), b"unheard", 1)
    client.subscribe(names.topic("end"))
    client.publish(names.topic("end"), b"end", 1)
    assert client.message().payload == b"end"


def test_a_session_outlives_a_lost_connection(broker: Broker, kept, names) -> None:
    client, _ = kept(names.client())
    client.subscribe(names.topic())
    client.reset()
    with broker.client("", V5) as sender:
        sender.publish(names.topic(), b"kept", 1)
    client, _ = kept(names.client())
    assert client.message().payload == b"kept"


def unacknowledged(client: Peer, count: int) -> list[Publish]:
    """Return so many messages, and say nothing."""
    return [client.expect(Publish) for _ in range(count)]


def test_unacknowledged_messages_come_again(broker: Broker, version: int, kept, names) -> None:
    """With the same ids, in the same order, marked as repeated; a new message comes after them."""
    client, _ = kept(names.client())
    client.subscribe(names.topic())
    with broker.client("", V5) as sender:
        for qos in (1, 2, 1):
            sender.publish(names.topic(), b"%d" % qos, qos)
        first = unacknowledged(client, 3)
        assert [each.dup for each in first] == [False] * 3
        client.reset()
        sender.publish(names.topic(), b"new", 1)
    client, _ = kept(names.client())
    again = client.messages(4)
    assert [(each.id, each.payload) for each in again[:3]] == [
        (each.id, each.payload) for each in first
    ]
    # The new one may have been sent to the lost connection.
    assert all(each.dup for each in again[:3])
    # Acknowledgements that were not read yet are lost with the connection.
    client.round_trip()
    client.reset()
    client, _ = kept(names.client())
    client.publish(names.topic(), b"end", 1)
    assert client.message().payload == b"end"


def test_pubrel_comes_again(broker: Broker, kept, names) -> None:
    """A message of QoS 2 that has been received is not repeated, but its PUBREL is."""
    client, _ = kept(names.client())
    client.subscribe(names.topic())
    client.publish(names.topic(), b"once", 2)
    message = client.expect(Publish)
    client.say(Ack(wire.PUBREC, message.id))
    client.ack(wire.PUBREL, message.id)
    client.reset()
    client, _ = kept(names.client())
    client.ack(wire.PUBREL, message.id)
    client.say(Ack(wire.PUBCOMP, message.id))
    client.publish(names.topic(), b"end", 1)
    assert client.message().payload == b"end"


@pytest.mark.parametrize("dup", [True, False])
def test_qos_2_that_is_repeated_after_a_cut(broker: Broker, kept, names, dup: bool) -> None:
    """Delivered once; clients repeat with and without DUP, so the packet id alone counts."""
    receiver = broker.client(names.client("r"), V5)
    receiver.subscribe(names.topic())
    sender, _ = kept(names.client())
    sender.say(Publish(names.topic(), b"once", 2, id=9))
    sender.ack(wire.PUBREC, 9)
    sender.reset()
    sender, _ = kept(names.client())
    sender.say(Publish(names.topic(), b"once", 2, id=9, dup=dup))
    assert sender.ack(wire.PUBREC, 9).code in (0, 0x10)
    sender.say(Ack(wire.PUBREL, 9))
    sender.ack(wire.PUBCOMP, 9)
    # The id is free: this is another message.
    sender.say(Publish(names.topic(), b"twice", 2, id=9))
    sender.ack(wire.PUBREC, 9)
    sender.say(Ack(wire.PUBREL, 9))
    sender.ack(wire.PUBCOMP, 9)
    assert [each.payload for each in receiver.messages(2)] == [b"once", b"twice"]


def test_qos_2_that_is_repeated_at_once(broker: Broker, version: int, names) -> None:
    client = broker.client(names.client(), version)
    client.subscribe(names.topic(), qos=0)
    for number in range(3):
        client.say(Publish(names.topic(), b"once", 2, id=9, dup=number > 0))
        client.ack(wire.PUBREC, 9)
    client.say(Ack(wire.PUBREL, 9))
    client.ack(wire.PUBCOMP, 9)
    client.publish(names.topic(), b"end")
    assert [each.payload for each in client.messages(2)] == [b"once", b"end"]


def test_a_mark_of_repetition_is_of_one_connection(broker: Broker, version: int, names) -> None:
    """A first copy may have been lost before it came to the broker: subscribers have had none."""
    client = broker.client(names.client(), version)
    client.subscribe(names.topic("0"), qos=0)
    client.subscribe(names.topic("1"), qos=1)
    for qos in (0, 1):
        client.say(Publish(names.topic(str(qos)), b"first", 1, id=1 + qos, dup=True))
        client.ack(wire.PUBACK, 1 + qos)
    assert [(each.qos, each.dup) for each in client.messages(2)] == [(0, False), (1, False)]


def test_acknowledgements_of_what_was_never_sent(broker: Broker, version: int, names) -> None:
    """A broker that was restarted hears such ones; the connection remains."""
    client = broker.client(names.client(), version)
    client.say(Ack(wire.PUBACK, 77))
    client.say(Ack(wire.PUBREL, 78))
    assert client.ack(wire.PUBCOMP, 78).code in (0, 0x92)
    client.say(Ack(wire.PUBREC, 79))
    assert client.ack(wire.PUBREL, 79).code in (0, 0x92)
    client.say(Ack(wire.PUBCOMP, 79))
    client.round_trip()


def test_a_second_client_takes_the_place(broker: Broker, version: int, names) -> None:
    first = broker.client(names.client(), version)
    second = broker.client(names.client(), version)
    second.round_trip()
    # A word is allowed in MQTT 5, though it ends mosquitto_sub for good.
    if version < V5:
        first.expect_end()
    else:
        assert first.receive_all() in (b"", b"\xe0\x01\x8e", b"\xe0\x02\x8e\x00")


def test_a_place_that_is_taken_again_and_again(broker: Broker, version: int, kept, names) -> None:
    """No message is lost, and the last one has the session."""
    client, _ = kept(names.client())
    client.subscribe(names.topic(), qos=1)
    sender = broker.client("", V5)
    heard = set()
    for number in range(30):
        sender.publish(names.topic(), b"%d" % number, 1)
        if number % 3 == 0:
            client, _ = kept(names.client())
    while len(heard) < 30:
        heard.add(int(client.message().payload))
    assert heard == set(range(30))


def test_the_order_of_many_messages_kept(broker: Broker, kept, names) -> None:
    client, _ = kept(names.client())
    client.subscribe(names.topic(), qos=1)
    client.leave()
    with broker.client("", V5) as sender:
        for number in range(90):
            sender.publish(names.topic(), b"%d" % number, 1)
    client, _ = kept(names.client())
    assert [int(each.payload) for each in client.messages(90)] == list(range(90))


def test_a_session_that_ends_with_its_connection(broker: Broker, names) -> None:
    """MQTT 5: without an expiry, whatever the start was."""
    for properties in ({}, {"session_expiry": 0}):
        peer = broker.peer(V5)
        assert not peer.connect(names.client(), clean=False, **properties).present
        peer.subscribe(names.topic())
        peer.leave()
    assert not broker.peer(V5).connect(names.client(), clean=False).present


def test_a_session_that_expires(broker: Broker, await_seconds, names) -> None:
    for client_id, expiry in (("short", 1), ("long", LONG_S), ("never", NEVER)):
        with broker.client(names.client(client_id), V5, session_expiry=expiry) as peer:
            peer.subscribe(names.topic())
    await_seconds(3)
    found = {
        client_id: broker.peer(V5).connect(names.client(client_id), clean=False).present
        for client_id in ("short", "long", "never")
    }
    assert found == {"short": False, "long": True, "never": True}


def test_disconnect_changes_the_expiry(broker: Broker, names) -> None:
    """To nothing, and the session is gone; to more, and it stays."""
    peer = broker.client(names.client(), V5, session_expiry=1)
    peer.leave(session_expiry=LONG_S)
    peer = broker.peer(V5)
    assert peer.connect(names.client(), clean=False, session_expiry=LONG_S).present
    peer.leave(session_expiry=0)
    assert not broker.peer(V5).connect(names.client(), clean=False).present


def test_an_expiry_where_there_was_none(broker: Broker, names) -> None:
    """DISCONNECT may not make a session stay that was to end."""
    peer = broker.client(names.client(), V5)
    peer.say(wire.Disconnect(0, {"session_expiry": LONG_S}))
    peer.expect_disconnect(0x82)
    assert not broker.peer(V5).connect(names.client(), clean=False).present


def test_a_session_in_each_version(broker: Broker, names) -> None:
    """One that 3.1.1 began goes on in MQTT 5, and the other way."""
    client = broker.client(names.client(), wire.V311, clean=False)
    client.subscribe(names.topic(), qos=1)
    client.leave()
    sender = broker.client("", V5)
    sender.publish(names.topic(), b"one", 1)
    client = broker.peer(V5)
    assert client.connect(names.client(), clean=False, session_expiry=LONG_S).present
    assert client.message().payload == b"one"
    client.leave()
    sender.publish(names.topic(), b"two", 1, user_property=[("a", "b")])
    client = broker.peer(wire.V311)
    assert client.connect(names.client(), clean=False).present
    assert plain(client.message()) == Publish(names.topic(), b"two", 1)
