"""What RabbitMQ 3.10 does not do, or not well: MQTT 5, QoS 2, restarts, limits."""

from __future__ import annotations

import pika
import pytest
from rig import mqtt_wire as wire
from rig.backend import Backend
from rig.mqtt_peer import Peer
from rig.waiting import await_true

from fleet.places import Crosstie, take

V5 = wire.V5


@pytest.mark.parametrize("version", [wire.V31, wire.V311, V5])
def test_qos_2_is_published_once(crosstie: Crosstie, version: int) -> None:
    with crosstie.client(f"twice{version}", version) as client:
        assert client.subscribe(f"twice/{version}", qos=2) == [1]
        message = wire.Publish(f"twice/{version}", b"once", 2, id=77)
        client.say(message, message)
        client.ack(wire.PUBREC, 77)
        client.say(wire.Ack(wire.PUBREL, 77))
        client.ack(wire.PUBCOMP, 77)
        client.publish(f"twice/{version}", b"end", 2)
        assert [each.payload for each in client.messages(2)] == [b"once", b"end"]
        client.leave()


def test_properties_cross_to_amqp_and_back(crosstie: Crosstie) -> None:
    channel = crosstie.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", "properties")
    sent = {
        "content_type": "text/plain",
        "response_topic": "answers/here",
        "correlation_data": b"7",
        "user_property": [("a", "1")],
        "message_expiry": 60,
    }
    with crosstie.client("properties", V5) as client:
        client.subscribe("properties", qos=1)
        client.publish("properties", b"x", 1, **sent)
        received = client.message().properties
        assert 0 < received.pop("message_expiry") <= 60
        sent.pop("message_expiry")
        assert received == sent
        found = []
        await_true("it is there", lambda: found.append(take(channel, queue)) or found[-1])
        _, properties, _ = found[-1]
        assert properties.headers == {
            "x-mqtt-publish-qos": 1,
            "x-mqtt-dup": False,
            "x-reply-to-topic": "answers.here",
            "a": "1",
        }
        assert (properties.content_type, properties.correlation_id) == ("text/plain", "7")
        assert properties.expiration == "60000"
        answer = pika.BasicProperties(
            content_type="a/b", correlation_id="8", headers={"n": 1, "x-reply-to-topic": "q.r"}
        )
        channel.basic_publish("amq.topic", "properties", b"y", answer)
        assert client.message().properties == {
            "content_type": "a/b",
            "response_topic": "q/r",
            "correlation_data": b"8",
            "user_property": [("n", "1")],
        }
        client.leave()
    channel.connection.close()


def test_sessions_of_mqtt_5_are_kept_for_their_expiry(crosstie: Crosstie) -> None:
    with crosstie.client("five", V5, clean=True, session_expiry=100) as client:
        client.subscribe("five", qos=1)
        arguments = crosstie.queues("five")["mqtt-subscription-fiveqos1"]["arguments"]
        assert arguments == {"x-expires": 100_000}
        client.leave()
    peer = crosstie.peer(V5)
    answer = peer.connect("five", user="test", password=b"test", clean=False)
    assert answer.present
    assert answer.properties["maximum_qos"] == 1
    # This one ends with its connection.
    peer.leave()
    await_true("the queue is gone", lambda: not crosstie.queues("five"))


def test_refusals_of_mqtt_5(crosstie: Crosstie) -> None:
    with crosstie.client("own5", V5, user="limited") as client:
        assert client.publish("other", b"", 1) == 0x87
        assert client.publish("other", b"", 2) == 0x87
        assert client.publish("a" * 256, b"", 1) == 0x90
        no_local = wire.Filter("own/b", 1, no_local=True)
        codes = client.subscribe("other", "$share/g/own", "own/a", no_local, qos=1)
        assert codes == [0x87, 0x9E, 1, 0x83]
        client.publish("own/a", b"heard", 1)
        assert client.message().payload == b"heard"
        client.leave()
    with crosstie.client("aliases", V5) as client:
        client.subscribe("alias", qos=1)
        client.publish("alias", b"1", 1, topic_alias=3)
        client.publish("", b"2", 1, topic_alias=3)
        assert [each.payload for each in client.messages(2)] == [b"1", b"2"]
        client.say(wire.Publish("x", b"", 1, id=9, properties={"topic_alias": 17}))
        client.expect_disconnect(0x94)
    with crosstie.peer(V5) as peer:
        long = peer.ask_to_connect("a" * 234, user="test", password=b"test")
        assert long.code == 0x85


def test_a_take_over_is_told_in_mqtt_5(crosstie: Crosstie) -> None:
    first = crosstie.client("five twice", V5)
    with crosstie.client("five twice", V5) as second:
        first.expect_disconnect(0x8E)
        second.leave()


def test_large_messages_and_a_small_receiver(crosstie: Crosstie) -> None:
    body = b"x" * 900_000
    with crosstie.client("large", V5) as client:
        client.subscribe("large", qos=1)
        with crosstie.client("small", V5, maximum_packet_size=100) as small:
            small.subscribe("large", qos=1)
            for _ in range(3):
                client.publish("large", body, 1)
            client.publish("large", b"end", 1)
            assert [len(each.payload) for each in client.messages(4)] == [*[900_000] * 3, 3]
            assert small.message().payload == b"end"
            small.leave()
        client.leave()


def test_a_slow_receiver_loses_nothing(crosstie: Crosstie) -> None:
    count, body = 400, b"x" * 50_000
    with crosstie.client("slow") as slow, crosstie.client("fast") as fast:
        slow.subscribe("slow", qos=0)
        # More than its socket and its queues hold: the rest stays in the vhost.
        for number in range(count):
            fast.publish("slow", b"%05d" % number + body, 1)
        numbers = [int(slow.message().payload[:5]) for _ in range(count)]
        assert numbers == list(range(count))
        slow.leave()
        fast.leave()


@pytest.mark.parametrize("way", ["universal", "websocket"])
def test_other_ways_in(crosstie: Crosstie, way: str) -> None:
    address = crosstie.router.address("tcp")
    if way == "universal":
        peer = Peer.to(address, wire.V311)
    else:
        peer = Peer.over_websocket(address, wire.V311)
    peer.connect(way, user="test", password=b"test")
    peer.subscribe(way, qos=1)
    peer.publish(way, b"x", 1)
    assert peer.message().payload == b"x"
    peer.close()


def test_another_user_does_not_take_over(crosstie: Crosstie) -> None:
    with crosstie.client("owned") as client:
        for version, code in ((wire.V311, 2), (V5, 0x85)):
            with crosstie.peer(version) as peer:
                answer = peer.ask_to_connect("owned", user="guest", password=b"guest")
                assert answer.code == code
        client.subscribe("owned", qos=1)
        client.publish("owned", b"still here", 1)
        assert client.message().payload == b"still here"
        client.leave()


def test_filters_have_a_bound_and_take_turns(start) -> None:
    node = start()
    filters = [f"many/{number}" for number in range(10_001)]
    with node.client("many", V5) as client, node.client("witness") as witness:
        client.say(wire.Subscribe(5, [wire.Filter(each, 1) for each in filters], {}))
        # Others are served meanwhile.
        witness.round_trip()
        codes = client.codes(wire.SUBACK, 5, len(filters))
        assert (set(codes[:-1]), codes[-1]) == ({1}, 0x97)
        # One that exists may be subscribed again, and one that ends makes room.
        assert client.subscribe(filters[0], qos=1) == [1]
        assert client.unsubscribe(filters[0]) == [0]
        assert client.subscribe(filters[-1], qos=1) == [1]
        client.leave()
        witness.leave()


def test_a_session_that_is_not_kept_leaves_no_queue_behind(start) -> None:
    node = start()
    client = node.client("passing")
    client.subscribe("passing/#", qos=1)
    node.restart(kill=True)
    client.expect_end()
    assert node.queues("passing") == {}


@pytest.mark.parametrize("kill", [True, False])
def test_a_restart_loses_nothing(start, kill: bool) -> None:
    node = start()
    client = node.client("durable", clean=False)
    client.subscribe("durable/#", qos=1)
    client.close()
    with node.client("sender") as sender:
        for number in range(20):
            sender.publish("durable/a", b"%d" % number, 1)
        node.restart(kill=kill)
    peer = node.peer()
    assert peer.connect("durable", user="test", password=b"test", clean=False).present
    assert [int(each.payload) for each in peer.messages(20)] == list(range(20))
    peer.publish("durable/b", b"new", 1)
    assert peer.message().payload == b"new"
    peer.close()


def test_a_stop_publishes_no_wills(start) -> None:
    node = start()
    keeper = node.client("keeper", clean=False)
    keeper.subscribe("#", qos=1)
    keeper.close()
    mortal = node.client("mortal", will=wire.Will("will", b"", 1))
    node.restart(kill=False)
    mortal.expect_end()
    with node.client("keeper", clean=False) as keeper:
        keeper.publish("after", b"", 1)
        assert keeper.message().topic == "after"
        keeper.leave()


def test_anonymous_clients_have_the_named_user(start) -> None:
    node = start(anonymous_user="guest")
    peer = node.peer()
    peer.connect("nameless")
    rows = node.api.json("connections")
    assert [row["user"] for row in rows if row["protocol"] == "MQTT 3.1.1"] == ["guest"]
    peer.leave()


def test_a_limit_of_connections(start) -> None:
    node = start()
    node.api.ask("PUT", "vhost-limits/%2F/max-connections", {"value": 1})
    with node.client("only") as client:
        peer = node.peer(V5)
        assert peer.ask_to_connect("one more", user="test", password=b"test").code == 0x97
        client.leave()


def test_an_unknown_filter_has_its_code(crosstie: Crosstie) -> None:
    with crosstie.client("unknown", V5, session_expiry=100) as client:
        client.subscribe("known/+", "gone", qos=1)
        assert client.unsubscribe("known/+", "never", "known/+") == [0, 0x11, 0x11]
        client.leave(session_expiry=100)
    # A filter of an earlier connection is known, too.
    with crosstie.client("unknown", V5, clean=False) as client:
        assert client.unsubscribe("gone", "gone") == [0, 0x11]
        client.leave()


def test_a_will_waits_for_its_delay(crosstie: Crosstie) -> None:
    properties = {"will_delay": 1, "message_expiry": 100, "user_property": [("a", "b")]}
    will = wire.Will("delayed/a", b"late", 1, properties=properties)
    with crosstie.client("patient heir", V5) as heir:
        heir.subscribe("delayed/#", qos=1)
        crosstie.client("delayed", V5, will=will, session_expiry=100).close()
        message = heir.message()
        assert (message.topic, message.payload, message.qos) == ("delayed/a", b"late", 1)
        assert message.properties == {"user_property": [("a", "b")]}
        # A session that ends with its connection ends the delay, too.
        will.properties["will_delay"] = 1_000
        crosstie.client("undelayed", V5, will=will).close()
        assert heir.message().payload == b"late"
        heir.leave()


def will_queues(crosstie: Crosstie) -> list[str]:
    """Return the queues in which wills wait."""
    names = [queue["name"] for queue in crosstie.api.json("queues/%2F")]
    return [name for name in names if name.startswith("mqtt-will-")]


def test_a_client_that_comes_back_cancels_its_will(start) -> None:
    crosstie = start()
    will = wire.Will("cancelled", b"never", 1, properties={"will_delay": 1_000})
    for _ in range(2):
        crosstie.client("back", V5, clean=False, will=will, session_expiry=2_000).close()
        await_true("it waits", lambda: will_queues(crosstie) == ["mqtt-will-back"])
        # The confirm follows the commit of all that was before.
        channel = crosstie.channel()
        channel.queue_declare("later", durable=True)
        channel.basic_publish("", "later", b"", pika.BasicProperties(delivery_mode=2))
        # In the store, as the session.
        crosstie.restart(kill=True)
        assert will_queues(crosstie) == ["mqtt-will-back"]
    # With a clean start, too.
    for clean in (False, True):
        crosstie.client("back", V5, clean=False, will=will, session_expiry=2_000).close()
        await_true("it waits", lambda: will_queues(crosstie) == ["mqtt-will-back"])
        with crosstie.client("back", V5, clean=clean, session_expiry=2_000) as client:
            assert will_queues(crosstie) == []
            client.leave()


def test_a_delayed_will_needs_the_rights_of_a_publication(crosstie: Crosstie) -> None:
    with crosstie.client("heir of rights", V5) as heir:
        heir.subscribe("other", "own/#", qos=1)
        # Its user may have no such queue: the will comes at once.
        for topic in ("other", "own/will"):
            will = wire.Will(topic, topic.encode(), 1, properties={"will_delay": 1_000})
            crosstie.client("own6", V5, user="limited", will=will, session_expiry=2_000).close()
        assert heir.message().payload == b"own/will"
        assert "mqtt-will-own6" not in will_queues(crosstie)
        heir.publish("own/end", b"end", 1)
        assert heir.message().payload == b"end"
        heir.leave()


def test_a_delayed_will_does_not_wait_for_a_backend(start) -> None:
    allowed = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nallow"
    server = Backend(lambda _: allowed)
    paths = {
        f"{of}_path": f"http://127.0.0.1:{server.port}/{of}"
        for of in ("user", "vhost", "resource", "topic")
    }
    backends = [{"type": "internal"}, {"type": "http", **paths}]
    crosstie = start(amqp={"auth_backends": backends})
    will = wire.Will("asked", b"at once", 1, properties={"will_delay": 1_000})
    with crosstie.client("heir", V5) as heir:
        heir.subscribe("asked", qos=1)
        client = crosstie.client("asking", V5, user="joe", will=will, session_expiry=2_000)
        # The right to publish there is known then. Those to the will's queue are not.
        client.publish("asked", b"first", 1)
        client.close()
        assert [each.payload for each in heir.messages(2)] == [b"first", b"at once"]
        assert will_queues(crosstie) == []
        heir.leave()
    asked = [got.line for got in server.got if "/topic" in got.line]
    variables = "&variable_map.client_id=asking&variable_map.username=joe&variable_map.vhost=%2F"
    assert [line.count(variables) for line in asked] == [1] * len(asked) != []
    server.close()


def test_a_client_that_reads_late_has_all_acknowledgements(crosstie: Crosstie) -> None:
    # More than may wait for their confirms at once.
    count = 40_000
    with crosstie.client("keeper", clean=False) as keeper:
        keeper.subscribe("late", qos=1)
        keeper.leave()
    with crosstie.client("late", V5) as late:
        for first in range(1, count, 1_000):
            ids = range(first, first + 1_000)
            late.say(*(wire.Publish("late", b"", 1, id=id_) for id_ in ids))
        acks = {late.expect(wire.Ack).id for _ in range(count)}
        assert acks == set(range(1, count + 1))
        late.leave()
    crosstie.client("keeper").leave()
