"""Ways to a node: TLS, certificates, WebSocket, a Unix socket, a shared port; and limits of it."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from paho.mqtt import client as paho
from rig import config, mqtt_broker
from rig import mqtt_wire as wire
from rig.mqtt_peer import Peer, plain
from rig.mqtt_wire import V5, V31, V311, Publish
from rig.plain import ClosedError
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import CALL, RESULT
from rig.waiting import await_true
from rig.websocket import WebSocket
from strangers.service import check


def plays(peer: Peer, names, client: str = "client") -> None:
    """Connect, and be sent an own message."""
    peer.connect(names.client(client))
    topic = names.topic(client)
    peer.subscribe(topic)
    peer.publish(topic, b"heard", 2)
    assert plain(peer.message()) == Publish(topic, b"heard", 2)
    peer.leave()


def test_a_port_with_other_protocols(shared_node: Router, version: int, names) -> None:
    plays(Peer.to(shared_node.address("tcp"), version), names)
    with RawSocket.tcp(shared_node.address("tcp")).shake_hands().join() as session:
        session.round_trip()


def test_over_websocket(shared_node: Router, version: int, names) -> None:
    with Peer.over_websocket(shared_node.address("tcp"), version) as peer:
        plays(peer, names)


@pytest.mark.parametrize(("offered", "chosen"), [("mqtt", "mqtt"), ("mqttv3.1", "mqttv3.1")])
def test_names_of_the_subprotocol(shared_node: Router, offered: str, chosen: str) -> None:
    with WebSocket.tcp(shared_node.address("tcp")) as websocket:
        status, headers, _ = websocket.upgrade(offered)
        assert (status, headers["sec-websocket-protocol"]) == (101, chosen)


def test_a_path_without_mqtt(shared_node: Router) -> None:
    """WAMP's path does not speak it unless it is configured to."""
    with WebSocket.tcp(shared_node.address("tcp")) as websocket:
        status, headers, _ = websocket.upgrade("mqtt", "/")
        assert status != 101 or "sec-websocket-protocol" not in headers


def test_packets_in_any_frames(shared_node: Router, names) -> None:
    """Frames of WebSocket are no borders of packets."""
    with Peer.over_websocket(shared_node.address("tcp"), V5) as peer:
        octets = wire.encode(wire.Connect(names.client()), V5)
        octets += wire.encode(wire.Ping(wire.PINGREQ), V5) * 3
        for at in range(0, len(octets), 7):
            peer.send(octets[at : at + 7])
        assert isinstance(peer.hear(), wire.Connack)
        assert [peer.hear() for _ in range(3)] == [wire.Ping()] * 3


def test_text_frames(shared_node: Router, names) -> None:
    """Section 6.0: they end the connection."""
    with Peer.over_websocket(shared_node.address("tcp"), V5) as peer:
        peer.connect(names.client())
        peer.socket.websocket.send_frame(1, wire.encode(wire.Ping(wire.PINGREQ), V5))
        with pytest.raises(ClosedError):
            peer.hear()


@pytest.mark.parametrize("version", [V311, V5])
def test_paho_over_websocket(shared_node: Router, version: int, names) -> None:
    heard = []
    client = paho.Client(
        paho.CallbackAPIVersion.VERSION2, names.client(), protocol=version, transport="websockets"
    )
    client.ws_set_options(path="/ws")
    client.on_connect = lambda *_: client.subscribe(names.topic(), 1)
    client.on_subscribe = lambda *_: client.publish(names.topic(), b"heard", 1)
    client.on_message = lambda _client, _data, message: heard.append(message.payload)
    client.connect(*shared_node.address("tcp"))
    client.loop_start()
    await_true("it hears its own", lambda: heard == [b"heard"])
    client.disconnect()
    client.loop_stop()


def test_a_unix_socket(start_node, names) -> None:
    node = start_node(
        mqtt_broker.configuration(mqtt_broker.transport(endpoint=config.unix("mqtt.sock")))
    )
    plays(Peer.unix_mqtt(node.directory / "mqtt.sock"), names)


@pytest.fixture
def secure(start_node, tmp_path: Path) -> Callable[..., tuple[Router, trustme.CA]]:
    """Start a node whose listener speaks TLS; `asks` makes it ask for certificates."""

    def start(asks: bool = False, **options: object) -> tuple[Router, trustme.CA]:
        authority = trustme.CA()
        server = authority.issue_cert("localhost", "127.0.0.1")
        server.private_key_pem.write_to_path(tmp_path / "key.pem")
        server.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        tls: dict = {"key": f"{tmp_path}/key.pem", "certificate": f"{tmp_path}/certificate.pem"}
        if asks:
            tls["ca_certificates"] = [f"{tmp_path}/ca.pem"]
        listener = mqtt_broker.transport(endpoint=config.tcp(tls=tls), **options)
        roles = [config.role("sensor")]
        node = start_node(mqtt_broker.configuration(listener, of=mqtt_broker.realm(*roles)))
        return node.router, authority

    return start


def context(authority: trustme.CA, name: str | None = None) -> ssl.SSLContext:
    """Return what a client needs; with a certificate of this common name if one is given."""
    made = ssl.create_default_context()
    authority.configure_trust(made)
    if name is not None:
        authority.issue_cert(common_name=name).configure_cert(made)
    return made


def test_over_tls(secure, names) -> None:
    router, authority = secure()
    for version in (V31, V311, V5):
        plays(Peer.secure(router.address("mqtt"), context(authority), version), names)


def test_a_certificate_as_a_login(secure, names) -> None:
    """Its subject names the principal; one of a stranger is refused."""
    principals = {"joe": {"subject": {"CN": "joe"}, "role": "sensor"}}
    router, authority = secure(True, auth={"tls": {"type": "static", "principals": principals}})
    address = router.address("mqtt")
    with Peer.secure(address, context(authority, "joe"), V5) as peer:
        peer.connect(names.client())
        with RawSocket.tcp(router.address("tcp")).shake_hands().join() as session:
            session.ask(CALL, {}, "wamp.session.list")
            found = []
            for each in session.hear(RESULT)[3][0]:
                session.ask(CALL, {}, "wamp.session.get", [each])
                found.append(session.hear(RESULT)[3][0])
        (details,) = (each for each in found if "mqtt" in (each.get("authextra") or {}))
        assert (details["authid"], details["authrole"]) == ("joe", "sensor")
        assert details["authmethod"] == "tls"
    with Peer.secure(address, context(authority, "stranger"), V5) as peer:
        assert peer.ask_to_connect(names.client()).code in (0x86, 0x87)
        peer.expect_end()
    # Without one, or with one of another authority, TLS ends it.
    for each in (context(authority), strange(authority)):
        with pytest.raises((ssl.SSLError, OSError, ClosedError)):  # noqa: PT012
            with Peer.secure(address, each, V5) as peer:
                peer.ask_to_connect(names.client())
            raise ClosedError


def strange(authority: trustme.CA) -> ssl.SSLContext:
    """Return a context with another authority's certificate."""
    made = context(authority)
    trustme.CA().issue_cert(common_name="joe").configure_cert(made)
    return made


def test_plain_octets_where_tls_is_spoken(secure, names) -> None:
    router, _ = secure()
    with Peer.to(router.address("mqtt")) as peer:
        peer.say(wire.Connect(names.client()))
        assert peer.receive_all()[:1] in (b"", b"\x15")


def test_more_connections_than_there_may_be(start_node, names) -> None:
    """Another one is closed without a word, which has clients come back."""
    listener = {**mqtt_broker.transport(), "max_connections": 2}
    place = start_node(mqtt_broker.configuration(listener)).broker()
    first, second = place.client(names.client("a")), place.client(names.client("b"))
    third = place.peer()
    third.say(wire.Connect(names.client("c")))
    third.expect_end()
    first.leave()
    second.round_trip()

    def is_let_in() -> bool:
        with place.peer() as peer:
            peer.say(wire.Connect(names.client("c")))
            with contextlib.suppress(ClosedError):
                return isinstance(peer.hear(), wire.Connack)
        return False

    await_true("there is room again", is_let_in)
    place.close()


def test_packets_of_more_than_the_maximum(start_node, names) -> None:
    """CONNACK announces the maximum."""
    node = start_node(mqtt_broker.configuration(mqtt_broker.transport(packet_bytes_max=2000)))
    place = node.broker()
    peer = place.peer()
    connack = peer.connect(names.client())
    assert connack.properties["maximum_packet_size"] == 2000
    peer.subscribe(names.topic())
    head = len(wire.encode(Publish(names.topic(), b"", 0), V5))
    fits = bytes(2000 - head - 1)
    peer.publish(names.topic(), fits)
    assert peer.message().payload == fits
    peer.publish(names.topic(), fits + b"x")
    peer.expect_disconnect(0x95)
    older = place.client(names.client("b"), V311)
    older.publish(names.topic(), bytes(5000))
    older.expect_end()
    place.close()


def test_the_longest_keep_alive(start_node, names) -> None:
    """MQTT 5 clients are told of it, and hold it."""
    node = start_node(mqtt_broker.configuration(mqtt_broker.transport(keep_alive_seconds_max=1)))
    place = node.broker()
    for asked in (0, 60):
        peer = place.peer()
        connack = peer.connect(names.client(), keep_alive=asked)
        assert connack.properties["server_keep_alive"] == 1
        peer.expect_end()
    place.close()


def test_a_client_that_says_nothing(start_node) -> None:
    """A connection without CONNECT is closed after a time."""
    settings = mqtt_broker.configuration(limits={"handshake_timeout_ms": 300})
    place = start_node(settings).broker()
    silent, halfway = place.peer(V311), place.peer(V311)
    halfway.send(wire.encode(wire.Connect("x"), V311)[:5])
    silent.expect_end()
    halfway.expect_end()
    place.close()


def test_two_conversions_of_one_realm_are_refused(tmp_path: Path) -> None:
    """A realm has one space of topics, whose payloads are converted in one way."""
    mapped = mqtt_broker.transport(payload_mapping={"": {"type": "passthrough"}})
    other = mqtt_broker.transport("other", payload_mapping={"": {"type": "native"}})
    settings = mqtt_broker.configuration(mapped, other)
    code, said = check(tmp_path, settings)
    assert code == 1, said
    assert "payload_mapping" in said


def test_keys_that_are_not_honoured_are_refused(tmp_path: Path) -> None:
    """By name, like other keys."""
    for key, value in (("bridge", True), ("retain", 1)):
        settings = mqtt_broker.configuration(mqtt_broker.transport(**{key: value}))
        code, said = check(tmp_path, settings)
        assert code == 1, said
        assert key in said


@pytest.mark.parametrize("kind", ["mqtt", "universal", "websocket"])
def test_crossbars_configuration(start_node, names, kind: str) -> None:
    """As Crossbar.io's documentation and users have it."""
    options = {
        "realm": "realm1",
        "role": "anonymous",
        "payload_mapping": {"": {"type": "passthrough"}},
        "auth": {"anonymous": {"type": "static", "role": "anonymous"}},
    }
    transports = {
        "mqtt": {"type": "mqtt", "endpoint": config.tcp(), "options": options},
        "universal": config.universal("x", config.tcp(), mqtt={"options": options}),
        "websocket": {
            "type": "websocket",
            "endpoint": config.tcp(),
            "mqtt": {"options": options},
        },
    }
    settings = {**transports[kind], "id": "mqtt"}
    node = start_node(config.node([mqtt_broker.realm()], [settings]))
    if kind == "websocket":
        with Peer.over_websocket(node.address(), V311, "/") as peer:
            plays(peer, names)
    else:
        plays(Peer.to(node.address(), V311), names)
