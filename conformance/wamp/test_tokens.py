"""JSON Web Tokens, made as issuers make them; the issuer's keys change."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rig.router import Router
from rig.session import ABORT, WELCOME
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
    """An issuer of tokens."""

    def __init__(self, name: str):
        self.name = name
        self.key = Ed25519PrivateKey.generate()

    def public(self) -> dict:
        """Return its key as it publishes it."""
        x = encoded(self.key.public_key().public_bytes_raw())
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.name, "x": x}

    def token(self, **claims: object) -> str:
        """Make a token for joe that holds for a minute."""
        return written({"alg": "EdDSA", "kid": self.name}, claims, self.key.sign)


def written(head: dict, claims: dict, sign: Callable[[bytes], bytes]) -> str:
    """Return a token with that head, signed in some way."""
    usual = {"iss": "https://issuer.example", "aud": "crosstie", "sub": "joe", "role": "user"}
    claims = {**usual, "exp": time.time() + 60, **claims}
    signed = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
    return f"{signed}.{encoded(sign(signed.encode()))}"


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


def test_tokens_that_are_forged(node, issuer):
    known = {"kid": issuer.name}
    stranger = Issuer(issuer.name)
    public = issuer.key.public_key().public_bytes_raw()
    unsigned = [
        written({"alg": name, **more}, {}, lambda _: b"")
        for name in ("none", "None", "NONE", "EdDSA")
        for more in (known, {})
    ]
    by_public_key = [
        written(
            {"alg": "HS256", **known},
            {},
            lambda signed, key=key: hmac.digest(key, signed, "sha256"),
        )
        for key in (public, encoded(public).encode(), json.dumps(issuer.public()).encode())
    ]
    by_a_stranger = [
        stranger.token(),
        # The key comes with the token, or is said to be somewhere.
        written({"alg": "EdDSA", "jwk": stranger.public()}, {}, stranger.key.sign),
        written({"alg": "EdDSA", "jku": "http://127.0.0.1:1/", **known}, {}, stranger.key.sign),
    ]
    _, _, signature = issuer.token().split(".")
    changed = written({"alg": "EdDSA", **known}, {"sub": "ann"}, lambda _: b"")
    forged = [*unsigned, *by_public_key, *by_a_stranger, changed + signature]
    for token in forged:
        assert answer(node, token)[0] == ABORT, token
    # Clients with a token are not refused for it.
    assert answer(node, issuer.token())[0] == WELCOME


def test_a_key_that_is_exchanged(node, issuer, tmp_path):
    second = Issuer("second")
    assert answer(node, second.token())[0] != WELCOME
    publish(tmp_path, issuer, second)
    await_true("the new key is read", lambda: answer(node, second.token())[0] == WELCOME)
    assert answer(node, issuer.token())[0] == WELCOME
    (tmp_path / "keys.json").write_text("{}")
    node.await_log(lambda line: "stay in force" in str(line))
    assert answer(node, second.token())[0] == WELCOME
    publish(tmp_path, second)
    await_true("the old key is gone", lambda: answer(node, issuer.token())[0] != WELCOME)
