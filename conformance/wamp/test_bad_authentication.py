"""Peers that say the wrong thing while they are asked who they are, or say it too often."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterator

import pytest
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import ABORT, CALL, ENCODE, GOODBYE, HELLO, ROLES, VIOLATION, WELCOME
from rig.waiting import await_true
from wamp.test_authentication import (
    AUTHENTICATE,
    CHALLENGE,
    NOT_AUTHORIZED,
    NOT_VALID,
    TICKETS,
    USERS,
    closed,
    hello,
    signature,
)

AUTH = {"ticket": TICKETS, "wampcra": USERS}
TICKET = {"authmethods": ["ticket"], "authid": "joe"}


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Router]:
    """A router of this file's own: failures are counted by address, and all come from one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TICKET", "hunter3")
        running = Router(tmp_path_factory.mktemp("guarded"), config=closed(AUTH))
    yield running
    running.stop()


@pytest.mark.parametrize(
    "message",
    [
        [HELLO, "realm1", {"roles": ROLES, **TICKET}],
        [CALL, 1, {}, "com.example.x"],
        [GOODBYE, {}, "wamp.close.normal"],
        [WELCOME, 1, {}],
        [CHALLENGE, "ticket", {}],
        [16, 1, {}, "com.example.x"],
    ],
    ids=lambda message: str(message[0]),
)
def test_something_else_than_authenticate(node, message):
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(*message)
        details = peer.expect_abort(VIOLATION)
        assert details["message"].startswith("expected AUTHENTICATE, got ")


def test_an_abort_of_the_peers(node):
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(ABORT, {}, "wamp.error.canceled")
        peer.expect_end()


def test_authenticate_that_is_not_due(node):
    with RawSocket.tcp(node.address("tcp")).shake_hands() as peer:
        peer.say(AUTHENTICATE, "hunter2", {})
        assert "expected HELLO" in peer.expect_abort(VIOLATION)["message"]
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        peer.hear(WELCOME)
        peer.say(AUTHENTICATE, "hunter2", {})
        peer.expect_abort(VIOLATION)
    with hello(node, "open") as peer:
        peer.hear(WELCOME)
        peer.say(AUTHENTICATE, "hunter2", {})
        peer.expect_abort(VIOLATION)


@pytest.mark.parametrize(
    "message",
    [[AUTHENTICATE], [AUTHENTICATE, 5, {}], [AUTHENTICATE, None, {}], [AUTHENTICATE, "x", []]],
)
def test_authenticate_that_is_none(node, message):
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(*message)
        peer.expect_abort(VIOLATION)


@pytest.mark.parametrize(
    "details",
    [
        {"authmethods": "ticket"},
        {"authmethods": [5]},
        {"authmethods": ["ticket"], "authid": 5},
        {"authmethods": ["ticket"], "authid": "joe", "authextra": []},
        {"authmethods": ["ticket"], "authid": "joe", "authrole": {}},
    ],
    ids=str,
)
def test_a_hello_that_is_none(node, details):
    with hello(node, **details) as peer:
        peer.expect_abort(VIOLATION)


def test_without_an_authid(node):
    for method in ("ticket", "wampcra"):
        with hello(node, authmethods=[method]) as peer:
            _, details, reason = peer.hear(ABORT)
            assert reason == NOT_AUTHORIZED
            assert "HELLO.Details.authid: expected text" in details["message"]


def test_an_authenticate_that_is_too_long(node):
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "x" * 70_000, {})
        peer.expect_abort(VIOLATION)


def test_a_long_one_that_is_wrong(node):
    for method in ("ticket", "wampcra"):
        with hello(node, authmethods=[method], authid="joe") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "x" * 60_000, {})
            assert peer.hear(ABORT) == [ABORT, {"message": NOT_VALID}, NOT_AUTHORIZED]


def test_a_connection_has_only_so_many_tries(node):
    with RawSocket.tcp(node.address("tcp")).shake_hands() as peer:
        for _ in range(5):
            peer.say(HELLO, "realm1", {"roles": ROLES, **TICKET})
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "wrong", {})
            assert peer.hear(ABORT)[2] == NOT_AUTHORIZED
        peer.expect_end()


def test_right_credentials_do_not_wait_for_wrong_ones(node):
    """Wrong ones wait for their answers; a client that leaves meanwhile leaves nothing behind."""
    for _ in range(20):
        peer = hello(node, **TICKET)
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "wrong", {})
        peer.close()
    with hello(node, authmethods=["wampcra"], authid="joe") as peer:
        challenge = peer.hear(CHALLENGE)[2]["challenge"]
        peer.say(AUTHENTICATE, signature(challenge, "secret1"), {})
        peer.hear(WELCOME)
    await_true("all are gone", lambda: node.metric("handshakes_pending") == 0)


def test_refusals_are_counted_by_cause(node):
    def count(cause: str) -> float:
        return node.metric("authentications_refused_total", cause=cause)

    before = {cause: count(cause) for cause in ("wrong_ticket", "unknown_principal", "no_method")}
    for authid in ("joe", "zed"):
        with hello(node, authmethods=["ticket"], authid=authid) as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "wrong", {})
            peer.hear(ABORT)
    with hello(node) as peer:
        peer.hear(ABORT)
    assert all(count(cause) == number + 1 for cause, number in before.items())


def test_only_so_many_are_asked_at_a_time(start_router, monkeypatch):
    monkeypatch.setenv("TICKET", "hunter3")
    limits = {"handshakes_pending_max": 3}
    node = start_router(closed(AUTH, limits=limits))
    asked = [hello(node, **TICKET) for _ in range(3)]
    for peer in asked:
        peer.hear(CHALLENGE)
    with hello(node, **TICKET) as peer:
        assert peer.hear(ABORT)[2] == "crosstie.error.handshakes_pending_max"
    with hello(node, "open") as peer:
        peer.hear(WELCOME)
    asked[0].close()
    await_true("there is a place", lambda: node.metric("handshakes_pending") == 2)
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
    for peer in asked[1:]:
        peer.close()


def test_a_client_that_does_not_answer_is_closed(start_router, monkeypatch):
    monkeypatch.setenv("TICKET", "hunter3")
    node = start_router(closed(AUTH, limits={"challenge_timeout_ms": 100}))
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        assert peer.hear(ABORT)[2] == "crosstie.error.challenge_timeout"
        peer.expect_end()
    await_true("its place is free", lambda: node.metric("handshakes_pending") == 0)


def test_crossbars_words_where_they_are_asked_for(start_router):
    principals = {"joe": {"ticket": "hunter2", "role": "user"}}
    auth = {"ticket": {"type": "static", "principals": principals}, "error_texts": "crossbar"}
    node = start_router(closed(auth))
    with hello(node, authmethods=["ticket"], authid="zed") as peer:
        text = 'no principal with authid "zed" exists'
        assert peer.hear(ABORT) == [ABORT, {"message": text}, NOT_AUTHORIZED]
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "wrong", {})
        text = "ticket in static WAMP-Ticket authentication is invalid"
        assert peer.hear(ABORT) == [ABORT, {"message": text}, NOT_AUTHORIZED]


def test_messages_after_wrong_credentials_wait_with_their_answer(node):
    """Messages in the same piece are handled after their answer was sent."""

    def frame(*message: object) -> bytes:
        octets = ENCODE["json"](list(message))
        return struct.pack("!I", len(octets)) + octets

    for _ in range(4):
        with hello(node, authmethods=["ticket"], authid="zed") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "wrong", {})
            peer.hear(ABORT)
    with hello(node, authmethods=["ticket"], authid="zed") as peer:
        peer.hear(CHALLENGE)
        peer.send(
            frame(AUTHENTICATE, "wrong", {})
            + frame(HELLO, "realm1", {"roles": ROLES, **TICKET})
            + frame(AUTHENTICATE, "hunter2", {})
        )
        peer.hear(ABORT)
        peer.hear(CHALLENGE)
        peer.hear(WELCOME)


def test_refused_logins_are_audited(start_router):
    principals = {"joe": {"ticket": "hunter2", "role": "user"}}
    auth = {"ticket": {"type": "static", "principals": principals}}
    log = {"file": "audit.log", "file_bytes_max": 4096}
    node = start_router(closed(auth, audit_log=log))
    path = node.directory / "audit.log"
    with hello(node, authmethods=["ticket"], authid="zed\n{") as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "a secret of its own", {})
        peer.hear(ABORT)
        name = f"tcp:{peer.name}"
    await_true("the line is there", lambda: path.read_text().endswith("\n"))
    line = json.loads(path.read_text())
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "session_refused",
        "cause": "unknown_principal",
        "reason": NOT_AUTHORIZED,
        "peer": name,
        "realm": "realm1",
        "authid": "zed\n{",
        "authmethod": "ticket",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    with hello(node, **TICKET) as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        peer.hear(WELCOME)
    for _ in range(50):
        with hello(node) as peer:
            peer.hear(ABORT)
    await_true("there is one before", (node.directory / "audit.log.1").exists)
    await_true("it is begun anew", lambda: path.exists() and path.stat().st_size < 4096)
    assert "hunter2" not in path.read_text()


def test_an_audit_log_that_cannot_be_written_ends_the_start(tmp_path):
    configuration = closed({}, audit_log={"file": "no/such/directory/audit.log"})
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    command = [str(binary()), "start", "--cbdir", str(tmp_path)]
    started = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert started.returncode == 1
    assert "cannot open the audit log" in started.stderr
