"""Coming in by ticket and by WAMP-CRA, by hand: what is said, to whom, in which order."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ABORT, CALL, HELLO, INVOCATION, RESULT, ROLES, WELCOME, YIELD

CHALLENGE, AUTHENTICATE = 4, 5
NOT_AUTHORIZED = "wamp.error.not_authorized"
NOT_VALID = "the authid or its credentials are not valid"

TICKETS = {
    "type": "static",
    "principals": {"joe": {"ticket": "hunter2", "role": "user"}, "ann": {"ticket": "$TICKET"}},
    "default-role": "anonymous",
}
USERS = {
    "type": "static",
    "users": {
        "joe": {"secret": "secret1", "role": "user"},
        "ann": {
            "secret": "secret2",
            "role": "user",
            "salt": "salt123",
            "iterations": 100,
            "keylen": 16,
        },
    },
}


def signature(challenge: str, secret: str) -> str:
    """Sign as a client does."""
    digest = hmac.new(secret.encode(), challenge.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def derived(password: str, extra: dict) -> str:
    """Derive the key of a salted secret as a client does."""
    salt, rounds, length = extra["salt"].encode(), extra["iterations"], extra["keylen"]
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds, length)
    return base64.b64encode(key).decode()


def closed(auth: dict, **more: object) -> dict:
    """Return a node that asks for proof at its first listener, and for nothing at its second."""
    realms = [
        {"name": "realm1", "roles": [config.role("user"), config.role("anonymous")]},
        {"name": "realm2", "roles": [config.role("user")]},
    ]
    guarded = {"rawsocket": {"auth": auth}, "websocket": {"ws": {"auth": auth}}}
    transports = [
        config.universal("tcp", config.tcp(), **guarded),
        config.universal("open", config.tcp()),
    ]
    return config.node(realms, transports, **more)


@pytest.fixture(scope="module")
def static(tmp_path_factory):
    """A router that knows people by its configuration."""
    auth = {"ticket": TICKETS, "wampcra": USERS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TICKET", "hunter3")
        running = Router(tmp_path_factory.mktemp("static"), config=closed(auth))
    yield running
    running.stop()


def hello(router, transport: str = "tcp", realm: str = "realm1", **details: object) -> RawSocket:
    """Say HELLO on a new connection."""
    peer = RawSocket.tcp(router.address(transport)).shake_hands()
    peer.say(HELLO, realm, {"roles": ROLES, **details})
    return peer


def expect_refusal(peer: RawSocket, reason: str = NOT_AUTHORIZED, text: str = NOT_VALID) -> None:
    """The session is refused, and another may be asked for."""
    _, details, found = peer.hear(ABORT)
    assert (found, details["message"]) == (reason, text)


def test_a_ticket(static):
    with hello(static, authmethods=["ticket"], authid="joe", authextra={"a": 1}) as peer:
        assert peer.hear(CHALLENGE) == [CHALLENGE, "ticket", {}]
        peer.say(AUTHENTICATE, "hunter2", {})
        details = peer.hear(WELCOME)[2]
    said = {key: details[key] for key in ("realm", "authid", "authrole", "authmethod")}
    assert said == {"realm": "realm1", "authid": "joe", "authrole": "user", "authmethod": "ticket"}
    assert details["authprovider"] == "static"
    assert details["authextra"]["a"] == 1


def test_a_ticket_from_the_environment_and_the_default_role(static):
    with hello(static, authmethods=["ticket"], authid="ann") as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter3", {})
        assert peer.hear(WELCOME)[2]["authrole"] == "anonymous"


@pytest.mark.parametrize("authid", ["joe", "zed"])
def test_a_wrong_ticket_and_an_unknown_authid_get_the_same_answer(static, authid):
    with hello(static, authmethods=["ticket"], authid=authid) as peer:
        assert peer.hear(CHALLENGE) == [CHALLENGE, "ticket", {}]
        peer.say(AUTHENTICATE, "wrong", {})
        expect_refusal(peer)
        # The connection is open for a better one.
        peer.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"})
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        peer.hear(WELCOME)


def test_a_signature(static):
    with hello(static, authmethods=["wampcra"], authid="joe", authextra={"a": 1}) as peer:
        _, method, extra = peer.hear(CHALLENGE)
        assert (method, list(extra)) == ("wampcra", ["challenge"])
        challenge = json.loads(extra["challenge"])
        keys = "authid authrole authmethod authprovider session nonce timestamp"
        assert list(challenge) == keys.split()
        assert len(challenge["nonce"]) == 64
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", challenge["timestamp"])
        peer.say(AUTHENTICATE, signature(extra["challenge"], "secret1"), {})
        _, session, details = peer.hear(WELCOME)
    assert session == challenge["session"]
    assert (details["authid"], details["authrole"]) == ("joe", "user")
    assert (details["authmethod"], details["authprovider"]) == ("wampcra", "static")
    assert "a" not in details["authextra"]


@pytest.mark.parametrize("derive", [derived, lambda password, extra: password])
def test_a_salted_secret_in_both_readings(static, derive):
    with hello(static, authmethods=["wampcra"], authid="ann") as peer:
        extra = peer.hear(CHALLENGE)[2]
        assert (extra["salt"], extra["iterations"], extra["keylen"]) == ("salt123", 100, 16)
        key = derive("secret2", extra)
        peer.say(AUTHENTICATE, signature(extra["challenge"], key), {})
        assert peer.hear(WELCOME)[2]["authid"] == "ann"


@pytest.mark.parametrize("authid", ["joe", "ann", "zed", "bob"])
def test_a_wrong_signature(static, authid):
    with hello(static, authmethods=["wampcra"], authid=authid) as peer:
        extra = peer.hear(CHALLENGE)[2]
        peer.say(AUTHENTICATE, signature(extra["challenge"], "wrong"), {})
        expect_refusal(peer)


def test_a_signature_is_good_once(static):
    with hello(static, authmethods=["wampcra"], authid="joe") as peer:
        first = peer.hear(CHALLENGE)[2]["challenge"]
        peer.say(AUTHENTICATE, signature(first, "secret1"), {})
        peer.hear(WELCOME)
    with hello(static, authmethods=["wampcra"], authid="joe") as peer:
        assert peer.hear(CHALLENGE)[2]["challenge"] != first
        peer.say(AUTHENTICATE, signature(first, "secret1"), {})
        expect_refusal(peer)


def test_the_clients_order_decides(static):
    for methods, method in [
        (["wampcra", "ticket"], "wampcra"),
        (["anonymous", "wamp-scram", "ticket", "wampcra"], "ticket"),
    ]:
        with hello(static, authmethods=methods, authid="joe") as peer:
            assert peer.hear(CHALLENGE)[1] == method


@pytest.mark.parametrize("methods", [None, [], ["anonymous"], ["scram"]])
def test_no_offered_method_is_configured(static, methods):
    details = {} if methods is None else {"authmethods": methods}
    with hello(static, **details) as peer:
        _, details, reason = peer.hear(ABORT)
        assert reason == "wamp.error.no_matching_auth_method"
        assert details["message"].endswith("possible: ticket, wampcra")


def test_a_realm_that_is_not_there_is_told_to_who_is_known(static):
    with hello(static, realm="realm3", authmethods=["ticket"], authid="joe") as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        assert peer.hear(ABORT)[2] == "wamp.error.no_such_realm"


def test_a_role_that_the_realm_has_not(static):
    with hello(static, realm="realm2", authmethods=["ticket"], authid="ann") as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter3", {})
        assert peer.hear(ABORT)[2] == "wamp.error.no_such_role"


def test_the_identity_is_disclosed(static):
    with hello(static, authmethods=["ticket"], authid="joe") as caller:
        caller.hear(CHALLENGE)
        caller.say(AUTHENTICATE, "hunter2", {})
        caller.hear(WELCOME)
        with RawSocket.tcp(static.address("open")).shake_hands().join() as callee:
            callee.register("com.whoami")
            caller.say(CALL, 1, {"disclose_me": True}, "com.whoami")
            invocation = callee.hear(INVOCATION)
            assert invocation[3]["caller_authid"] == "joe"
            assert invocation[3]["caller_authrole"] == "user"
            callee.say(YIELD, invocation[1], {})
            caller.hear(RESULT)
