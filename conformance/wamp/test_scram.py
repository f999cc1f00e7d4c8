"""SCRAM: autobahn-python with Argon2id, and by hand what it cannot do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import argon2.low_level as argon2
import pytest
from conftest import where
from rig import config
from rig.links import Link, only
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ABORT, HELLO, INVOCATION, ROLES, WELCOME, YIELD
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, NOT_AUTHORIZED, expect_refusal
from wamp.test_logging_in import where_asked

PROCEDURE = "com.example.authenticate"
PASSWORD = "p4ssw0rd"
SALT = bytes.fromhex("3bc3ca01dd1d501ca1c22e1c5d7d16fe")
ITERATIONS, MEMORY = 3, 64


def mac(key: bytes, text: bytes) -> bytes:
    """HMAC with SHA-256."""
    return hmac.new(key, text, hashlib.sha256).digest()


def argon2id(password: str, salt: bytes, iterations: int, memory: int | None) -> bytes:
    """Derive with Argon2id as the specification has it."""
    secret = password.encode()
    return argon2.hash_secret_raw(secret, salt, iterations, memory, 1, 32, argon2.Type.ID)


def autobahns(password: str, salt: bytes, iterations: int, memory: int | None) -> bytes:
    """Derive with Argon2id as Autobahn has it: the hash as text."""
    return base64.b64encode(argon2id(password, salt, iterations, memory)).rstrip(b"=")


def pbkdf2(password: str, salt: bytes, iterations: int, _memory: int | None) -> bytes:
    """Derive with PBKDF2."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)


def credential(kdf: str, derive: Callable, memory: int | None) -> dict:
    """Return what a configuration has of the password."""
    salted = derive(PASSWORD, SALT, ITERATIONS, memory)
    found = {
        "kdf": kdf,
        "iterations": ITERATIONS,
        "salt": SALT.hex(),
        "stored-key": hashlib.sha256(mac(salted, b"Client Key")).hexdigest(),
        "server-key": mac(salted, b"Server Key").hex(),
        "role": "user",
    }
    return found if memory is None else {**found, "memory": memory}


PRINCIPALS = {
    "joe": credential("argon2id-13", autobahns, MEMORY),
    "ann": credential("argon2id-13", argon2id, MEMORY),
    "bob": credential("pbkdf2", pbkdf2, None),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory, certificate_directory: Path) -> Iterator[Router]:
    """A router with every transport, each of which has keys or asks a procedure for them."""
    asked = {"type": "dynamic", "authenticator": PROCEDURE, "authenticator-realm": "auth"}
    static = {"scram": {"type": "static", "principals": PRINCIPALS}}
    paths = {"ws": {"auth": static}, "dynamic": {"auth": {"scram": asked}}}

    def guarded(name: str, endpoint: dict) -> dict:
        return config.universal(name, endpoint, rawsocket={"auth": static}, websocket=paths)

    transports = [
        guarded("tcp", config.tcp()),
        guarded("unix", config.unix()),
        guarded("tls", config.tls(certificate_directory)),
        config.universal(
            "asked", config.tcp(), rawsocket={"auth": {"scram": asked}}, websocket=paths
        ),
        config.universal("open", config.tcp()),
    ]
    realms = [
        {"name": "realm1", "roles": [config.role("user"), config.role("anonymous")]},
        {"name": "auth", "roles": [config.role("anonymous")]},
    ]
    limits = {"login_delay_ms_max": 0}
    directory = tmp_path_factory.mktemp("guarded")
    running = Router(directory, config=config.node(realms, transports, limits=limits))
    yield running
    running.stop()


@pytest.fixture
def log_in(node, new_session, certificate_directory) -> Callable:
    """Log in over a link with Autobahn."""

    def log_in(link: Link, password: str = PASSWORD, is_asked: bool = False):
        place = where(node, link, "/ws", certificate_directory)
        if is_asked:
            place = where_asked(node, link, certificate_directory)
        auth = {"method": "scram", "authid": "joe", "secret": password}
        return new_session(link.client).open(place, auth=auth)

    return log_in


@only(lambda link: not link.is_javascript)
def test_autobahn_by_the_file(link, log_in):
    details = log_in(link).details
    assert (details["authid"], details["authrole"]) == ("joe", "user")
    assert (details["authmethod"], details["authprovider"]) == ("scram", "static")
    with pytest.raises(WampError) as raised:
        log_in(link, "wrong")
    assert raised.value.uri == NOT_AUTHORIZED


@only(lambda link: not link.is_javascript and (link.kind == "ws" or link.over == "tcp"))
def test_autobahn_by_a_procedure(link, node, log_in):
    with RawSocket.tcp(node.address("open")).shake_hands().join("auth") as authenticator:
        authenticator.register(PROCEDURE)

        def serve() -> None:
            invocation = authenticator.hear(INVOCATION)
            authenticator.say(YIELD, invocation[1], {}, [PRINCIPALS["joe"]])

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        details = log_in(link, is_asked=True).details
        serving.join()
    assert (details["authid"], details["authrole"]) == ("joe", "user")
    assert (details["authmethod"], details["authprovider"]) == ("scram", "dynamic")


@dataclass
class Client:
    """A client by hand."""

    peer: RawSocket
    method: str
    authid: str
    nonce: str
    # CHALLENGE.Extra.
    extra: dict

    def auth_message(self, binding: str) -> bytes:
        """Return what both sides prove that they have seen."""
        extra = self.extra
        first = f"n={self.authid},r={self.nonce}"
        server = f"r={extra['nonce']},s={extra['salt']},i={extra['iterations']}"
        return f"{first},{server},c={binding},r={extra['nonce']}".encode()

    def answer(self, derive: Callable, binding: str, password: str = PASSWORD) -> bytes:
        """Prove that it knows the password; returns what the router is to prove."""
        salt = base64.b64decode(self.extra["salt"])
        iterations, memory = self.extra["iterations"], self.extra.get("memory")
        salted = derive(password, salt, iterations, memory)
        key = mac(salted, b"Client Key")
        signed = mac(hashlib.sha256(key).digest(), self.auth_message(binding))
        proof = bytes(a ^ b for a, b in zip(key, signed, strict=True))
        more = {"channel_binding": None, "cbind_data": None, "nonce": self.extra["nonce"]}
        more = more if self.method == "wamp-scram" else {}
        self.peer.say(AUTHENTICATE, base64.b64encode(proof).decode(), more)
        return mac(mac(salted, b"Server Key"), self.auth_message(binding))


def begin(node: Router, authid: str, method: str) -> Client:
    """Say HELLO by hand, and hear what is asked."""
    nonce = base64.b64encode(b"0123456789abcdef").decode()
    peer = RawSocket.tcp(node.address("tcp")).shake_hands()
    extra = {"nonce": nonce}
    details = {"authmethods": [method], "authid": authid, "authextra": extra}
    peer.say(HELLO, "realm1", {"roles": ROLES, **details})
    _, named, extra = peer.hear(CHALLENGE)
    assert named == method
    return Client(peer, method, authid, nonce, extra)


@pytest.mark.parametrize(
    ("authid", "method", "derive", "binding", "kdf"),
    [
        ("joe", "scram", autobahns, "", "argon2id-13"),
        ("ann", "wamp-scram", argon2id, "biws", "argon2id13"),
        ("bob", "scram", pbkdf2, "", "pbkdf2"),
        ("bob", "wamp-scram", pbkdf2, "biws", "pbkdf2"),
    ],
)
def test_by_hand(node, authid, method, derive, binding, kdf):
    client = begin(node, authid, method)
    assert client.extra["kdf"] == kdf
    assert set(client.extra) <= {"nonce", "kdf", "salt", "iterations", "memory"}
    if method == "wamp-scram":
        assert client.extra["nonce"].startswith(client.nonce)
        assert "memory" in client.extra
    verifier = base64.b64encode(client.answer(derive, binding)).decode()
    details = client.peer.hear(WELCOME)[2]
    said = {key: details[key] for key in ("authid", "authrole", "authmethod")}
    assert said == {"authid": authid, "authrole": "user", "authmethod": method}
    assert details["authextra"]["scram_server_signature"] == verifier
    assert details["authextra"]["verifier"] == f"v={verifier}"
    client.peer.close()


@pytest.mark.parametrize("authid", ["ann", "bob", "zed"])
def test_a_wrong_password_and_an_unknown_authid_get_the_same_answer(node, authid):
    for _ in range(2):
        client = begin(node, authid, "wamp-scram")
        derive = pbkdf2 if client.extra["kdf"] == "pbkdf2" else argon2id
        client.answer(derive, "biws", "wrong")
        expect_refusal(client.peer)
        client.peer.close()


def test_an_unknown_authid_has_a_stable_salt(node):
    def salt(authid: str) -> str:
        client = begin(node, authid, "scram")
        client.peer.close()
        return client.extra["salt"]

    salts = [salt(authid) for authid in ("zed", "zed", "zoe", "joe")]
    assert salts[0] == salts[1]
    assert len(set(salts)) == 3
    assert {len(base64.b64decode(salt)) for salt in salts} == {len(SALT)}


def test_a_proof_is_good_once(node):
    first = begin(node, "bob", "wamp-scram")
    first.answer(pbkdf2, "biws")
    first.peer.hear(WELCOME)
    second = begin(node, "bob", "wamp-scram")
    assert second.extra["nonce"] != first.extra["nonce"]
    second.extra = first.extra
    second.answer(pbkdf2, "biws")
    expect_refusal(second.peer)


@pytest.mark.parametrize(
    "extra",
    [None, {}, {"nonce": None}, {"nonce": 5}, {"nonce": "?"}, {"nonce": "A" * 10_000}],
    ids=lambda extra: str(extra)[:20],
)
def test_without_a_nonce(node, extra):
    details = {"authmethods": ["scram"], "authid": "joe"}
    if extra is not None:
        details["authextra"] = extra
    with RawSocket.tcp(node.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "realm1", {"roles": ROLES, **details})
        _, details, reason = peer.hear(ABORT)
        assert reason == NOT_AUTHORIZED
        assert details["message"].startswith("HELLO.Details.authextra.nonce: expected 1 to 256")


@pytest.mark.parametrize(
    ("signature", "extra"),
    [("", {}), ("A" * 10_000, {}), ("AAAA", {"nonce": 5}), ("AAAA", {"cbind_data": [{}]})],
    ids=lambda value: str(value)[:20],
)
def test_malformed_proofs(node, signature, extra):
    client = begin(node, "bob", "wamp-scram")
    client.peer.say(AUTHENTICATE, signature, extra)
    assert client.peer.hear(ABORT)[2] == NOT_AUTHORIZED
