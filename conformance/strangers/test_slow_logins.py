"""People who type a password or a code: their login waits for them, within bounds."""

from __future__ import annotations

import pytest
from rig.plain import ClosedError
from rig.rawsocket import RawSocket
from rig.session import ABORT, WELCOME
from rig.waiting import await_true
from rig.websocket import WebSocket
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, closed, hello

AUTH = {
    "ticket": {
        "type": "static",
        "principals": {"joe": {"ticket": "secret", "role": "user"}},
    }
}
TIMEOUT = "crosstie.error.challenge_timeout"


def node(start_router, **limits: int):
    """Start a router whose handshakes have a second of their own."""
    return start_router(closed(AUTH, limits={"handshake_timeout_ms": 1_000, **limits}))


def asked(router, authid: str = "joe") -> RawSocket:
    """Begin a login; its client is sent CHALLENGE."""
    peer = hello(router, authmethods=["ticket"], authid=authid)
    peer.hear(CHALLENGE)
    return peer


def test_a_person_has_longer_than_a_handshake_for_a_password(start_router):
    router = node(start_router)
    with asked(router) as peer:
        # One that says nothing at all is gone after the handshake's own time, and came later.
        with (
            RawSocket.tcp(router.address("tcp")).shake_hands() as silent,
            pytest.raises(ClosedError),
        ):
            silent.hear_any()
        peer.say(AUTHENTICATE, "secret", {})
        peer.hear(WELCOME)


@pytest.mark.parametrize("framing", ["rawsocket", "websocket"])
def test_an_unanswered_challenge_is_aborted(start_router, framing):
    router = node(start_router, challenge_timeout_ms=1_000)
    if framing == "rawsocket":
        peer = asked(router)
    else:
        peer = WebSocket.tcp(router.address("tcp")).open()
        peer.say(1, "realm1", {"roles": {"caller": {}}, "authmethods": ["ticket"], "authid": "joe"})
        peer.hear(CHALLENGE)
    with peer:
        since = len(router.log)
        _, details, reason = peer.hear(ABORT)
        assert reason == TIMEOUT
        assert details["message"] == "no AUTHENTICATE came within 1 s of CHALLENGE"
        line = router.await_fault(since, "session refused")
        names = ("authid", "realm", "method", "cause")
        assert [line.fields[name] for name in names] == [
            "joe",
            "realm1",
            "ticket",
            "challenge_timeout",
        ]
        assert router.metric("authentications_refused_total", cause="challenge_timeout") == 1
    await_true("its place is free", lambda: router.metric("handshakes_pending") == 0)


def test_those_who_never_answer_do_not_keep_others_out_for_longer(start_router):
    """While half of the places are taken clients have no more than a handshake's own time."""
    router = node(start_router, handshakes_pending_max=2)
    with asked(router) as one, asked(router) as two:
        with hello(router, authmethods=["ticket"], authid="joe") as late:
            assert late.hear(ABORT)[2] == "crosstie.error.handshakes_pending_max"
        assert one.hear(ABORT)[2] == TIMEOUT
        assert two.hear(ABORT)[2] == TIMEOUT
        await_true("there is room", lambda: router.metric("handshakes_pending") == 0)
        asked(router).close()
