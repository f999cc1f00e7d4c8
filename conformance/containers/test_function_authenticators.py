"""Authenticators that are functions: Python beside the router decides about identities."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterator

import pytest
from rig import config
from rig.container import HOSTED
from rig.node import Node
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.session import ABORT, HELLO, ROLES, WELCOME
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, NOT_AUTHORIZED, signature
from wamp.test_client_certificates import Papers, fingerprint
from wamp.test_logging_in import KEY, PUBLIC_KEY
from wamp.test_scram import PASSWORD, PRINCIPALS


def node(auth: dict, **options: object) -> dict:
    """Return a node whose one transport asks functions."""
    router = {
        "type": "router",
        "options": {"pythonpath": [str(HOSTED)], **options},
        "realms": [{"name": "realm1", "roles": [config.role("user")]}],
        "transports": [
            {"type": "rawsocket", "id": "unix", "endpoint": config.unix("node.sock"), "auth": auth}
        ],
    }
    return {"version": 2, "workers": [router], "limits": {"login_delay_ms_max": 0}}


def function(create: str, **more: object) -> dict:
    return {"type": "function", "create": create, **more}


@pytest.fixture
def start_node(tmp_path) -> Iterator[Callable[[dict], Node]]:
    running: list[Node] = []

    def start(configuration: dict) -> Node:
        running.append(Node(tmp_path, configuration))
        return running[-1]

    yield start
    for each in running:
        each.close()


def begin(started: Node, method: str, authid: str, realm: str = "realm1") -> RawSocket:
    peer = RawSocket.unix(started.directory / "node.sock").shake_hands()
    peer.say(HELLO, realm, {"roles": ROLES, "authmethods": [method], "authid": authid})
    return peer


def by_ticket(started: Node, authid: str, ticket: str, realm: str = "realm1") -> list:
    with begin(started, "ticket", authid, realm) as peer:
        assert peer.hear(CHALLENGE)[1] == "ticket"
        peer.say(AUTHENTICATE, ticket, {})
        return peer.hear_any()


@pytest.fixture
def started(start_node):
    tickets = function("logins.tickets", config={"joe": "hunter2", "role": "user"})
    users = function("logins.users", config={"secrets": {"ann": "secret1"}})
    running = start_node(node({"ticket": tickets, "wampcra": users}))
    running.says("^Ready")
    return running


def test_a_ticket_is_judged_by_a_function(started):
    welcome = by_ticket(started, "joe", "hunter2")
    assert welcome[0] == WELCOME
    details = welcome[2]
    assert (details["authid"], details["authrole"]) == ("joe", "user")
    assert (details["authmethod"], details["authprovider"]) == ("ticket", "function")
    code, details, reason = by_ticket(started, "joe", "wrong")
    assert (code, reason) == (ABORT, "com.example.denied")
    assert details["message"] == "no such ticket of joe"
    # In a process of its own, made once.
    extra = by_ticket(started, "history", "")[2]["authextra"]
    assert extra["pid"] not in (os.getpid(), started.process.pid)
    asked = ["realm1", "joe", "ticket", "rawsocket"]
    assert extra["asked"][-3:] == [asked, asked, ["realm1", "history", "ticket", "rawsocket"]]


def test_a_secret_comes_from_a_function_that_takes_its_time(started):
    with begin(started, "wampcra", "ann") as peer:
        _, method, extra = peer.hear(CHALLENGE)
        assert method == "wampcra"
        challenge = json.loads(extra["challenge"])
        assert (challenge["authprovider"], challenge["authrole"]) == ("function", "user")
        peer.say(AUTHENTICATE, signature(extra["challenge"], "secret1"), {})
        peer.hear(WELCOME)
    for authid in ("nobody", "unknown"):
        with begin(started, "wampcra", authid) as peer:
            peer.hear(ABORT)


# The method, what the client knows, and what the function answers.
KNOWN = [
    ("anonymous", "", {"role": "user", "authid": "joe"}),
    ("ticket", "hunter2", "user"),
    ("wampcra", "secret1", {"secret": "secret1", "role": "user"}),
    ("scram", PASSWORD, PRINCIPALS["joe"]),
    ("cryptosign", KEY, {"pubkey": PUBLIC_KEY, "role": "user"}),
]


def test_autobahn_logs_in_by_every_method(start_node, new_session):
    answers = {method: answer for method, _, answer in KNOWN}
    auth = {method: function("logins.known", config=answers) for method in answers}
    configuration = node(auth)
    configuration["workers"][0]["transports"] = [
        config.universal(
            "unix",
            config.unix("node.sock"),
            rawsocket={"auth": auth},
            websocket={"ws": {"auth": auth}},
        )
    ]
    started = start_node(configuration)
    started.says("^Ready")
    place = {"over": "unix", "path": str(started.directory / "node.sock")}
    place |= {"serializer": "cbor", "url": "ws://localhost/ws"}
    for kind, client in itertools.product(("rs", "ws"), ("asyncio", "twisted")):
        for method, secret, _ in KNOWN:
            auth = {"method": method, "authid": "joe", "secret": secret}
            more = {} if method == "anonymous" else {"auth": auth}
            details = new_session(client).open({**place, "kind": kind}, **more).details
            assert (details["authid"], details["authrole"]) == ("joe", "user")
            assert (details["authmethod"], details["authprovider"]) == (method, "function")


def test_autobahn_shows_a_certificate_to_a_function(start_node, new_session, tmp_path):
    papers = Papers(tmp_path)
    for name in ("joe", "unknown"):
        papers.sign(name, common_name=name)
    known = {fingerprint(f"{tmp_path}/joe", "sha256"): "joe"}
    auth = {"tls": function("logins.certificates", config=known)}
    files = {"key": "server.key", "certificate": "server.pem"}
    files |= {"ca_certificates": ["authority.pem"], "client_certificate": "optional"}
    configuration = node(auth)
    configuration["workers"][0]["transports"] = [
        config.universal(
            "tls",
            config.tcp(tls=files),
            rawsocket={"auth": auth},
            websocket={"ws": {"auth": auth}},
        )
    ]
    started = start_node(configuration)
    started.says("^Ready")
    port = int(re.search(r"wss://127\.0\.0\.1:(\d+)", started.text())[1])
    place = {"over": "tls", "serializer": "cbor", "host": "127.0.0.1", "port": port}
    place |= {"url": f"wss://localhost:{port}/ws", "authority": f"{tmp_path}/authority.pem"}
    for kind, client in itertools.product(("rs", "ws"), ("asyncio", "twisted")):
        at = {**place, "kind": kind}

        def log_in(name: str, at=at, client=client):
            shows = {"certificate": f"{tmp_path}/{name}"} if name else {}
            return new_session(client).open({**at, **shows}, auth={"method": "tls"}).details

        details = log_in("joe")
        assert (details["authid"], details["authrole"]) == ("joe", "user")
        assert (details["authmethod"], details["authprovider"]) == ("tls", "function")
        for name, reason in (("unknown", "com.example.denied"), ("", NOT_AUTHORIZED)):
            with pytest.raises(WampError) as raised:
                log_in(name)
            assert raised.value.uri == reason


def test_a_client_that_comes_first_waits(start_node):
    slow = function("logins.users", config={"secrets": {"ann": "secret1"}})
    running = start_node(node({"wampcra": slow}))
    running.says("transport 'unix' started")
    # The process that hosts it is still starting.
    with begin(running, "wampcra", "ann") as peer:
        _, _, extra = peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, signature(extra["challenge"], "secret1"), {})
        peer.hear(WELCOME)


def test_a_client_does_not_wait_for_ever(start_node):
    nowhere = function("logins.missing", authenticator_timeout_ms=2_000)
    running = start_node(node({"ticket": nowhere}, needs_components=False))
    running.says("^Ready")
    code, _, reason = by_ticket(running, "joe", "hunter2")
    assert (code, reason) == (ABORT, "wamp.error.no_such_procedure")


def test_other_sessions_cannot_call_it(started):
    code, _, reason = by_ticket(started, "joe", "hunter2", "crosstie.authenticators")
    assert (code, reason) == (ABORT, "wamp.error.no_such_role")


@pytest.mark.parametrize(
    ("create", "expected"),
    [
        ("logins.nonsense", "returned 'nonsense', which cannot be called"),
        ("logins.missing", "cannot load 'logins.missing'"),
        ("nowhere.authenticator", "cannot load 'nowhere.authenticator'"),
    ],
)
def test_a_function_that_makes_none(start_node, create, expected):
    failing = start_node(node({"ticket": function(create)}, needs_components=False))
    failing.says(expected)
    failing.says("^Ready")
    code, _, reason = by_ticket(failing, "joe", "hunter2")
    assert (code, reason) == (ABORT, "wamp.error.no_such_procedure")
    assert failing.stop() == 0
