"""Queues, bindings and messages of MQTT clients, as AMQP sees them."""

from __future__ import annotations

import pika
import pytest
from rig import mqtt_wire as wire
from rig.waiting import await_true

from fleet.places import Place, take

# RabbitMQ says `long`, which the API shows as a number.
DAY_MS = 86_400_000


def test_queues_of_a_clean_session(place: Place) -> None:
    with place.client("clean 1.x") as client:
        assert client.subscribe("a/+/c", qos=0) == [0]
        assert client.subscribe("a/#", qos=1) == [1]
        kind = {"auto_delete": True, "exclusive": False, "arguments": {}}
        assert place.queues("clean 1.x") == {
            "mqtt-subscription-clean 1.xqos0": {"durable": False, **kind},
            # After a crash nobody would delete a durable one.
            "mqtt-subscription-clean 1.xqos1": {"durable": place.is_rabbitmq, **kind},
        }
        assert place.bindings("clean 1.x") == {
            ("", "mqtt-subscription-clean 1.xqos0", "mqtt-subscription-clean 1.xqos0", "{}"),
            ("", "mqtt-subscription-clean 1.xqos1", "mqtt-subscription-clean 1.xqos1", "{}"),
            ("amq.topic", "mqtt-subscription-clean 1.xqos0", "a.*.c", "{}"),
            ("amq.topic", "mqtt-subscription-clean 1.xqos1", "a.#", "{}"),
        }
        client.leave()
    await_true("the queues are gone", lambda: not place.queues("clean 1.x"))


def test_queues_of_a_session_that_is_kept(place: Place) -> None:
    with place.client("kept", clean=False) as client:
        assert client.subscribe("a/b", "c", qos=2) == [1, 1]
        client.subscribe("zero", qos=0)
        expected = {
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "arguments": {"x-expires": DAY_MS},
        }
        assert place.queues("kept")["mqtt-subscription-keptqos1"] == expected
        client.unsubscribe("c")
        client.leave()
    await_true("the queue of QoS 0 is gone", lambda: len(place.queues("kept")) == 1)
    assert place.queues("kept") == {"mqtt-subscription-keptqos1": expected}
    keys = {key for source, _, key, _ in place.bindings("kept") if source}
    assert keys == {"a.b"}
    # A clean session deletes it.
    with place.client("kept") as client:
        client.leave()
    await_true("the queue is gone", lambda: not place.queues("kept"))


@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_of_mqtt_in_an_amqp_queue(place: Place, qos: int) -> None:
    channel = place.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "home.*.temperature")
    with place.client(f"sensor{qos}") as client:
        client.publish("home/kitchen/temperature", b"21.5", qos)
        client.round_trip()
        found = []
        await_true("it is there", lambda: found.append(take(channel, queue)) or found[-1])
        body, properties, key = found[-1]
        assert (body, key) == (b"21.5", "home.kitchen.temperature")
        assert properties.headers == {"x-mqtt-publish-qos": qos, "x-mqtt-dup": False}
        assert properties.delivery_mode == 1 + qos
        others = {**vars(properties), "headers": None, "delivery_mode": None}
        assert not any(others.values()), others
        client.leave()
    channel.connection.close()


@pytest.mark.parametrize(
    ("key", "topic"), [("a.b", "a/b"), ("a/b", "a/b"), (".a", "/a"), ("a..b", "a//b"), (".", "/")]
)
def test_a_message_of_amqp_reaches_mqtt(place: Place, key: str, topic: str) -> None:
    channel = place.channel()
    with place.client("reader") as client:
        client.subscribe("#", qos=1)
        properties = pika.BasicProperties(content_type="text/plain", headers={"n": 1})
        channel.basic_publish("amq.topic", key, b"hello", properties)
        message = client.message()
        assert (message.topic, message.payload, message.qos) == (topic, b"hello", 1)
        assert (message.retain, message.dup) == (False, False)
        client.leave()
    channel.connection.close()


def test_a_filter_matches_as_binding_keys_do(place: Place) -> None:
    cases = {
        "w/#": {"w", "w/", "w/1", "w/1/2"},
        "w/+": {"w/1", "w/"},
        "w/*": {"w/1", "w/"},
        "+/x": {"/x", "y/x"},
    }
    if place.is_rabbitmq:
        # No filter by the specification.
        cases["w.+"] = {"w/1", "w/"}
    topics = ["w", "w/1", "w/1/2", "w/", "/x", "y/x"]
    for number, (filter_, expected) in enumerate(cases.items()):
        with place.client(f"matching{number}") as client:
            client.subscribe(filter_, f"end/{number}", qos=1)
            for topic in topics:
                client.publish(topic, b"", 1)
            client.publish(f"end/{number}", b"end", 1)
            heard = set()
            while (message := client.message()).payload != b"end":
                heard.add(message.topic)
            assert heard == expected, filter_
            client.leave()


def test_a_kept_session_gets_what_came_meanwhile(place: Place) -> None:
    with place.client("away", clean=False) as client:
        client.subscribe("away/#", qos=1)
        client.leave()
    with place.client("sender") as sender:
        for qos in (0, 1):
            sender.publish("away/1", b"%d" % qos, qos)
        sender.leave()
    peer = place.peer()
    connack = peer.connect("away", user="test", password=b"test", clean=False)
    assert connack.present
    assert [(each.payload, each.qos) for each in peer.messages(2)] == [(b"0", 0), (b"1", 1)]
    peer.close()
    with place.client("away") as client:
        client.leave()


def test_unacknowledged_messages_come_again(place: Place) -> None:
    peer = place.peer()
    peer.connect("again", user="test", password=b"test", clean=False)
    peer.subscribe("again", qos=1)
    with place.client("again sender") as sender:
        sender.publish("again", b"1", 1)
        sender.publish("again", b"2", 1)
        sender.leave()
    unacknowledged = [peer.expect(wire.Publish) for _ in range(2)]
    assert [message.dup for message in unacknowledged] == [False, False]
    peer.close()
    peer = place.peer()
    assert peer.connect("again", user="test", password=b"test", clean=False).present
    again = peer.messages(2)
    assert [(each.payload, each.dup) for each in again] == [(b"1", True), (b"2", True)]
    peer.close()
    with place.client("again") as client:
        client.leave()


def test_prefetch_bounds_what_is_not_acknowledged(place: Place) -> None:
    with place.client("busy") as client:
        client.subscribe("busy", qos=1)
        with place.client("busy sender") as sender:
            for number in range(15):
                sender.publish("busy", b"%d" % number, 1)
            sender.leave()
        held = [client.expect(wire.Publish) for _ in range(10)]
        client.round_trip()
        assert not client.kept
        for message in held:
            client.say(wire.Ack(wire.PUBACK, message.id))
        assert [int(each.payload) for each in client.messages(5)] == list(range(10, 15))
        client.leave()


def test_a_vhost_in_the_user_name(place: Place) -> None:
    with place.client("elsewhere", user="second:test") as client:
        client.subscribe("a", qos=1)
        await_true("the queue is there", lambda: place.queues("elsewhere", "second"))
        assert not place.queues("elsewhere")
        client.leave()


def test_a_deleted_queue_ends_the_connection(place: Place) -> None:
    with place.client("robbed", clean=False) as client:
        client.subscribe("a", qos=1)
        channel = place.channel()
        channel.queue_delete("mqtt-subscription-robbedqos1")
        client.expect_end()
        channel.connection.close()


def test_management_lists_and_closes_connections(place: Place) -> None:
    with place.client("listed", keep_alive=30) as client:

        def row() -> dict | None:
            rows = place.api.json("connections")
            named = [r for r in rows if r.get("client_properties", {}).get("client_id") == "listed"]
            return named[0] if named else None

        await_true("it is listed", row)
        found = row()
        assert found["protocol"] == "MQTT 3.1.1"
        assert (found["user"], found["vhost"]) == ("test", "/")
        assert found["client_properties"]["product"] == "MQTT client"
        name = found["name"].replace(" ", "%20").replace(">", "%3E")
        place.api.ask("DELETE", f"connections/{name}")
        client.expect_end()
