"""Crossbar.io's `payload_mapping`, as its users write it: passthrough, native and dynamic."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from rig import config, mqtt_broker
from rig.mqtt_broker import Broker
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import EVENT, INVOCATION, PUBLISH, PUBLISHED, YIELD

MAPPING = {
    "": {"type": "passthrough"},
    "com.native": {"type": "native", "serializer": "json"},
    "com.cbor": {"type": "native", "serializer": "cbor"},
    "com.dynamic": {
        "type": "dynamic",
        "realm": "realm1",
        "encoder": "codec.encode",
        "decoder": "codec.decode",
    },
}
PARTIAL = {"com.native": {"type": "native", "serializer": "json"}}


@pytest.fixture(scope="module")
def mapped(tmp_path_factory) -> Iterator[Router]:
    """A node whose realms have different mappings."""
    listeners = [
        mqtt_broker.transport(payload_mapping=MAPPING),
        mqtt_broker.transport("partial", realm="realm2", payload_mapping=PARTIAL),
        config.universal("tcp", config.tcp()),
    ]
    realms = [{"name": name, "roles": [config.role("anonymous")]} for name in ("realm1", "realm2")]
    running = Router(tmp_path_factory.mktemp("mapped"), config=config.node(realms, listeners))
    yield running
    running.stop()


@pytest.fixture
def place(mapped: Router) -> Iterator[Broker]:
    """The listener with all of the mappings."""
    found = Broker("crosstie", lambda: mapped.address("mqtt"))
    yield found
    found.close()


@pytest.fixture
def session(mapped: Router) -> Iterator[RawSocket]:
    """A WAMP session."""
    with RawSocket.tcp(mapped.address("tcp")).shake_hands("cbor").join() as joined:
        yield joined


def test_passthrough(place: Broker, session: RawSocket) -> None:
    """The payload stands in place of arguments, under Crossbar.io's name for it."""
    client = place.client("through")
    client.subscribe("com/through")
    session.subscribe("com.through")
    client.publish("com/through", b"\xff1", 1)
    heard = session.hear(EVENT)
    assert heard[3]["enc_algo"] == "mqtt"
    assert heard[4:] == [b"\xff1"]
    assert client.message().payload == b"\xff1"
    session.ask(PUBLISH, {"acknowledge": True}, "com.through", ["arguments"])
    session.hear(PUBLISHED)
    session.ask(PUBLISH, {"acknowledge": True, "enc_algo": "mqtt"}, "com.through", b"octets")
    session.hear(PUBLISHED)
    # Events with arguments do not pass.
    assert client.message().payload == b"octets"


def test_native(place: Broker, session: RawSocket) -> None:
    client = place.client("native")
    client.subscribe("com/native/#")
    session.subscribe("com.native", match="prefix")
    client.publish("com/native/a", b'{"args": [1], "kwargs": {"k": "v"}}', 1)
    assert session.hear(EVENT)[4:] == [[1], {"k": "v"}]
    assert json.loads(client.message().payload) == {"args": [1], "kwargs": {"k": "v"}}
    session.ask(PUBLISH, {"acknowledge": True}, "com.native.b", [2], {"k": None})
    session.hear(PUBLISHED)
    message = client.message()
    assert message.topic == "com/native/b"
    assert json.loads(message.payload) == {"args": [2], "kwargs": {"k": None}}


@pytest.mark.parametrize("payload", [b"text", b"[1]", b"\xff", b'{"args": 1}'])
def test_native_that_is_none(place: Broker, session: RawSocket, payload: bytes) -> None:
    """It is dropped, as by Crossbar.io."""
    client = place.client("bad")
    client.subscribe("com/native/bad")
    session.subscribe("com.native.bad")
    client.publish("com/native/bad", payload, 1)
    client.publish("com/native/bad", b'{"args": ["end"]}', 1)
    assert client.message().payload == b'{"args": ["end"]}'
    assert session.hear(EVENT)[4] == ["end"]


def test_native_by_another_serializer(place: Broker, session: RawSocket) -> None:
    client = place.client("cbor")
    session.subscribe("com.cbor")
    client.subscribe("com/cbor")
    encoded = b"\xa1\x64args\x81\x01"
    client.publish("com/cbor", encoded, 1)
    assert session.hear(EVENT)[4] == [1]
    assert client.message().payload == encoded


def test_dynamic(place: Broker, session: RawSocket, mapped: Router) -> None:
    """Two procedures of the operator's convert."""
    client = place.client("dynamic")
    client.subscribe("com/dynamic/#")
    session.subscribe("com.dynamic", match="prefix")
    with RawSocket.tcp(mapped.address("tcp")).shake_hands("cbor").join() as codec:
        codec.register("codec.encode")
        codec.register("codec.decode")
        client.say(mqtt_publish("com/dynamic/a", b"21"))
        asked = codec.hear(INVOCATION)
        assert asked[4] == ["com.dynamic.a", "com/dynamic/a", b"21"]
        codec.say(YIELD, asked[1], {}, [{"args": [21], "kwargs": {"unit": "C"}}])
        assert session.hear(EVENT)[4:] == [[21], {"unit": "C"}]
        assert client.message().payload == b"21"
        session.ask(PUBLISH, {"acknowledge": True}, "com.dynamic.b", [22], {"unit": "C"})
        session.hear(PUBLISHED)
        asked = codec.hear(INVOCATION)
        assert asked[4] == ["com/dynamic/b", "com.dynamic.b", [22], {"unit": "C"}]
        codec.say(YIELD, asked[1], {}, [b"22 C"])
        message = client.message()
        assert (message.topic, message.payload) == ("com/dynamic/b", b"22 C")


def mqtt_publish(topic: str, payload: bytes):
    """Return a publication that is acknowledged."""
    return mqtt_broker.wire.Publish(topic, payload, 1, id=900)


def test_topics_without_a_mapping(mapped: Router) -> None:
    """With mappings for others, they stay among MQTT clients."""
    place = Broker("crosstie", lambda: mapped.address("partial"))
    client = place.client("partial")
    client.subscribe("com/#")
    with RawSocket.tcp(mapped.address("tcp")).shake_hands().join("realm2") as session:
        session.subscribe("com", match="prefix")
        client.publish("com/unmapped", b"text", 1)
        client.publish("com/native/end", b'{"args": ["end"]}', 1)
        assert client.message().payload == b"text"
        assert session.hear(EVENT)[4] == ["end"]
    place.close()
