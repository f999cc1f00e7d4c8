"""Enhanced authentication of MQTT 5: SCRAM-SHA-256 (RFC 5802 and 7677), by hand."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from rig import config, mqtt_broker
from rig import mqtt_wire as wire
from rig.mqtt_broker import Node
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5, Auth, Connack, Connect
from rig.rawsocket import RawSocket
from rig.session import INVOCATION, REGISTER, YIELD

from mqtt.clients.client import Login, Message
from mqtt.clients.puppets import Autopaho, MqttJs, Puppet

METHOD = "SCRAM-SHA-256"
PASSWORD = "pencil"
SALT = b"sixteen octets.."
ITERATIONS = 4096
CONTINUE, AGAIN = 0x18, 0x19
NOT_AUTHORIZED, BAD_METHOD, PROTOCOL_ERROR = 0x87, 0x8C, 0x82
SERVER_BUSY, PACKET_TOO_LARGE = 0x89, 0x95
PROCEDURE = "com.example.authenticate"


def mac(key: bytes, text: str) -> bytes:
    """HMAC with SHA-256."""
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def salted(password: str) -> bytes:
    """Derive as SCRAM does."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, ITERATIONS)


def credential(kdf: str = "pbkdf2", **more: object) -> dict:
    """Return what the node has of the password."""
    key = salted(PASSWORD)
    return {
        "kdf": kdf,
        "iterations": ITERATIONS,
        "salt": SALT.hex(),
        "stored-key": hashlib.sha256(mac(key, "Client Key")).hexdigest(),
        "server-key": mac(key, "Server Key").hex(),
        "role": "anonymous",
        **more,
    }


class Scram:
    """The client's part of an exchange."""

    def __init__(self, name: str = "user", header: str = "n,,", nonce: str = "a-nonce/!"):
        self.header, self.nonce = header, nonce
        self.bare = f"n={name},r={nonce}"
        self.verifier = b""

    @property
    def first(self) -> bytes:
        """Return the first message."""
        return (self.header + self.bare).encode()

    def last(self, asked: bytes, password: str = PASSWORD) -> bytes:
        """Return the last message, and remember what the server has to prove."""
        found = dict(part.split("=", 1) for part in asked.decode().split(","))
        assert found["r"].startswith(self.nonce)
        assert found["r"] != self.nonce
        # That of an unknown name is another one.
        assert len(base64.b64decode(found["s"])) == len(SALT)
        assert int(found["i"]) == ITERATIONS
        key = salted(password)
        bound = base64.b64encode(self.header.encode()).decode()
        without = f"c={bound},r={found['r']}"
        message = f"{self.bare},{asked.decode()},{without}"
        client = mac(key, "Client Key")
        signature = mac(hashlib.sha256(client).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
        self.verifier = b"v=" + base64.b64encode(mac(mac(key, "Server Key"), message))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()


def data(octets: bytes, method: str = METHOD) -> dict:
    """Return the properties of a message."""
    return {"authentication_method": method, "authentication_data": octets}


def ask(peer: Peer, scram: Scram, password: str = PASSWORD, **properties: object) -> Connack:
    """Log in; return the answer."""
    peer.say(Connect("c", properties={**data(scram.first), **properties}))
    asked = peer.hear()
    assert isinstance(asked, Auth), asked
    assert (asked.code, asked.properties["authentication_method"]) == (CONTINUE, METHOD)
    last = scram.last(asked.properties["authentication_data"], password)
    peer.say(Auth(CONTINUE, data(last)))
    return peer.hear()


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Node]:
    """Start a node with SCRAM."""
    principals = {
        "user": credential(),
        "other": credential(),
        "a,b=c": credential(),
    }
    argon = {"user": credential("argon2id-13", memory=64)}
    auth = {
        "scram": {"type": "static", "principals": principals},
        "anonymous": {"type": "static", "role": "anonymous"},
    }
    settings = mqtt_broker.configuration(
        mqtt_broker.transport(auth=auth),
        mqtt_broker.transport("without"),
        mqtt_broker.transport("argon", auth={"scram": {"type": "static", "principals": argon}}),
        mqtt_broker.transport(
            "asking", auth={"scram": {"type": "dynamic", "authenticator": PROCEDURE}}
        ),
    )
    spoken = {"options": {"realm": "realm1", "auth": auth}}
    framed = config.universal("frames", config.tcp(), websocket={"ws": {"mqtt": spoken}})
    settings["workers"][0]["transports"].append(framed)
    running = Node(tmp_path_factory.mktemp("node"), settings)
    yield running
    running.stop()


def peer_of(node: Node, name: str = "mqtt") -> Peer:
    """Open a connection."""
    return Peer.to(node.address(name), V5)


@pytest.mark.parametrize("header", ["n,,", "y,,"])
def test_a_login_by_scram(node: Node, header: str) -> None:
    with peer_of(node) as peer:
        scram = Scram(header=header)
        answer = ask(peer, scram)
        assert isinstance(answer, Connack), answer
        assert answer.code == 0
        assert answer.properties["authentication_method"] == METHOD
        assert answer.properties["authentication_data"] == scram.verifier
        peer.subscribe("a")
        peer.publish("a", b"x", 1)
        assert peer.message().payload == b"x"
        peer.leave()


def test_a_name_with_escapes(node: Node) -> None:
    with peer_of(node) as peer:
        assert ask(peer, Scram("a=2Cb=3Dc")).code == 0
        peer.leave()


def test_a_wrong_proof(node: Node) -> None:
    for name, password in (("user", "wrong"), ("nobody", PASSWORD)):
        with peer_of(node) as peer:
            assert ask(peer, Scram(name), password).code == NOT_AUTHORIZED
            peer.expect_end()


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (data(b"n,,n=user,r=1", "SCRAM-SHA-1"), BAD_METHOD),
        (data(b"", "GSSAPI"), BAD_METHOD),
        (data(b"p=tls-unique,,n=user,r=1"), NOT_AUTHORIZED),
        (data(b"n,,n=user"), NOT_AUTHORIZED),
        (data(b"\xff"), NOT_AUTHORIZED),
        ({"authentication_method": METHOD}, NOT_AUTHORIZED),
        ({"authentication_data": b"x"}, PROTOCOL_ERROR),
    ],
)
def test_refused_beginnings(node: Node, properties: dict, code: int) -> None:
    with peer_of(node) as peer:
        assert peer.ask_to_connect("c", **properties).code == code
        peer.expect_end()


def test_a_key_that_is_not_derived_as_the_method_has_it(node: Node) -> None:
    with peer_of(node, "argon") as peer:
        assert peer.ask_to_connect("c", **data(Scram().first)).code == NOT_AUTHORIZED
        peer.expect_end()


def test_a_listener_without_scram(node: Node) -> None:
    with peer_of(node, "without") as peer:
        assert peer.ask_to_connect("c", **data(Scram().first)).code == BAD_METHOD
        peer.expect_end()


@pytest.mark.parametrize(
    "packet",
    [
        wire.Ping(wire.PINGREQ),
        wire.Publish("a", b"x"),
        Auth(AGAIN, data(b"x")),
        Auth(CONTINUE, {}),
    ],
)
def test_another_packet_than_the_proof(node: Node, packet: wire.Packet) -> None:
    with peer_of(node) as peer:
        # Behind CONNECT, too.
        peer.say(Connect("c", properties=data(Scram().first)), packet)
        assert isinstance(peer.hear(), Auth)
        assert peer.hear() == Connack(PROTOCOL_ERROR)
        peer.expect_end()


def test_a_proof_with_another_method(node: Node) -> None:
    with peer_of(node) as peer:
        scram = Scram()
        peer.say(Connect("c", properties=data(scram.first)))
        last = scram.last(peer.hear().properties["authentication_data"])
        peer.say(Auth(CONTINUE, data(last, "SCRAM-SHA-1")))
        assert peer.hear() == Connack(NOT_AUTHORIZED)
        peer.expect_end()


def log_in_again(peer: Peer, scram: Scram, password: str = PASSWORD) -> wire.Packet:
    """Log in by AUTH; return the answer."""
    peer.say(Auth(AGAIN, data(scram.first)))
    asked = peer.expect(Auth)
    # The session goes on meanwhile.
    peer.publish("a", b"meanwhile", 1)
    last = scram.last(asked.properties["authentication_data"], password)
    peer.say(Auth(CONTINUE, data(last)))
    return peer.hear()


def test_a_client_logs_in_again(node: Node) -> None:
    with peer_of(node) as peer:
        assert ask(peer, Scram()).code == 0
        for _ in range(2):
            scram = Scram()
            answer = log_in_again(peer, scram)
            assert answer == Auth(0, data(scram.verifier))
        peer.publish("a", b"x", 1)
        peer.leave()


@pytest.mark.parametrize(("name", "password"), [("user", "wrong"), ("other", PASSWORD)])
def test_a_client_that_is_another_one_is_disconnected(node: Node, name: str, password: str) -> None:
    with peer_of(node) as peer:
        assert ask(peer, Scram()).code == 0
        answer = log_in_again(peer, Scram(name), password)
        assert isinstance(answer, wire.Disconnect)
        assert answer.code == NOT_AUTHORIZED


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (Auth(AGAIN, data(b"n,,n=user,r=1", "SCRAM-SHA-1")), BAD_METHOD),
        (Auth(CONTINUE, data(b"c=biws,r=1,p=x")), PROTOCOL_ERROR),
        (Auth(AGAIN, data(b"x")), NOT_AUTHORIZED),
    ],
)
def test_an_auth_out_of_order(node: Node, packet: Auth, code: int) -> None:
    with peer_of(node) as peer:
        assert ask(peer, Scram()).code == 0
        peer.say(packet)
        peer.expect_disconnect(code)


def test_an_auth_without_a_method_in_connect(node: Node) -> None:
    with peer_of(node) as peer:
        peer.connect("c")
        peer.say(Auth(AGAIN, data(Scram().first)))
        peer.expect_disconnect(PROTOCOL_ERROR)


def test_packets_that_are_too_large_for_the_client(node: Node) -> None:
    with peer_of(node) as peer:
        answer = peer.ask_to_connect("c", maximum_packet_size=60, **data(Scram().first))
        assert answer == Connack(PACKET_TOO_LARGE)
        peer.expect_end()
    # The packet with the verifier is longer than the challenge for a short nonce.
    with peer_of(node) as peer:
        answer = ask(peer, Scram(nonce="1"), maximum_packet_size=86)
        assert answer == Connack(PACKET_TOO_LARGE)
        peer.expect_end()
    with peer_of(node) as peer:
        assert ask(peer, Scram(), maximum_packet_size=120).code == 0
        peer.say(Auth(AGAIN, data(Scram(nonce="n" * 100).first)))
        peer.expect_disconnect(PACKET_TOO_LARGE)


def test_no_place_for_another_login(start_node) -> None:
    auth = {"scram": {"type": "static", "principals": {"user": credential()}}}
    spoken = mqtt_broker.transport(auth=auth)
    node = start_node(mqtt_broker.configuration(spoken, limits={"handshakes_pending_max": 1}))
    with peer_of(node) as peer, peer_of(node) as other:
        assert ask(peer, Scram()).code == 0
        other.say(Connect("other", properties=data(Scram().first)))
        assert isinstance(other.hear(), Auth)
        peer.say(Auth(AGAIN, data(Scram().first)))
        peer.expect_disconnect(SERVER_BUSY)


def test_a_proof_in_small_frames(node: Node) -> None:
    with Peer.over_websocket(node.address("frames")) as peer:
        scram = Scram()
        peer.say(Connect("c", properties=data(scram.first)))
        last = scram.last(peer.hear().properties["authentication_data"])
        for octet in wire.encode(Auth(CONTINUE, data(last)), V5):
            peer.send(bytes([octet]))
        assert peer.hear().code == 0
        peer.leave()


def test_a_procedure_has_the_keys(node: Node) -> None:
    wamp = RawSocket.tcp(node.address("tcp")).shake_hands("json").join()
    wamp.ask(REGISTER, {}, PROCEDURE)
    wamp.hear(65)

    def answer() -> list:
        invocation = wamp.hear(INVOCATION)
        wamp.say(YIELD, invocation[1], {}, [credential()])
        return invocation[4]

    with peer_of(node, "asking") as peer:
        first = Scram("anyone")
        peer.say(Connect("c", properties=data(first.first)))
        realm, authid, details = answer()
        assert (realm, authid) == ("realm1", "anyone")
        described = {"client_id": "c", "will": False, "will_topic": None}
        assert details["authextra"]["mqtt"] == described
        last = first.last(peer.hear().properties["authentication_data"])
        peer.say(Auth(CONTINUE, data(last)))
        assert peer.hear().code == 0
        again = Scram("anyone")
        peer.say(Auth(AGAIN, data(again.first)))
        assert answer()[2]["authextra"]["mqtt"] == described
        last = again.last(peer.hear().properties["authentication_data"])
        peer.say(Auth(CONTINUE, data(last)))
        assert peer.hear() == Auth(0, data(again.verifier))
        peer.leave()
    wamp.close()


@pytest.mark.parametrize("kind", [MqttJs, Autopaho], ids=lambda kind: kind.name)
def test_clients_of_other_people(node: Node, kind: type[Puppet]) -> None:
    if not kind.is_installed():
        pytest.skip(f"{kind.name} is not installed")
    login = Login(node.address(), "theirs", V5, scram=("user", PASSWORD))
    with closing(kind()) as client:
        client.connect(login)
        client.subscribe("theirs", 1)
        sent = Message("theirs", "known", 1)
        client.publish(sent)
        assert client.message() == sent
        client.leave()
    # Each in its own words.
    refusal = pytest.raises(AssertionError, match=r"Not authorized|reason: 135")
    with closing(kind()) as client, refusal:
        client.connect(replace(login, scram=("user", "wrong")))
