"""Procedures that decide about identities: their arguments, answers and failures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    GOODBYE,
    HELLO,
    INTERRUPT,
    INVOCATION,
    REGISTER,
    REGISTERED,
    ROLES,
    WELCOME,
    YIELD,
)
from rig.waiting import await_true
from wamp.test_authentication import (
    AUTHENTICATE,
    CHALLENGE,
    NOT_AUTHORIZED,
    NOT_VALID,
    derived,
    hello,
    signature,
)

FAILED = "wamp.error.authentication_failed"
PROCEDURE = "com.example.authenticate"


def dynamic(**more: object) -> dict:
    """Return a method for which a procedure is asked."""
    return {"type": "dynamic", "authenticator": PROCEDURE, **more}


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Iterator[Router]:
    """A router that asks for every method, in a realm that clients cannot join by themselves."""
    elsewhere = {"authenticator-realm": "auth"}
    ways = {
        "anonymous": {"anonymous": dynamic(**elsewhere)},
        "ticket": {"ticket": dynamic(**elsewhere)},
        "wampcra": {"wampcra": dynamic(**elsewhere, **{"default-role": "user"})},
        "here": {"ticket": dynamic()},
        "quick": {"ticket": dynamic(authenticator_timeout_ms=200)},
        "modest": {"ticket": dynamic(**elsewhere, **{"authenticator-role": "modest"})},
    }
    transports = [
        {"type": "rawsocket", "id": name, "endpoint": config.tcp(), "auth": auth}
        for name, auth in ways.items()
    ]
    backend = {"auth": config.static("backend")}
    transports += [
        config.universal("tcp", config.tcp(), rawsocket=backend, websocket={"ws": backend})
    ]
    roles = [config.role("user"), config.role("backend")]
    modest = config.role("modest", config.permission("com.other", call=True))
    realms = [
        {"name": "realm1", "roles": roles},
        {"name": "realm2", "roles": roles},
        {"name": "auth", "roles": [config.role("backend"), modest]},
    ]
    running = Router(
        tmp_path_factory.mktemp("dynamic"),
        config=config.node(realms, transports, limits={"login_delay_ms_max": 0}),
    )
    yield running
    running.stop()


@pytest.fixture
def authenticator(node) -> Iterator[RawSocket]:
    """A session that has the procedure."""
    with RawSocket.tcp(node.address("tcp")).shake_hands().join("auth") as session:
        session.register(PROCEDURE)
        yield session


def ask(node: Router, authenticator: RawSocket, ticket: str = "hunter2") -> tuple:
    """Come by ticket; return the client and the invocation of the authenticator."""
    peer = hello(node, "ticket", authmethods=["ticket"], authid="joe", authextra={"a": 1})
    assert peer.hear(CHALLENGE) == [CHALLENGE, "ticket", {}]
    peer.say(AUTHENTICATE, ticket, {})
    return peer, authenticator.hear(INVOCATION)


def test_arguments_of_an_authenticator(node, authenticator):
    peer, invocation = ask(node, authenticator)
    with peer:
        assert invocation[3]["caller_authrole"] == "trusted"
        realm, authid, details = invocation[4]
        assert (realm, authid) == ("realm1", "joe")
        transport = details.pop("transport")
        session = details.pop("session")
        assert details == {
            "authmethod": "ticket",
            "authextra": {"a": 1},
            "authid": "joe",
            "authrole": None,
            "ticket": "hunter2",
        }
        host, port = peer.socket.getsockname()
        assert transport["peer"] == f"tcp4:{host}:{port}"
        assert transport["channel_framing"] == "rawsocket"
        assert transport["channel_serializer"] == "json"
        assert transport["is_secure"] is False
        authenticator.say(YIELD, invocation[1], {}, ["user"])
        welcome = peer.hear(WELCOME)
        assert welcome[1] == session
        assert welcome[2]["authprovider"] == "dynamic"
        assert "a" not in welcome[2]["authextra"]


def test_values_that_an_authenticator_assigns(node, authenticator):
    peer, invocation = ask(node, authenticator)
    with peer:
        named = {"role": "user", "realm": "realm2", "authid": "joseph", "extra": {"x": [1, None]}}
        authenticator.say(YIELD, invocation[1], {}, [named])
        details = peer.hear(WELCOME)[2]
        said = {key: details[key] for key in ("realm", "authid", "authrole", "authmethod")}
        assert said == {
            "realm": "realm2",
            "authid": "joseph",
            "authrole": "user",
            "authmethod": "ticket",
        }
        assert details["authextra"]["x"] == [1, None]
        assert details["authextra"]["x_cb_node"]


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_a_client_that_leaves_its_realm_to_the_authenticator(node, authenticator, serializer):
    with RawSocket.tcp(node.address("anonymous")).shake_hands(serializer) as peer:
        peer.say(HELLO, None, {"roles": ROLES})
        invocation = authenticator.hear(INVOCATION)
        assert invocation[4][0] is None
        named = {"role": "user", "realm": "realm2"}
        authenticator.say(YIELD, invocation[1], {}, [named])
        assert peer.hear(WELCOME)[2]["realm"] == "realm2"
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)
        peer.say(HELLO, None, {"roles": ROLES})
        invocation = authenticator.hear(INVOCATION)
        authenticator.say(YIELD, invocation[1], {}, ["user"])
        text = "no realm was asked for, and none assigned"
        assert peer.hear(ABORT) == [ABORT, {"message": text}, "wamp.error.no_such_realm"]


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        ([None], FAILED, 'got invalid return type "null" from dynamic authenticator'),
        ([], FAILED, 'got invalid return type "null" from dynamic authenticator'),
        ([["user"]], FAILED, 'got invalid return type "list" from dynamic authenticator'),
        ([{"role": 5}], FAILED, 'got integer for "role" from dynamic authenticator, expected text'),
        ([{}], "wamp.error.no_such_role", "no authrole assigned"),
        (["nobody"], "wamp.error.no_such_role", "the realm has no role nobody"),
        (
            [{"role": "user", "realm": "realm9"}],
            "wamp.error.no_such_realm",
            'no realm "realm9" exists on this router',
        ),
    ],
)
def test_a_malformed_answer_admits_no_client(node, authenticator, answer, reason, text):
    peer, invocation = ask(node, authenticator)
    with peer:
        authenticator.say(YIELD, invocation[1], {}, answer)
        assert peer.hear(ABORT) == [ABORT, {"message": text}, reason]


def test_an_error_is_passed_on(node, authenticator):
    peer, invocation = ask(node, authenticator)
    with peer:
        authenticator.say(ERROR, INVOCATION, invocation[1], {}, "com.example.denied", ["nope"])
        assert peer.hear(ABORT) == [ABORT, {"message": "nope"}, "com.example.denied"]


def test_an_answer_that_is_too_long(node, authenticator):
    peer, invocation = ask(node, authenticator)
    with peer:
        much = {"role": "user", "extra": {"x": "y" * 100_000}}
        authenticator.say(YIELD, invocation[1], {}, [much])
        assert peer.hear(ABORT)[2] == "wamp.error.payload_size_exceeded"


def test_no_authenticator(node):
    def reason() -> str:
        with hello(node, "ticket", authmethods=["ticket"], authid="joe") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "hunter2", {})
            return peer.hear(ABORT)[2]

    # The authenticator of the test before may be leaving: its call is canceled.
    await_true("there is no authenticator", lambda: reason() == "wamp.error.no_such_procedure")


def test_an_authenticator_role_without_permission(node, authenticator):
    with hello(node, "modest", authmethods=["ticket"], authid="joe") as peer:
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        assert peer.hear(ABORT)[2] == NOT_AUTHORIZED


def test_the_realm_that_is_asked_for_is_where_is_asked(node):
    with RawSocket.tcp(node.address("tcp")).shake_hands().join("realm2") as session:
        session.register(PROCEDURE)
        with hello(node, "here", realm="realm2", authmethods=["ticket"], authid="joe") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "hunter2", {})
            invocation = session.hear(INVOCATION)
            session.say(YIELD, invocation[1], {}, ["user"])
            peer.hear(WELCOME)
        with hello(node, "here", realm="realm9", authmethods=["ticket"], authid="joe") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "hunter2", {})
            assert peer.hear(ABORT)[2] == "wamp.error.no_such_realm"


def test_a_secret(node, authenticator):
    with hello(node, "wampcra", authmethods=["wampcra"], authid="joe") as peer:
        invocation = authenticator.hear(INVOCATION)
        assert invocation[4][2]["authmethod"] == "wampcra"
        authenticator.say(YIELD, invocation[1], {}, [{"secret": "secret1"}])
        extra = peer.hear(CHALLENGE)[2]
        peer.say(AUTHENTICATE, signature(extra["challenge"], "secret1"), {})
        details = peer.hear(WELCOME)[2]
        assert (details["authrole"], details["authprovider"]) == ("user", "dynamic")


@pytest.mark.parametrize(
    ("key", "is_right"),
    [
        (lambda extra: derived("secret2", extra), True),
        (lambda extra: "secret2", True),
        (lambda extra: derived("wrong", extra), False),
    ],
)
def test_a_salted_secret(node, authenticator, key, is_right):
    with hello(node, "wampcra", authmethods=["wampcra"], authid="joe") as peer:
        invocation = authenticator.hear(INVOCATION)
        known = {"secret": "secret2", "role": "user", "salt": "salt123", "iterations": 10_000}
        authenticator.say(YIELD, invocation[1], {}, [known])
        extra = peer.hear(CHALLENGE)[2]
        assert (extra["salt"], extra["iterations"], extra["keylen"]) == ("salt123", 10_000, 32)
        peer.say(AUTHENTICATE, signature(extra["challenge"], key(extra)), {})
        if is_right:
            peer.hear(WELCOME)
        else:
            assert peer.hear(ABORT) == [ABORT, {"message": NOT_VALID}, NOT_AUTHORIZED]


def test_an_anonymous_session(node, authenticator):
    with hello(node, "anonymous", authid="joe") as peer:
        invocation = authenticator.hear(INVOCATION)
        _, authid, details = invocation[4]
        assert details["authid"] == authid != "joe"
        authenticator.say(YIELD, invocation[1], {}, ["user"])
        welcome = peer.hear(WELCOME)[2]
        assert (welcome["authid"], welcome["authmethod"]) == (authid, "anonymous")


def test_an_authenticator_that_hangs(node):
    """It gets INTERRUPT, its client a refusal, and its later answer is ignored."""
    with RawSocket.tcp(node.address("tcp")).shake_hands().join("realm1") as session:
        session.say(REGISTER, 1, {}, PROCEDURE)
        session.hear(REGISTERED)
        with hello(node, "quick", authmethods=["ticket"], authid="joe") as peer:
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "hunter2", {})
            invocation = session.hear(INVOCATION)
            text = "the authenticator did not answer within 200 ms"
            assert peer.hear(ABORT) == [ABORT, {"message": text}, FAILED]
            session.say(YIELD, invocation[1], {}, ["user"])
            session.round_trip()
            # The client may try again, and is let in now.
            peer.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"})
            peer.hear(CHALLENGE)
            peer.say(AUTHENTICATE, "hunter2", {})
            invocation = session.hear(INVOCATION)
            session.say(YIELD, invocation[1], {}, ["user"])
            peer.hear(WELCOME)


def test_an_authenticator_that_leaves(node):
    session = RawSocket.tcp(node.address("tcp")).shake_hands().join("auth")
    session.register(PROCEDURE)
    peer, _ = ask(node, session)
    with peer:
        session.close()
        assert peer.hear(ABORT)[2] == "wamp.error.canceled"


def test_a_client_that_leaves_while_it_is_asked_about(node):
    """Its authenticator is told to stop, and nothing of it stays."""
    with RawSocket.tcp(node.address("tcp")).shake_hands() as session:
        features = {"callee": {"features": {"call_canceling": True}}}
        session.say(HELLO, "auth", {"roles": features})
        session.hear(WELCOME)
        session.say(REGISTER, 1, {}, PROCEDURE)
        session.hear(REGISTERED)
        peer, invocation = ask(node, session)
        peer.close()
        assert session.hear(INTERRUPT)[1] == invocation[1]
        session.say(YIELD, invocation[1], {}, ["user"])
        await_true("it is gone", lambda: node.metric("handshakes_pending") == 0)


def test_messages_before_welcome_wait_for_it(node, authenticator):
    """The judged session is not read; a forbidden message ends the session then."""
    peer, invocation = ask(node, authenticator)
    with peer:
        peer.say(CALL, 1, {}, "com.example.nothing")
        authenticator.say(YIELD, invocation[1], {}, ["user"])
        peer.hear(WELCOME)
        assert peer.hear(ERROR)[4] == "wamp.error.no_such_procedure"
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)


def test_many_at_a_time(node, authenticator):
    """Answers that come in another order reach whom they are about."""
    peers = {}
    for number in range(50):
        peer = hello(node, "ticket", authmethods=["ticket"], authid=f"joe{number}")
        peer.hear(CHALLENGE)
        peer.say(AUTHENTICATE, "hunter2", {})
        peers[f"joe{number}"] = peer
    invocations = [authenticator.hear(INVOCATION) for _ in peers]
    for invocation in reversed(invocations):
        authenticator.say(YIELD, invocation[1], {}, ["user"])
    for authid, peer in peers.items():
        assert peer.hear(WELCOME)[2]["authid"] == authid
        peer.close()
