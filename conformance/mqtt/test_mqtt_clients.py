"""Other people's clients do what programs use them for, on both brokers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from rig import mosquitto
from rig.mqtt_broker import Broker, Node
from rig.mqtt_wire import V5, V31, V311
from rig.process import Process
from rig.waiting import DEADLINE_S

from mqtt.clients.client import Client, Login, Message
from mqtt.clients.in_python import Aiomqtt, Gmqtt, Paho
from mqtt.clients.puppets import Autopaho, MqttJs, PahoGo

KINDS: tuple[type[Client], ...] = (Paho, Aiomqtt, Gmqtt, MqttJs, PahoGo, Autopaho)
VERSIONS = {V31: "3.1", V311: "3.1.1", V5: "5"}
EACH = [
    pytest.param(kind, version, id=f"{kind.name}-{VERSIONS[version]}")
    for kind in KINDS
    for version in kind.versions
]
OF_MQTT_5 = [pytest.param(kind, id=kind.name) for kind in KINDS if V5 in kind.versions]


@pytest.fixture
def start() -> Iterator[Callable[[type[Client]], Client]]:
    """Start clients; they end with the test."""
    with ExitStack() as running:

        def start(kind: type[Client]) -> Client:
            if not getattr(kind, "is_installed", lambda: True)():
                pytest.skip(f"{kind.name} is not installed")
            client = kind()
            running.callback(client.close)
            return client

        yield start


@pytest.mark.parametrize(("kind", "version"), EACH)
def test_messages_at_each_qos(broker: Broker, start, names, kind, version: int) -> None:
    """Its own come back to it, and to another client."""
    client, other = start(kind), broker.client(names.client("other"), V5)
    client.connect(Login(broker.address, names.client(), version))
    other.subscribe(names.topic("+"))
    client.subscribe(names.topic("#"), 2)
    for qos in (0, 1, 2):
        sent = Message(names.topic(str(qos)), f"at {qos}: ä", qos)
        client.publish(sent)
        assert client.message() == sent
        heard = other.message()
        assert (heard.topic, heard.payload.decode(), heard.qos) == (sent.topic, sent.payload, qos)
        other.publish(sent.topic, sent.payload.encode(), qos)
        assert client.message() == sent
        other.message()
    client.leave()


@pytest.mark.parametrize(("kind", "version"), EACH)
def test_retained_messages(broker: Broker, start, names, kind, version: int) -> None:
    client, other = start(kind), broker.client(names.client("other"), V5)
    client.connect(Login(broker.address, names.client(), version))
    other.publish(names.topic("of other"), b"kept", 1, retain=True)
    client.subscribe(names.topic("+"), 1)
    assert client.message() == Message(names.topic("of other"), "kept", 1, True)
    kept = Message(names.topic("own"), "kept", 1, True)
    client.publish(kept)
    # What is live is not marked.
    assert client.message() == Message(kept.topic, "kept", 1, False)
    other.subscribe(names.topic("own"))
    assert other.message().retain
    client.publish(Message(kept.topic, "", 1, True))
    assert client.message() == Message(kept.topic, "", 1, False)
    other.publish(names.topic("of other"), b"", 1, retain=True)


@pytest.mark.parametrize(("kind", "version"), EACH)
def test_a_will(broker: Broker, start, start_relay, names, kind, version: int) -> None:
    relay = start_relay(broker.address)
    heir = broker.client(names.client("heir"), V5)
    heir.subscribe(names.topic("will"))
    client = start(kind)
    will = Message(names.topic("will"), "gone", 1)
    client.connect(Login(relay.address, names.client(), version, will=will))
    relay.cut()
    heard = heir.message()
    assert (heard.topic, heard.payload, heard.qos) == (will.topic, b"gone", 1)
    # It comes back by itself, and leaves in good order.
    client.await_connections(2)
    client.leave()
    broker.client("", V5).publish(names.topic("will"), b"end", 1)
    assert heir.message().payload == b"end"


@pytest.mark.parametrize(("kind", "version"), EACH)
def test_a_kept_session(broker: Broker, start, start_relay, names, kind, version: int) -> None:
    """A connection is cut: the client comes back, and is sent what came meanwhile."""
    relay = start_relay(broker.address)
    other = broker.client(names.client("other"), V5)
    client = start(kind)
    client.connect(Login(relay.address, names.client(), version, clean=False))
    client.subscribe(names.topic(), 1)
    relay.cut()
    for number in range(3):
        other.publish(names.topic(), b"%d" % number, 1)
    client.await_connections(2)
    assert [client.message().payload for _ in range(3)] == ["0", "1", "2"]
    # Both directions work as before.
    client.publish(Message(names.topic(), "own", 1))
    assert client.message().payload == "own"


@pytest.mark.parametrize("kind", OF_MQTT_5)
def test_user_properties_and_responses(broker: Broker, start, names, kind) -> None:
    requester, responder = start(kind), start(kind)
    for name, each in (("a", requester), ("b", responder)):
        each.connect(Login(broker.address, names.client(name), V5))
    requester.subscribe(names.topic("answers"), 1)
    responder.subscribe(names.topic("requests"), 1)
    asked = Message(
        names.topic("requests"),
        "how much",
        1,
        properties={
            "user": [["a", "2"], ["b", "€"], ["a", "1"]],
            "response": names.topic("answers"),
            "correlation": "334",
        },
    )
    requester.publish(asked)
    heard = responder.message()
    # MQTT.js groups pairs by their names.
    assert sorted(heard.properties.pop("user")) == sorted(asked.properties.pop("user"))
    assert heard == asked
    properties = {"correlation": heard.properties["correlation"]}
    responder.publish(Message(heard.properties["response"], "much", 1, properties=properties))
    assert requester.message() == Message(names.topic("answers"), "much", 1, properties=properties)


@pytest.mark.parametrize(("kind", "version"), EACH)
def test_many_messages(broker: Broker, start, names, kind, version: int) -> None:
    """More than are under way at a time, in the order of their publication."""
    client, other = start(kind), broker.client(names.client("other"), V5)
    client.connect(Login(broker.address, names.client(), version))
    client.subscribe(names.topic(), 1)
    for number in range(100):
        other.publish(names.topic(), b"%d" % number, 1)
    assert [int(client.message().payload) for _ in range(100)] == list(range(100))


def test_clients_are_back_after_a_restart(start_node, start, names) -> None:
    """Stopped and started again: all come back, with what their programs subscribe to.

    A retained message comes to each, whether it subscribes before it or after it.
    """
    node = start_node()
    publish_retained(node, names.topic(), "first")
    clients = []
    for kind in KINDS:
        for version in kind.versions:
            if not getattr(kind, "is_installed", lambda: True)():
                continue
            client = start(kind)
            own = names.client(f"{kind.name[:4]}{version}")
            client.connect(Login(node.address(), own, version, handler=names.topic("#")))
            clients.append(client)
    # A program of mosquitto's, too; it subscribes again by itself.
    listening = Process(*sub(node.broker(), names.topic("#"), "-F", "%p"))
    assert listening.line() == "first"
    for client in clients:
        assert client.message().payload == "first"
    node.stop()
    node.start()
    publish_retained(node, names.topic(), "second")
    for client in clients:
        client.await_connections(2)
        while client.message().payload != "second":
            pass
    while listening.line() != "second":
        pass
    listening.end()


def publish_retained(node: Node, topic: str, payload: str) -> None:
    with node.broker().client("", V5) as sender:
        sender.publish(topic, payload.encode(), 1, retain=True)


def tool(name: str, broker: Broker, *arguments: str) -> list[str]:
    """Return a command of mosquitto's clients."""
    if not shutil.which(name):
        pytest.skip("mosquitto-clients are not installed")
    host, port = broker.address
    return [name, "-h", host, "-p", str(port), *arguments]


def sub(broker: Broker, topic: str, *arguments: str) -> list[str]:
    """Return mosquitto_sub."""
    return tool("mosquitto_sub", broker, "-q", "2", "-t", topic, *arguments)


def run(command: list[str]) -> tuple[int, str]:
    """Return the exit code of a program, and all that it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout + done.stderr


TOOLS = [
    pytest.param(f"mqttv{level}", id=name)
    for level, name in (("31", "3.1"), ("311", "3.1.1"), ("5", "5"))
]


@pytest.mark.parametrize("protocol", TOOLS)
def test_mosquitto_pub_and_sub(broker: Broker, start_process, names, protocol: str) -> None:
    spoken = ("-V", protocol)
    witness = broker.client(names.client("witness"), V5)
    for qos in "012":
        command = tool("mosquitto_pub", broker, *spoken, "-q", qos, "-t", names.topic(qos))
        assert run([*command, "-r", "-m", f"at {qos}"]) == (0, "")
    # Retained messages tell that it has subscribed.
    listening = start_process(
        *sub(broker, names.topic("#"), *spoken, "-C", "6", "-F", "%t %q %r %p")
    )
    heard = sorted(listening.line() for _ in range(3))
    assert heard == [f"{names.topic(str(qos))} {qos} 1 at {qos}" for qos in range(3)]
    for qos in range(3):
        witness.publish(names.topic(str(qos)), b"live", qos)
        assert listening.line() == f"{names.topic(str(qos))} {qos} 0 live"
    assert listening.process.wait(DEADLINE_S) == 0
    for qos in "012":
        assert run(
            tool("mosquitto_pub", broker, *spoken, "-q", qos, "-t", names.topic(qos), "-r", "-n")
        ) == (0, "")


def test_mosquitto_rr(broker: Broker, start_process, names) -> None:
    responder = broker.client(names.client("responder"), V5)
    responder.subscribe(names.topic("requests"))
    asking = start_process(
        *tool("mosquitto_rr", broker, "-V", "mqttv5", "-t", names.topic("requests")),
        *("-e", names.topic("answers"), "-m", "how much"),
    )
    request = responder.message()
    assert request.payload == b"how much"
    correlation = {
        name: value for name, value in request.properties.items() if name == "correlation_data"
    }
    responder.publish(request.properties["response_topic"], b"much", 1, **correlation)
    assert asking.line() == "much"
    assert asking.process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("protocol", TOOLS)
def test_mosquitto_sub_with_a_kept_session(broker: Broker, names, protocol: str) -> None:
    session = ("-V", protocol, "-c", "-i", names.client(), "-q", "1")
    if protocol == "mqttv5":
        session += ("-x", "1000")
    begin = tool("mosquitto_sub", broker, *session, "-t", names.topic(), "-E")
    assert run(begin) == (0, "")
    broker.client("", V5).publish(names.topic(), b"kept", 1)
    again = tool("mosquitto_sub", broker, *session, "-t", names.topic(), "-C", "1")
    assert run(again) == (0, "kept\n")


def test_mosquitto_pub_with_a_will(broker: Broker, start_process, names) -> None:
    heir = broker.client(names.client("heir"), V5)
    heir.subscribe(names.topic("+"))
    heir.publish(names.topic("sign"), b"sign", 1, retain=True)
    mortal = start_process(
        *sub(broker, names.topic("+"), "--will-topic", names.topic("will")),
        *("--will-payload", "gone", "--will-qos", "2", "-F", "%p"),
    )
    assert mortal.line() == "sign"
    heir.message()
    mortal.process.kill()
    message = heir.message()
    assert (message.topic, message.payload, message.qos) == (names.topic("will"), b"gone", 2)
    heir.publish(names.topic("sign"), b"", 1, retain=True)


@pytest.mark.parametrize("protocol", ["mqttv31", "mqttv311", "mqttv50"])
def test_mosquitto_as_a_bridge(crosstie: Broker, tmp_path, names, protocol: str) -> None:
    """A broker at the edge passes messages both ways, and none of them comes back."""
    if not mosquitto.is_installed():
        pytest.skip("mosquitto is not installed")
    host, port = crosstie.address
    bridge = f"""
connection {names.root}
address {host}:{port}
bridge_protocol_version {protocol}
remote_clientid {names.client("bridge")}
notifications false
cleansession false
try_private true
topic {names.root}/# both 1
"""
    edge = mosquitto.Mosquitto(tmp_path, bridge)
    place = Broker("mosquitto", lambda: edge.address)
    try:
        there = place.client(names.client("there"), V5)
        here = crosstie.client(names.client("here"), V5)
        for each in (there, here):
            each.subscribe(names.topic("+"), qos=1)
        # Both subscribe at a time of their own: a retained message waits for that.
        here.publish(names.topic("here"), b"kept", 1, retain=True)
        assert here.message().payload == b"kept"
        assert there.message().payload == b"kept"
        there.publish(names.topic("there"), b"of there", 1)
        here.publish(names.topic("other"), b"of here", 1)
        for each in (there, here):
            heard = {message.payload for message in each.messages(2)}
            assert heard == {b"of there", b"of here"}
        for each in (there, here):
            each.round_trip()
            assert each.kept == []
        here.publish(names.topic("here"), b"", 1, retain=True)
    finally:
        edge.stop()
        place.close()
