"""Logins that fail: their operator finds in one line who, where, how and why, and no secret."""

from __future__ import annotations

import pytest
from rig.session import ABORT
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, closed, hello

AUTH = {
    "ticket": {
        "type": "static",
        "principals": {
            "joe": {"ticket": "hunter2", "role": "user"},
            "eve": {"ticket": "hunter2", "role": "none"},
        },
    }
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A router that asks for proof."""
    from rig.router import Router

    configuration = closed(AUTH, limits={"login_delay_ms_max": 0})
    running = Router(tmp_path_factory.mktemp("refused"), config=configuration)
    yield running
    running.stop()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"authid": "joe"}, ("joe", "realm1", "ticket", "wrong_ticket")),
        ({"authid": "zed"}, ("zed", "realm1", "ticket", "unknown_principal")),
        ({"authid": "joe", "realm": "nowhere"}, ("joe", "nowhere", "ticket", "no_such_realm")),
        ({"authid": "eve"}, ("eve", "realm1", "ticket", "no_such_role")),
        ({"authid": "joe", "authmethods": ["jwt"]}, ("joe", "realm1", None, "no_method")),
        ({"authid": "joe\nFORGED"}, ("joe\\nFORGED", "realm1", "ticket", "unknown_principal")),
    ],
)
def test_the_log_says_who_where_how_and_why(guarded, said, expected):
    since = len(guarded.log)
    cause = expected[3]
    with hello(guarded, **{"authmethods": ["ticket"], **said}) as peer:
        if cause != "no_method":
            peer.hear(CHALLENGE)
            is_right = cause in ("no_such_realm", "no_such_role")
            peer.say(AUTHENTICATE, "hunter2" if is_right else "guessed-secret", {})
        peer.hear(ABORT)
    line = guarded.await_fault(since, "session refused")
    names = ("authid", "realm", "method", "cause")
    assert tuple(line.fields.get(name) for name in names) == expected
    assert "hunter2" not in str(guarded.log)
    assert "guessed-secret" not in str(guarded.log)
