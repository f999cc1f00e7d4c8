"""MQTT clients as sessions of a realm: its stop, its authorizers, its limits."""

from __future__ import annotations

import re
import threading

import pytest
from rig import config, mqtt_broker
from rig import mqtt_wire as wire
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5, Publish
from rig.node import management
from rig.rawsocket import RawSocket
from rig.session import EVENT, INVOCATION, SUBSCRIBE, YIELD
from rig.waiting import await_true

LONG_S = 100_000
SUBSCRIBED = 33


def has_sessions(node: mqtt_broker.Node) -> bool:
    """Return whether the space of the realm has sessions, if it is there."""
    found = re.search(
        r'^crosstie_mqtt_sessions\{.*realm="realm1".*\} (\d+)', node.router.page("/metrics"), re.M
    )
    return found is not None and found[1] != "0"


def test_a_realm_that_is_stopped_ends_the_sessions(start_node) -> None:
    """And the next realm of that name begins without them."""
    started = start_node()
    place = started.broker()
    for _ in range(2):
        here = place.client("here", session_expiry=LONG_S, clean=False)
        away = place.client("away", session_expiry=LONG_S)
        away.subscribe("news", qos=1)
        away.leave()
        assert here.subscribe("kept", "news") == [2, 2]
        here.publish("kept", b"old", 1, retain=True)
        assert here.message().payload == b"old"
        with management(started.directory) as manager:
            manager.call("crossbar.worker.worker1.stop_router_realm", "realm1")
            here.expect_end()
            await_true("no session is left", lambda: not has_sessions(started))
            manager.call(
                "crossbar.worker.worker1.start_router_realm", "realm1", mqtt_broker.realm()
            )
        back = place.peer()
        assert not back.connect("away", clean=False, session_expiry=LONG_S).present
        back.subscribe("kept")
        back.publish("kept", b"new", 1)
        assert back.message().payload == b"new"
        back.leave()


def test_what_is_sent_before_a_close_waits_for_an_authorizer(start_node) -> None:
    """The client has gone when the answers come; all of its messages count."""
    asks = {"name": "asked", "authorizer": "com.authorize"}
    started = start_node(
        mqtt_broker.configuration(
            mqtt_broker.transport(auth=config.static("asked")), of=mqtt_broker.realm(asks)
        )
    )
    address = started.router.address("tcp")
    with RawSocket.tcp(address).shake_hands().join() as session:
        session.register("com.authorize")
        session.ask(SUBSCRIBE, {"match": "prefix"}, "a")
        session.hear(SUBSCRIBED)
        peer = started.broker().client("short")
        peer.say(Publish("a/1", b"first"), Publish("a/2", b"second"), wire.Disconnect())
        peer.close()
        for payload in ("first", "second"):
            asked = session.hear(INVOCATION)
            session.say(YIELD, asked[1], {}, [{"allow": True, "cache": False}])
            assert session.hear(EVENT)[4] == [payload]


ROLES = {
    "few": {"subscriptions_max": 3},
    "small": {"message_bytes_max": 1_024},
    "newest": {"queue_bytes_max": 65_536, "slow_consumer": "drop-oldest"},
    "oldest": {"queue_bytes_max": 65_536},
    "strict": {"queue_bytes_max": 65_536, "slow_consumer": "disconnect"},
    "patient": {"queue_bytes_max": 65_536, "slow_consumer": "back-pressure"},
}


@pytest.fixture
def limited(start_node) -> mqtt_broker.Node:
    """Start a node with a transport for each of the roles."""
    roles = [{**config.role(name), "limits": limits} for name, limits in ROLES.items()]
    transports = [mqtt_broker.transport(name, auth=config.static(name)) for name in ROLES]
    return start_node(
        mqtt_broker.configuration(
            mqtt_broker.transport(), *transports, of=mqtt_broker.realm(*roles)
        )
    )


def at(node: mqtt_broker.Node, name: str) -> mqtt_broker.Broker:
    """Return a transport as a place for clients."""
    return mqtt_broker.Broker("crosstie", lambda: node.address(name))


def test_subscriptions_of_a_role(limited) -> None:
    client = at(limited, "few").client("few", session_expiry=LONG_S)
    assert client.subscribe("a", "b", "c", "d", qos=1) == [1, 1, 1, 0x97]
    client.unsubscribe("a")
    assert client.subscribe("d", "b", qos=1) == [1, 1]
    client.close()
    # Those of a kept session count.
    again = at(limited, "few").client("few", clean=False)
    assert again.subscribe("e", qos=1) == [0x97]
    assert at(limited, "mqtt").client().subscribe("a", "b", "c", "d", qos=1) == [1] * 4


def test_the_size_of_packets_of_a_role(limited) -> None:
    peer = at(limited, "small").peer()
    assert peer.connect("small").properties["maximum_packet_size"] == 1_024
    peer.subscribe("a", qos=1)
    # As long as it may be, whatever the realm makes of it.
    whole = Publish("a", b"x" * (1_024 - 9), 1, id=7)
    assert len(wire.encode(whole, V5)) == 1_024
    peer.say(whole)
    assert peer.message().payload == whole.payload
    assert peer.ack(wire.PUBACK, 7).code == 0
    peer.say(Publish("a", b"x" * 1_024, 1, id=8))
    peer.expect_disconnect(0x95)


def deaf(node: mqtt_broker.Node, name: str, qos: int = 0) -> Peer:
    """Connect a client that reads nothing after its subscription."""
    peer = Peer.tcp(node.address(name), receive_buffer=4096)
    peer.version = V5
    peer.connect(name)
    peer.subscribe("flood", qos=qos)
    return peer


def number_of(message: Publish) -> int:
    """Return the number at the beginning of a payload."""
    return int(message.payload.split()[0])


@pytest.mark.parametrize("name", ["oldest", "newest"])
def test_the_queue_of_a_role(limited, name: str) -> None:
    """Beyond it the new or the oldest messages of QoS 0 are dropped."""
    with deaf(limited, name) as slow:
        publisher = at(limited, "mqtt").client()
        for number in range(1_000):
            publisher.publish("flood", b"%d " % number + bytes(10_000), 1)
        heard = []
        while not heard or heard[-1] < 2_000:
            publisher.publish("flood", b"2000", 1)
            heard.append(number_of(slow.expect(Publish)))
    assert heard == sorted(heard)
    assert 0 in heard
    assert (999 in heard) == (name == "newest")
    assert len(set(heard)) < 1_000


def test_a_slow_client_of_a_strict_role_ends(limited) -> None:
    with deaf(limited, "strict") as slow:
        publisher = at(limited, "mqtt").client()
        for _ in range(1_000):
            publisher.publish("flood", bytes(10_000), 1)
        assert limited.router.metric("sessions_closed_for_slowness_total") == 1
        slow.expect_disconnect(0x97)


def test_messages_that_wait_are_no_reason_to_end(limited) -> None:
    """Those of QoS 1 wait in the session."""
    with deaf(limited, "strict", qos=1) as slow:
        publisher = at(limited, "mqtt").client()
        for number in range(500):
            publisher.publish("flood", b"%d " % number + bytes(10_000), 1)
        assert [number_of(slow.message()) for _ in range(500)] == list(range(500))


def test_a_publisher_waits_for_a_patient_client(limited) -> None:
    """Nothing is dropped: the publisher is not read meanwhile."""
    with deaf(limited, "patient") as slow:
        publisher = at(limited, "mqtt").client("eager")

        def publish() -> None:
            for number in range(2_000):
                publisher.say(Publish("flood", b"%d " % number + bytes(10_000)))

        publishing = threading.Thread(target=publish)
        publishing.start()
        metric = limited.router.metric
        await_true("the publisher waits", lambda: metric("publishers_held_back_total") > 0)
        assert [number_of(slow.expect(Publish)) for _ in range(2_000)] == list(range(2_000))
        publishing.join()
        publisher.round_trip()


def test_a_will_is_the_clients_own_publication(start_node) -> None:
    """The realm asks the authorizer again, and discloses the client."""
    asks = {"name": "asked", "authorizer": "com.authorize"}
    started = start_node(
        mqtt_broker.configuration(
            mqtt_broker.transport(auth=config.static("asked", "joe")),
            of=mqtt_broker.realm(asks),
        )
    )
    with RawSocket.tcp(started.router.address("tcp")).shake_hands().join() as session:
        session.register("com.authorize")
        session.ask(SUBSCRIBE, {"match": "prefix"}, "will")
        session.hear(SUBSCRIBED)

        def answer(action: str, allow: bool) -> None:
            asked = session.hear(INVOCATION)
            assert asked[4][2] == action
            assert asked[4][0]["authid"] == "joe"
            session.say(YIELD, asked[1], {}, [{"allow": allow, "cache": False, "disclose": True}])

        with Peer.to(started.router.address("tcp")) as heir:
            heir.connect("heir")
            heir.subscribe("will/#")
            for number, allow in enumerate([True, False, True]):
                mortal = Peer.to(started.address())
                mortal.say(wire.Connect("m", will=wire.Will(f"will/{number}", b"gone", 1)))
                answer("publish", True)
                assert mortal.hear().code == 0
                mortal.reset()
                answer("publish", allow)
                if allow:
                    details = session.hear(EVENT)[3]
                    assert details["topic"] == f"will.{number}"
                    assert details["publisher_authid"] == "joe"
            assert [each.topic for each in heir.messages(2)] == ["will/0", "will/2"]
