"""Sessions whose realm or role ends while they join: when challenged, and when asked about."""

from __future__ import annotations

import pytest
from node.test_node import answer, start_node  # noqa: F401
from rig import config
from rig.rawsocket import RawSocket
from rig.session import ABORT, HELLO, INVOCATION, ROLES, WELCOME, YIELD

AUTHENTICATE, CHALLENGE = 5, 4
PROCEDURE = "com.example.authenticate"
OF = "crossbar.worker.worker1."


@pytest.fixture
def started(start_node):  # noqa: F811
    """A node with a realm to join, and another in which a procedure says who may."""
    static = {"type": "static", "principals": {"joe": {"ticket": "x", "role": "user"}}}
    asked = {"type": "dynamic", "authenticator": PROCEDURE, "authenticator-realm": "auth"}
    # By their places the roles are called role1, role2.
    realms = [
        {"name": "realm1", "roles": [config.role("user"), config.role("other")]},
        {"name": "auth", "roles": [config.role("anonymous")]},
    ]
    transports = [
        {"type": "rawsocket", "endpoint": config.unix(f"{name}.sock"), **more}
        for name, more in {
            "static": {"auth": {"ticket": static}},
            "asked": {"auth": {"ticket": asked}},
            "open": {},
        }.items()
    ]
    started = start_node(config.node(realms, transports))
    started.says("^Ready")
    return started


def connect(started, name: str) -> RawSocket:
    """Connect to one of its transports."""
    return RawSocket.unix(started.directory / f"{name}.sock").shake_hands()


def challenged(started, name: str) -> RawSocket:
    """Say HELLO, and be challenged."""
    peer = connect(started, name)
    peer.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"})
    peer.hear(CHALLENGE)
    return peer


def is_refused(peer: RawSocket, reason: str | None) -> None:
    """Wait for the ABORT with that reason, or for the end without a word."""
    if reason is None:
        peer.expect_end()
    else:
        assert peer.hear(ABORT)[2] == reason


ENDS = [
    (("stop_router_realm_role", "realm1", "role1"), "wamp.error.no_such_role"),
    # It may be there again soon: the client is to come back.
    (("stop_router_realm", "realm1"), None),
]


@pytest.mark.parametrize(("end", "reason"), ENDS)
def test_ends_during_a_challenge(started, end, reason):
    with challenged(started, "static") as peer:
        procedure, *arguments = end
        answer(started, OF + procedure, *arguments)
        peer.say(AUTHENTICATE, "x", {})
        is_refused(peer, reason)


@pytest.mark.parametrize(("end", "reason"), ENDS)
def test_ends_while_an_authenticator_is_asked(started, end, reason):
    with connect(started, "open").join("auth") as authenticator:
        authenticator.register(PROCEDURE)
        with challenged(started, "asked") as peer:
            peer.say(AUTHENTICATE, "x", {})
            invocation = authenticator.hear(INVOCATION)
            procedure, *arguments = end
            answer(started, OF + procedure, *arguments)
            authenticator.say(YIELD, invocation[1], {}, ["user"])
            is_refused(peer, reason)


def test_an_authenticators_realm_ends_while_a_client_waits(started):
    with connect(started, "open").join("auth") as authenticator:
        authenticator.register(PROCEDURE)
        with challenged(started, "asked") as peer:
            peer.say(AUTHENTICATE, "x", {})
            authenticator.hear(INVOCATION)
            answer(started, OF + "stop_router_realm", "auth")
            peer.hear(ABORT)
            # The router serves on, and others come in.
            with challenged(started, "static") as other:
                other.say(AUTHENTICATE, "x", {})
                other.hear(WELCOME)
