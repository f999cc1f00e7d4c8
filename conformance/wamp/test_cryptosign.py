"""WAMP-cryptosign by hand: what is said, and what is taken for no proof."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from nacl.signing import SigningKey, VerifyKey
from OpenSSL import SSL
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ABORT, HELLO, ROLES, WELCOME
from wamp.test_authentication import (
    AUTHENTICATE,
    CHALLENGE,
    NOT_AUTHORIZED,
    NOT_VALID,
    expect_refusal,
)

JOE = SigningKey(bytes.fromhex("4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510"))
STRANGER = SigningKey(b"s" * 32)


def public(key: SigningKey) -> str:
    """Return what a key is known by."""
    return bytes(key.verify_key).hex()


KEYS = {
    "type": "static",
    "principals": {
        "joe": {"authorized_keys": [public(JOE)], "role": "user"},
        "ann": {"authorized_keys": [public(SigningKey(b"a" * 32))], "realm": "realm2"},
    },
    "default-role": "user",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory, certificate_directory):
    """A router with a key of its own, that knows people by theirs."""
    realms = [
        {"name": name, "roles": [config.role("user"), config.role("anonymous")]}
        for name in ("realm1", "realm2")
    ]
    auth = {"rawsocket": {"auth": {"cryptosign": KEYS}}, "websocket": {}}
    transports = [
        config.universal("tcp", config.tcp(), **auth),
        config.universal("tls", config.tls(certificate_directory), **auth),
    ]
    limits = {"login_delay_ms_max": 0}
    running = Router(
        tmp_path_factory.mktemp("keys"), config=config.node(realms, transports, limits=limits)
    )
    yield running
    running.stop()


@pytest.fixture
def say_hello(node) -> Callable[..., RawSocket]:
    """Say HELLO on a new connection."""

    def say_hello(key: SigningKey = JOE, peer: RawSocket | None = None, **details: object):
        extra = {"pubkey": public(key), **details.pop("authextra", {})}
        peer = peer or RawSocket.tcp(node.address("tcp")).shake_hands()
        details = {"authmethods": ["cryptosign"], "authextra": extra, **details}
        peer.say(HELLO, "realm1", {"roles": ROLES, **details})
        return peer

    return say_hello


def prove(key: SigningKey, message: bytes) -> str:
    """Sign as a client does."""
    return bytes(key.sign(message)).hex()


def test_a_challenge_and_its_signature(say_hello):
    with say_hello(authid="joe") as peer:
        _, method, extra = peer.hear(CHALLENGE)
        assert method == "cryptosign"
        assert set(extra) == {"challenge", "channel_binding"}
        assert extra["channel_binding"] is None
        peer.say(AUTHENTICATE, prove(JOE, bytes.fromhex(extra["challenge"])), {})
        details = peer.hear(WELCOME)[2]
    assert (details["authid"], details["authrole"], details["realm"]) == ("joe", "user", "realm1")
    assert (details["authmethod"], details["authprovider"]) == ("cryptosign", "static")


def test_a_principal_with_a_realm_of_its_own(say_hello):
    ann = SigningKey(b"a" * 32)
    with say_hello(ann) as peer:
        challenge = bytes.fromhex(peer.hear(CHALLENGE)[2]["challenge"])
        peer.say(AUTHENTICATE, prove(ann, challenge), {})
        details = peer.hear(WELCOME)[2]
    assert (details["authid"], details["realm"]) == ("ann", "realm2")


def test_the_node_proves_itself(say_hello, node):
    asked = bytes(range(32))
    with say_hello(authextra={"challenge": asked.hex()}) as peer:
        extra = peer.hear(CHALLENGE)[2]
    key = VerifyKey(bytes.fromhex(extra["pubkey"]))
    assert key.verify(bytes.fromhex(extra["signature"])) == asked
    assert extra["pubkey"] in (node.directory / "key.pub").read_text()


@pytest.mark.parametrize("authid", ["joe", "zed", None])
def test_a_refusal_does_not_reveal_the_keys_principal(say_hello, authid):
    with say_hello(STRANGER, authid=authid) as peer:
        challenge = bytes.fromhex(peer.hear(CHALLENGE)[2]["challenge"])
        peer.say(AUTHENTICATE, prove(STRANGER, challenge), {})
        expect_refusal(peer, NOT_AUTHORIZED, NOT_VALID)


def test_a_signature_is_of_one_challenge(say_hello):
    with say_hello() as peer:
        challenge = bytes.fromhex(peer.hear(CHALLENGE)[2]["challenge"])
        proof = prove(JOE, challenge)
        peer.say(AUTHENTICATE, proof, {})
        peer.hear(WELCOME)
    with say_hello() as peer:
        assert bytes.fromhex(peer.hear(CHALLENGE)[2]["challenge"]) != challenge
        peer.say(AUTHENTICATE, proof, {})
        _, details, reason = peer.hear(ABORT)
    assert reason == NOT_AUTHORIZED
    assert "the signed message is not the challenge" in details["message"]


@pytest.mark.parametrize("proof", ["", "00", "ü", "zz" * 96, "00" * 10_000])
def test_malformed_signatures(say_hello, proof):
    with say_hello() as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, proof, {})
        assert "expected 192 hexadecimal digits" in peer.hear(ABORT)[1]["message"]
        # The connection is open for a better one.
        say_hello(peer=peer)
        challenge = bytes.fromhex(peer.hear(CHALLENGE)[2]["challenge"])
        peer.say(AUTHENTICATE, prove(JOE, challenge), {})
        peer.hear(WELCOME)


@pytest.mark.parametrize("kind", ["tls-unique", "tls-exporter"])
def test_a_channel_without_an_id(say_hello, kind):
    with say_hello(authextra={"channel_binding": kind}) as peer:
        text = f'channel binding "{kind}" requested, but the transport has no TLS channel ID'
        expect_refusal(peer, NOT_AUTHORIZED, text)


class Tls:
    """A TLS connection in the place of a socket, of which the key can be exported."""

    def __init__(self, address: tuple[str, int], version: int):
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_min_proto_version(version)
        context.set_max_proto_version(version)
        self._socket = socket.create_connection(address, timeout=20)
        # pyOpenSSL leaves a socket with a timeout to its user.
        self._socket.setblocking(True)
        self._tls = SSL.Connection(context, self._socket)
        self._tls.set_connect_state()
        self._tls.do_handshake()

    def exporter(self) -> bytes:
        """Return what RFC 9266 calls by the name."""
        return self._tls.export_keying_material(b"EXPORTER-Channel-Binding", 32, b"")

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        self._tls.sendall(data)

    def recv(self, size: int) -> bytes:
        """Receive some."""
        return self._tls.recv(size)

    def settimeout(self, seconds: float) -> None:
        """Leave it as it is."""

    def close(self) -> None:
        """Close both."""
        self._socket.close()


def bound(challenge: bytes, channel: bytes) -> bytes:
    """Bind a challenge to a channel."""
    return bytes(byte ^ of for byte, of in zip(challenge, channel, strict=True))


def test_a_channel_of_tls_1_3(say_hello, node):
    channel = Tls(node.address("tls"), SSL.TLS1_3_VERSION)
    asked = bytes(range(32))
    extra = {"channel_binding": "tls-exporter", "challenge": asked.hex()}
    with say_hello(peer=RawSocket(channel).shake_hands(), authextra=extra) as peer:
        told = peer.hear(CHALLENGE)[2]
        assert told["channel_binding"] == "tls-exporter"
        key = VerifyKey(bytes.fromhex(told["pubkey"]))
        signed = key.verify(bytes.fromhex(told["signature"]))
        assert signed == bound(asked, channel.exporter())
        challenge = bytes.fromhex(told["challenge"])
        peer.say(AUTHENTICATE, prove(JOE, bound(challenge, channel.exporter())), {})
        peer.hear(WELCOME)


def test_a_signature_for_another_channel(say_hello, node):
    channel, other = (Tls(node.address("tls"), SSL.TLS1_3_VERSION) for _ in range(2))
    extra = {"channel_binding": "tls-exporter"}
    with say_hello(peer=RawSocket(channel).shake_hands(), authextra=extra) as peer:
        challenge = bytes.fromhex(peer.hear(CHALLENGE)[2]["challenge"])
        peer.say(AUTHENTICATE, prove(JOE, bound(challenge, other.exporter())), {})
        assert "combined with the channel's id" in peer.hear(ABORT)[1]["message"]
    other.close()


@pytest.mark.parametrize(
    ("version", "kind", "text"),
    [
        (SSL.TLS1_2_VERSION, "tls-exporter", "over TLS 1.3 only"),
        (SSL.TLS1_2_VERSION, "tls-unique", 'ask for "tls-exporter" over TLS 1.3'),
        (SSL.TLS1_3_VERSION, "tls-unique", 'ask for "tls-exporter" over TLS 1.3'),
        (SSL.TLS1_3_VERSION, "tls-server-end-point", "invalid channel binding type"),
    ],
)
def test_a_channel_that_has_no_such_id(say_hello, node, version, kind, text):
    channel = Tls(node.address("tls"), version)
    extra = {"channel_binding": kind}
    with say_hello(peer=RawSocket(channel).shake_hands(), authextra=extra) as peer:
        assert text in peer.hear(ABORT)[1]["message"]
