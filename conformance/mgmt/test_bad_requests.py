"""Requests that break rules: paths, queries and bodies from a seed, large bodies, other sites."""

from __future__ import annotations

import json
import random

import pytest

from mgmt import cases
from mgmt.cases import Api

SEED = 20_221_129
REQUESTS = 600


def test_requests_from_a_seed_are_answered(api):
    chance = random.Random(SEED)
    for number in range(REQUESTS):
        method, path, body = request(chance)
        answer = api.ask(method, path, body)
        place = (number, method, path, body, answer.status, answer.body)
        assert answer.status < 500 or answer.status == 503, place
        if answer.body:
            json.loads(answer.body)
    assert api.ask("GET", "whoami").status == 200


def request(chance: random.Random) -> tuple[str, str, bytes]:
    """Return a request like those of clients, with faults."""
    paths = [path for path in (*cases.LISTS, *cases.SINGLE) if "{" not in path]
    path = chance.choice(
        [
            *paths,
            "queues/%2F/fuzz",
            "exchanges/%2F/fuzz",
            "bindings/%2F/e/amq.topic/q/fuzz",
            "queues/%2F/fuzz/get",
            "exchanges/%2F/amq.topic/publish",
            "queues/%2F/fuzz/actions",
            "policies/%2F/fuzz",
            "operator-policies/%2F/fuzz",
            "vhost-limits/%2F/max-queues-of-none",
            "users/fuzz",
            "permissions/%2F/fuzz",
            "global-parameters/fuzz",
        ]
    )
    for _ in range(chance.choice([0, 0, 1, 2])):
        at = chance.randrange(len(path) + 1)
        octet = chance.choice(
            ["%2F", "%00", "%ff", "%", "/", "..", "?", "&", "=", "%C3%A9", "x" * 300]
        )
        path = path[:at] + octet + path[at:]
    query = chance.choice(
        ["", "", "columns=a.b.c", "sort=x", "page=-1", "name=((&page=1&use_regex=true"]
    )
    if query:
        path += ("&" if "?" in path else "?") + query
    method = chance.choice(["GET", "GET", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"])
    if method == "DELETE" and "fuzz" not in path:
        method = "GET"
    if method in ("PUT", "POST") and "fuzz" not in path and "amq.topic" not in path:
        method = "GET"
    return method, path, body_of(chance) if method in ("PUT", "POST") else b""


KEYS = (
    *["durable", "auto_delete", "arguments", "type", "node", "routing_key", "count", "ackmode"],
    *["encoding", "properties", "payload", "payload_encoding", "action", "truncate", "pattern"],
    *["definition", "priority", "apply-to", "value", "tags", "password", "configure", "write"],
    *["read"],
)


def value(chance: random.Random, depth: int = 0) -> object:
    """Return a value of any type."""
    kind = chance.randrange(9 if depth < 4 else 7)
    if kind == 7:
        return [value(chance, depth + 1) for _ in range(chance.randrange(3))]
    if kind == 8:
        return {chance.choice(KEYS): value(chance, depth + 1) for _ in range(chance.randrange(3))}
    simple = (None, True, "true", -1, 1.5, "string", "ack_requeue_true")
    return simple[kind]


def body_of(chance: random.Random) -> bytes:
    """Return a body: mostly JSON."""
    body = json.dumps({key: value(chance) for key in chance.sample(KEYS, 6)}).encode()
    match chance.randrange(5):
        case 0:
            at = chance.randrange(len(body))
            return body[:at]
        case 1:
            at = chance.randrange(len(body))
            return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]
        case _:
            return body


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_bodies_are_refused(api, depth):
    body = b'{"arguments":' + b'{"x":' * depth + b"1" + b"}" * depth + b"}"
    answer = api.ask("PUT", "queues/%2F/deep", body)
    assert answer.status in (201, 400)
    api.ask("DELETE", "queues/%2F/deep")


def test_a_body_beyond_the_bound_is_refused_unread(api):
    head = {"Content-Length": str(1 << 30)}
    answer = api.ask("PUT", "queues/%2F/large", headers=head)
    assert answer.status == 400
    assert json.loads(answer.body)["reason"] == "Exceeded HTTP request body size limit"


def test_strangers_are_refused_before_their_body_is_read(api):
    head = {"Content-Length": str(1 << 30)}
    assert api.ask("PUT", "queues/%2F/large", user=None, headers=head).status == 401
    assert api.ask("PUT", "queues/%2F/large", user="nobody", headers=head).status == 401


def test_pages_of_other_sites_change_nothing(api):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = api.ask("PUT", "queues/%2F/foreign", {}, headers=headers)
        assert answer.status == 403
    assert api.ask("GET", "queues/%2F/foreign").status == 404
    own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert api.ask("PUT", "queues/%2F/own", {}, headers=own).status == 201
    assert api.ask("DELETE", "queues/%2F/own").status == 204


def test_odd_credentials_are_refused(api: Api):
    for authorization, status in (
        ("Basic !!", 400),
        ("Basic Z3Vlc3Q=", 400),
        ("Bearer Z3Vlc3Q6Z3Vlc3Q=", 401),
        ("Z3Vlc3Q6Z3Vlc3Q=", 401),
    ):
        headers = {"Authorization": authorization}
        assert api.ask("GET", "whoami", user=None, headers=headers).status == status
