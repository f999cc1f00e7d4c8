"""Wills: when the broker publishes them, when it does not, and what they are like."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rig import mqtt_wire as wire
from rig.mqtt_broker import Broker
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import V5, Publish, Will

# Longer than any test.
LONG_S = 1000


@pytest.fixture
def heir(broker: Broker, names) -> Peer:
    """A client that hears the wills of the test."""
    peer = broker.client(names.client("heir"), V5)
    peer.subscribe(names.topic("#"))
    return peer


@pytest.fixture
def mortal(broker: Broker, version: int, names) -> Callable[..., Peer]:
    """Connect with a will."""

    def connect(qos: int = 1, retain: bool = False, **more: object) -> Peer:
        will = Will(names.topic("will"), b"gone", qos, retain)
        return broker.client(names.client("m"), version, will=will, **more)

    return connect


def expect_no_will(broker: Broker, heir: Peer, names) -> None:
    with broker.client("", V5) as other:
        other.publish(names.topic("end"), b"end", 1)
    assert heir.message().payload == b"end"


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_lost_connection(heir: Peer, mortal, names, qos: int) -> None:
    mortal(qos).reset()
    assert plain(heir.message()) == Publish(names.topic("will"), b"gone", qos)


def test_a_connection_that_is_closed_without_disconnect(heir: Peer, mortal, names) -> None:
    mortal().close()
    assert heir.message().payload == b"gone"


def test_a_disconnect_takes_it_back(broker: Broker, heir: Peer, mortal, names) -> None:
    mortal().leave()
    expect_no_will(broker, heir, names)


def test_a_client_that_is_silent(heir: Peer, mortal) -> None:
    """One and a half times of its keep-alive; it is closed, too.

    A DISCONNECT may come before that. Without one, a machine that was asleep comes back.
    """
    client = mortal(keep_alive=1)
    assert heir.message().payload == b"gone"
    assert client.receive_all() in (b"", b"\xe0\1\x8d", b"\xe0\2\x8d\0")


def test_a_client_that_pings(broker: Broker, heir: Peer, mortal, version: int, names) -> None:
    """Another one, which does not, is lost meanwhile."""
    client = mortal(keep_alive=2)
    client.round_trip()
    watched = Will(names.topic("silent"), b"silent", 1)
    broker.client(names.client("silent"), version, keep_alive=1, will=watched)
    while not any(isinstance(each, Publish) for each in heir.kept):
        client.round_trip()
        heir.round_trip()
    assert heir.message().payload == b"silent"
    client.leave()
    expect_no_will(broker, heir, names)


def test_a_violation(heir: Peer, mortal) -> None:
    client = mortal()
    # QoS 3.
    client.send(wire.packet(wire.PUBLISH, b"\0\1a\0\1", 6))
    assert heir.message().payload == b"gone"
    client.expect_disconnect(0x81, 0x82)


def test_a_will_that_is_retained(broker: Broker, heir: Peer, mortal, names) -> None:
    mortal(retain=True).reset()
    assert not heir.message().retain
    late = broker.client(names.client("late"), V5)
    late.subscribe(names.topic("will"))
    assert plain(late.message()) == Publish(names.topic("will"), b"gone", 1, True)
    late.publish(names.topic("will"), b"", 1, retain=True)


def test_an_empty_will(broker: Broker, heir: Peer, version: int, names) -> None:
    will = Will(names.topic("will"), b"", 1)
    broker.client(names.client("m"), version, will=will).reset()
    assert plain(heir.message()) == Publish(names.topic("will"), b"", 1)


def test_a_place_that_is_taken_by_a_new_session(broker: Broker, heir: Peer, mortal, names) -> None:
    mortal()
    mortal().leave()
    assert heir.message().payload == b"gone"
    expect_no_will(broker, heir, names)


def test_a_session_that_goes_on_elsewhere(broker: Broker, heir: Peer, version, names) -> None:
    """The connection is closed without DISCONNECT, so its will counts; it has no delay."""
    will = Will(names.topic("will"), b"gone", 1)
    kept = {"session_expiry": LONG_S} if version == V5 else {}
    for _ in range(2):
        client = broker.client(names.client("m"), version, clean=False, will=will, **kept)
    client.leave()
    assert heir.message().payload == b"gone"
    expect_no_will(broker, heir, names)


def test_properties_of_a_will(broker: Broker, heir: Peer, names) -> None:
    properties = {
        "payload_format": 1,
        "content_type": "text/plain",
        "response_topic": "a/b",
        "correlation_data": b"\0\1",
        "user_property": [("a", "2"), ("c", "3"), ("a", "1")],
    }
    will = Will(names.topic("will"), b"gone", 2, properties={**properties, "will_delay": 0})
    broker.client(names.client("m"), V5, will=will).reset()
    assert heir.message().properties == properties


@pytest.mark.parametrize("code", [0x04, 0x80, 0x83, 0x97])
def test_a_disconnect_that_leaves_it(broker: Broker, heir: Peer, names, code: int) -> None:
    """Any reason but 0 leaves the will in force."""
    client = broker.client(names.client("m"), V5, will=Will(names.topic("will"), b"gone", 1))
    client.leave(code)
    assert heir.message().payload == b"gone"


def test_a_delay(broker: Broker, heir: Peer, names) -> None:
    """The session outlives it. A will without a delay overtakes it."""
    late = Will(names.topic("late"), b"late", 1, properties={"will_delay": 1})
    broker.client(names.client("a"), V5, will=late, session_expiry=LONG_S).reset()
    early = Will(names.topic("early"), b"early", 1)
    broker.client(names.client("b"), V5, will=early).reset()
    assert [each.payload for each in heir.messages(2)] == [b"early", b"late"]


def test_a_delay_and_a_client_that_comes_back(broker: Broker, heir: Peer, names) -> None:
    """The will is not published; another client's, which waits longer, is."""
    for name, delay in (("a", 1), ("b", 2)):
        will = Will(names.topic(name), name.encode(), 1, properties={"will_delay": delay})
        broker.client(names.client(name), V5, will=will, session_expiry=LONG_S).reset()
    broker.client(names.client("a"), V5, clean=False, session_expiry=LONG_S)
    assert heir.message().payload == b"b"


@pytest.mark.parametrize("expiry", [0, 1])
def test_a_delay_ends_with_the_session(broker: Broker, heir: Peer, names, expiry: int) -> None:
    will = Will(names.topic("will"), b"gone", 1, properties={"will_delay": LONG_S})
    broker.client(names.client("m"), V5, will=will, session_expiry=expiry).reset()
    assert heir.message().payload == b"gone"


def test_a_delay_and_a_new_session(broker: Broker, heir: Peer, names) -> None:
    """A clean start ends the former session, and the delay with it."""
    will = Will(names.topic("will"), b"gone", 1, properties={"will_delay": LONG_S})
    broker.client(names.client("m"), V5, will=will, session_expiry=LONG_S).reset()
    broker.client(names.client("m"), V5, clean=True)
    assert heir.message().payload == b"gone"


def test_a_will_that_is_forbidden(strict: Broker, version: int, names) -> None:
    """Refused with CONNECT, or dropped when the client is lost."""
    peer = strict.peer(version)
    answer = peer.ask_to_connect(names.client("m"), will=Will("test/forbidden/will", b"", 1))
    assert answer.code in (0, 0x87 if version == V5 else 5)
    peer.reset()
    strict.client(names.client("m"), version).round_trip()


def test_a_will_for_a_client_that_is_away(broker: Broker, mortal, version: int, names) -> None:
    kept = broker.client(names.client("kept"), V5, session_expiry=LONG_S)
    kept.subscribe(names.topic("will"))
    kept.leave()
    witness = broker.client(names.client("heir"), V5)
    witness.subscribe(names.topic("will"))
    mortal(2).reset()
    witness.message()
    kept = broker.client(names.client("kept"), V5, clean=False)
    assert kept.message().payload == b"gone"
