"""Rules of sessions, wills and permissions of MQTT clients in a vhost."""

from __future__ import annotations

import pytest
from rig import mqtt_wire as wire
from rig.waiting import await_true

from fleet.places import Place

BAD_LOGIN = 4


@pytest.mark.parametrize(
    ("user", "password"),
    [("test", b"wrong"), ("unknown", b"x"), ("nowhere:test", b"test"), (None, None)],
)
def test_refused_logins(place: Place, user, password) -> None:
    with place.peer() as peer:
        answer = peer.ask_to_connect("x", user=user, password=password)
        # Without a user name RabbitMQ lets clients in as guest, unless configured otherwise.
        is_guest = user is None and place.is_rabbitmq
        assert answer.code == (0 if is_guest else BAD_LOGIN)


def test_a_kept_session_needs_an_identifier(place: Place) -> None:
    with place.peer() as peer:
        answer = peer.ask_to_connect("", user="test", password=b"test", clean=False)
        assert answer.code == 2
    with place.client("") as client:
        assert client.subscribe("a", qos=1) == [1]
        client.leave()


@pytest.mark.parametrize("clean", [True, False])
def test_a_second_connection_takes_over(place: Place, clean: bool) -> None:
    will = wire.Will("take/over/will", b"lost", 1)
    with place.client("watcher") as watcher:
        watcher.subscribe("take/over/#", qos=1)
        first = place.client("taken", clean=clean, will=will)
        first.subscribe("take/over/x", qos=1)
        second = place.peer()
        answer = second.connect("taken", user="test", password=b"test", clean=clean)
        assert answer.present == (not clean)
        first.expect_end()
        watcher.publish("take/over/x", b"x", 1)
        # The will of the first one would have come before.
        assert watcher.message().payload == b"x"
        if not clean:
            assert second.message().payload == b"x"
        second.leave()
        with place.client("taken") as last:
            last.leave()
        watcher.leave()


@pytest.mark.parametrize("ending", ["lost", "left"])
def test_a_will(place: Place, ending: str) -> None:
    will = wire.Will("wills/a", b"gone", 1)
    with place.client("heir") as heir:
        heir.subscribe("wills/#", qos=1)
        client = place.client("mortal", will=will)
        if ending == "lost":
            client.close()
            assert (heir.message().payload, heir.kept) == (b"gone", [])
        else:
            client.leave()
            heir.publish("wills/b", b"next", 1)
            assert heir.message().payload == b"next"
        heir.leave()


def test_a_silent_client_is_lost(place: Place) -> None:
    with place.client("heir of silence") as heir:
        heir.subscribe("silence", qos=1)
        will = wire.Will("silence", b"silent", 0)
        silent = place.client("silent", will=will, keep_alive=1)
        assert heir.message().payload == b"silent"
        silent.expect_end()
        heir.leave()


def test_permissions(place: Place) -> None:
    with place.client("own", user="limited") as client:
        assert client.subscribe("own/#", qos=1) == [1]
        client.publish("own/a", b"1", 1)
        assert client.message().payload == b"1"
        # The topic is not permitted.
        client.say(wire.Publish("other/a", b"2", 1, id=9))
        client.expect_end()
    with place.peer() as peer:
        peer.connect("other", user="limited", password=b"limited")
        # Neither is a queue of that name. RabbitMQ closes, where MQTT has a code.
        if place.is_rabbitmq:
            peer.say(wire.Subscribe(1, [wire.Filter("own/a", 1)], {}))
            peer.expect_end()
        else:
            assert peer.subscribe("own/a", qos=1) == [0x80]
            peer.leave()


def test_a_retained_message(place: Place) -> None:
    with place.client("retainer") as client:
        client.publish("retained/a", b"kept", 1, retain=True)
        client.subscribe("retained/a", qos=1)
        message = client.message()
        assert (message.payload, message.retain, message.qos) == (b"kept", True, 1)
        client.publish("retained/a", b"", 1, retain=True)
        assert client.message().payload == b""
        client.subscribe("retained/a", "end", qos=1)
        client.publish("end", b"end", 1)
        assert client.message().payload == b"end"
        client.leave()


def test_an_unsubscribed_filter_is_silent(place: Place) -> None:
    with place.client("unsubscriber") as client:
        client.subscribe("un/a", "un/b", qos=1)
        client.unsubscribe("un/a", "never")
        client.publish("un/a", b"1", 1)
        client.publish("un/b", b"2", 1)
        assert client.message().payload == b"2"
        client.leave()


def test_many_clients_and_their_ends(place: Place) -> None:
    clients = [place.client(f"many{number}") for number in range(30)]
    for client in clients:
        client.subscribe("many", qos=1)
    clients[0].publish("many", b"x", 1)
    assert [client.message().payload for client in clients] == [b"x"] * 30
    for client in clients:
        client.close()
    await_true(
        "their queues are gone",
        lambda: not any(place.queues(f"many{number}") for number in range(30)),
    )
