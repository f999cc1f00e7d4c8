"""JSON Web Tokens, made as issuers make them; the issuer's keys change."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rig.router import Router
from rig.session import WELCOME
from rig.waiting import await_true
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, closed, expect_refusal, hello

AUTH = {
    "jwt": {
        "type": "static",
        "jwks_file": "keys.json",
        "issuer": "https://issuer.example",
        "audience": "crosstie",
        "clock_skew": 5,
    }
}


def encoded(data: bytes) -> str:
    """Base64 for URLs."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Whoever makes tokens."""

    def __init__(self, name: str):
        self.name = name
        self.key = Ed25519PrivateKey.generate()

    def public(self) -> dict:
        """Return its key as it publishes it."""
        x = encoded(self.key.public_key().public_bytes_raw())
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.name, "x": x}

    def token(self, **claims: object) -> str:
        """Make a token for joe that holds for a minute."""
        usual = {"iss": "https://issuer.example", "aud": "crosstie", "sub": "joe", "role": "user"}
        claims = {**usual, "exp": time.time() + 60, **claims}
        head = {"alg": "EdDSA", "kid": self.name}
        signed = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{encoded(self.key.sign(signed.encode()))}"


def publish(directory: Path, *issuers: Issuer) -> None:
    """Write the keys."""
    keys = [issuer.public() for issuer in issuers]
    (directory / "keys.json").write_text(json.dumps({"keys": keys}))


@pytest.fixture
def issuer() -> Issuer:
    return Issuer("first")


@pytest.fixture
def node(tmp_path, issuer):
    publish(tmp_path, issuer)
    running = Router(tmp_path, config=closed(AUTH, limits={"login_delay_ms_max": 0}))
    yield running
    running.stop()


def answer(node: Router, token: str) -> list:
    """Log in with a token."""
    with hello(node, authmethods=["jwt"]) as peer:
        assert peer.hear(CHALLENGE) == [CHALLENGE, "jwt", {}]
        peer.say(AUTHENTICATE, token, {})
        return peer.hear_any()


def test_a_token(node, issuer):
    details = answer(node, issuer.token())[2]
    said = {key: details[key] for key in ("authid", "authrole", "authmethod", "authprovider")}
    static = {"authmethod": "jwt", "authprovider": "static"}
    assert said == {"authid": "joe", "authrole": "user", **static}


@pytest.mark.parametrize(
    ("claims", "cause"),
    [
        ({"exp": 1}, "expired_token"),
        ({"nbf": 1 << 40}, "early_token"),
        ({"aud": "other"}, "wrong_claims"),
        ({"role": "trusted"}, "wrong_claims"),
    ],
    ids=str,
)
def test_a_token_that_does_not_hold(node, issuer, claims, cause):
    with hello(node, authmethods=["jwt"]) as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, issuer.token(**claims), {})
        expect_refusal(peer)
    assert node.metric("authentications_refused_total", cause=cause) == 1


def test_a_key_that_is_exchanged(node, issuer, tmp_path):
    second = Issuer("second")
    assert answer(node, second.token())[0] != WELCOME
    publish(tmp_path, issuer, second)
    await_true("the new key is read", lambda: answer(node, second.token())[0] == WELCOME)
    assert answer(node, issuer.token())[0] == WELCOME
    (tmp_path / "keys.json").write_text("{}")
    node.await_log(lambda line: "stay as they were" in str(line))
    assert answer(node, second.token())[0] == WELCOME
    publish(tmp_path, second)
    await_true("the old key is gone", lambda: answer(node, issuer.token())[0] != WELCOME)
