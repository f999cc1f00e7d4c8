"""Webhooks, calls and publications by HTTP, as other people's programs send them."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator

import pytest
from rig import config
from rig.http import Http
from rig.router import Router

SECRET = "gh"


def web(**paths: dict) -> dict:
    """Return a transport of web services."""
    return {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory) -> Iterator[Http]:
    """Calls, publications and webhooks by HTTP."""
    service = {"realm": "realm1", "role": "anonymous"}
    hook = {"topic": "com.hook", "success_response": "ok", "error_response": "no"}
    paths = {
        "call": {"type": "caller", **service},
        "publish": {"type": "publisher", **service},
        "hook": {"type": "webhook", **service, "options": {**hook, "github_secret": SECRET}},
    }
    router = Router(tmp_path_factory.mktemp("bridge"), config=config.plain(web(**paths)))
    yield Http(router.address("web"))
    router.stop()


@pytest.mark.parametrize(
    ("charset", "status"),
    [('"utf-8"', 200), ('"UTF-8"', 200), ("utf-8", 200), ('"latin-1"', 400), ('"utf-8', 400)],
)
def test_a_quoted_charset_is_the_same_charset(bridge: Http, charset: str, status: int):
    headers = {"Content-Type": f"application/json; charset={charset}"}
    publication = {"topic": "com.topic", "args": [1]}
    assert bridge.post("/publish", json.dumps(publication), headers).status == status
    call = {"procedure": "wamp.session.count"}
    assert bridge.post("/call", json.dumps(call), headers).status == status


def signed(algorithm: str, body: bytes, secret: str = SECRET) -> str:
    """Return a webhook's signature."""
    return f"{algorithm}={hmac.new(secret.encode(), body, algorithm).hexdigest()}"


@pytest.mark.parametrize(
    ("algorithms", "secret", "status"),
    [
        (["sha256"], SECRET, 202),
        (["sha1"], SECRET, 202),
        (["sha1", "sha256"], SECRET, 202),
        (["sha256"], "wrong", 400),
        ([], SECRET, 400),
    ],
)
def test_a_webhook_with_a_sha256_signature_only_is_taken(
    bridge: Http, algorithms: list[str], secret: str, status: int
):
    body = b'{"zen": "Keep it logically awesome."}'
    names = {"sha1": "X-Hub-Signature", "sha256": "X-Hub-Signature-256"}
    headers = {names[name]: signed(name, body, secret) for name in algorithms}
    assert bridge.post("/hook", body, headers).status == status
