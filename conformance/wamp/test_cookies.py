"""Cookies: which logins are remembered, and for how long."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rig import config
from rig.plain import ClosedError
from rig.router import ROOT, Router
from rig.session import ABORT, GOODBYE, HELLO, ROLES, WELCOME
from rig.waiting import DEADLINE_S, await_true
from rig.websocket import WebSocket
from wamp.test_authentication import AUTHENTICATE, CHALLENGE, TICKETS

AUTH = {"ticket": {**TICKETS, "default-role": "user"}, "cookie": {}}
AUTH["ticket"]["principals"] = {name: {"ticket": name} for name in ("joe", "ann")}


def node(directory: Path, options: dict | None = None, **cookie: object) -> Router:
    """Start a router with cookies."""
    paths = {
        "ws": {"auth": AUTH, "cookie": cookie, "options": options or {}},
        "open": {
            "auth": {**AUTH, "anonymous": {"type": "static", "role": "user"}},
            "cookie": {"store": {"type": "memory"}},
        },
    }
    transports = [config.universal("tcp", config.tcp(), websocket=paths)]
    realms = [{"name": name, "roles": [config.role("user")]} for name in ("realm1", "realm2")]
    limits = {"login_delay_ms_max": 0}
    return Router(directory, config=config.node(realms, transports, limits=limits))


@pytest.fixture
def router(tmp_path):
    """A router that keeps cookies in a file."""
    running = node(tmp_path, store={"type": "file", "filename": "cookies.txt"})
    yield running
    running.stop()


def connect(router: Router, cookie: str = "", path: str = "/ws", **headers: str):
    """Open a WebSocket; return it and what it is told to keep."""
    peer = WebSocket.tcp(router.address("tcp"))
    more = {"Cookie": cookie} if cookie else {}
    status, told, body = peer.upgrade(path=path, **more, **headers)
    assert status == 101, body
    peer.serializer = "json"
    return peer, told.get("set-cookie")


def hello(peer, *methods: str, realm: str = "realm1", authid: str = "joe") -> None:
    """Say HELLO."""
    peer.say(HELLO, realm, {"roles": ROLES, "authmethods": list(methods), "authid": authid})


def log_in(peer, authid: str = "joe") -> None:
    """Log in by ticket."""
    hello(peer, "cookie", "ticket", authid=authid)
    peer.hear(CHALLENGE)
    peer.say(AUTHENTICATE, authid, {})
    peer.hear(WELCOME)


def who(peer, realm: str = "realm2") -> dict | None:
    """Come in by the cookie, or not."""
    hello(peer, "cookie", realm=realm)
    answer = peer.hear_any()
    return answer[2] if answer[0] == WELCOME else None


def pair(given: str) -> str:
    """Return what a browser sends of what it was told to keep."""
    return given.split(";")[0]


def test_a_login_is_remembered(router):
    peer, given = connect(router)
    assert given.startswith("cbtid=")
    assert given.endswith(";max-age=604800")
    log_in(peer)
    again, given_again = connect(router, f"other=1; {pair(given)}")
    assert given_again is None
    details = who(again)
    assert (details["authid"], details["authrole"], details["realm"]) == ("joe", "user", "realm1")
    assert (details["authmethod"], details["authprovider"]) == ("ticket", "cookie")
    file = router.directory / "cookies.txt"
    assert file.stat().st_mode & 0o777 == 0o600
    await_true("the file has it", lambda: "joe" in file.read_text())
    peer.close()
    again.close()


def test_an_invented_cookie(router):
    peer, given = connect(router, "cbtid=made-up")
    assert given is not None
    assert "made-up" not in given
    assert who(peer) is None
    # A cookie without a login is made anew.
    other, another = connect(router, pair(given))
    assert another not in (None, given)
    peer.close()
    other.close()


def test_an_earlier_cookie_is_not_bound_to_another_principal(router):
    peer, given = connect(router)
    log_in(peer, "joe")
    planted, _ = connect(router, pair(given))
    hello(planted, "ticket", authid="ann")
    planted.hear(CHALLENGE)
    planted.say(AUTHENTICATE, "ann", {})
    planted.hear(WELCOME)
    stolen, _ = connect(router, pair(given))
    assert who(stolen) is None
    for each in (peer, planted, stolen):
        each.close()


def test_a_logout_is_one_everywhere_and_for_good(tmp_path):
    router = node(tmp_path, store={"type": "file", "filename": "cookies.txt"})
    peer, given = connect(router)
    log_in(peer)
    other, _ = connect(router, pair(given))
    assert who(other)
    peer.say(GOODBYE, {}, "wamp.close.logout")
    peer.hear(GOODBYE)
    assert other.hear(ABORT)[2] == "wamp.close.logout"
    with pytest.raises((ClosedError, AssertionError)):
        other.hear(WELCOME)
    late, _ = connect(router, pair(given))
    assert who(late) is None
    late.close()
    router.stop()
    router = node(tmp_path, store={"type": "file", "filename": "cookies.txt"})
    late, _ = connect(router, pair(given))
    assert who(late) is None
    late.close()
    router.stop()


def test_a_login_outlives_a_restart_and_crossbars_file_is_read(tmp_path):
    line = {
        "cbtid": "crossbars+cookie/1",
        "status": "modified",
        "created": "2026-11-22T04:49:02.123Z",
        "modified": "2026-11-22T04:49:02.123Z",
        "deleted": None,
        "max_age": 600_000_000,
        "authid": "ann",
        "authrole": "user",
        "authmethod": "ticket",
        "authrealm": "realm1",
        "authextra": {"x": 1},
    }
    gone = {**line, "cbtid": "gone"}
    expired = {**line, "cbtid": "expired", "max_age": 1, "created": "2016-11-22T04:49:02.123Z"}
    lines = [line, gone, expired, {**gone, "status": "deleted", "deleted": line["created"]}]
    texts = [json.dumps(each) for each in lines]
    file = tmp_path / "cookies.txt"
    file.write_text("\n".join([*texts, "no json", ""]))
    router = node(tmp_path, store={"type": "file", "filename": "cookies.txt"})
    peer, given = connect(router)
    log_in(peer)
    await_true("the file has it", lambda: "joe" in file.read_text())
    peer.close()
    router.stop()
    router = node(tmp_path, store={"type": "file", "filename": "cookies.txt"})
    for cookie, authid in [
        (pair(given), "joe"),
        ("cbtid=crossbars+cookie/1", "ann"),
        ("cbtid=gone", None),
        ("cbtid=expired", None),
    ]:
        peer, _ = connect(router, cookie)
        details = who(peer)
        assert (details and details["authid"]) == authid
        peer.close()
    router.stop()
    assert len(file.read_text().splitlines()) == 2


def test_attributes_and_age(tmp_path):
    router = node(
        tmp_path,
        name="shop",
        length=40,
        max_age=1,
        secure=True,
        http_strict=True,
        same_site="Strict",
        store={"type": "memory"},
    )
    peer, given = connect(router)
    text, *attributes = given.split(";")
    assert attributes == ["max-age=1", "Secure", "HttpOnly", "SameSite=Strict"]
    assert text.startswith("shop=")
    assert len(text) == len("shop=") + 40
    log_in(peer)

    def is_over() -> bool:
        late, _ = connect(router, text)
        found = who(late)
        late.close()
        return found is None

    await_true("the cookie is over", is_over)
    peer.close()
    router.stop()


def test_a_page_of_the_same_site_brings_its_cookie(router):
    peer, given = connect(router)
    log_in(peer)
    # The listener is at the loopback, where pages of others may not even connect.
    own, _ = connect(router, pair(given), Origin="http://localhost:1")
    assert who(own)
    own.close()
    peer.close()


def test_a_page_of_another_site_brings_no_cookie(tmp_path):
    store = {"type": "memory"}
    router = node(tmp_path, store=store, options={"allowed_origins": ["*"]})
    peer, given = connect(router, Origin="http://localhost:1")
    log_in(peer)
    other, given_other = connect(router, pair(given), Origin="http://evil.example")
    assert given_other is None
    assert who(other) is None
    peer.close()
    other.close()
    router.stop()


def test_anonymous_sessions_are_not_remembered(router):
    peer, given = connect(router, path="/open")
    hello(peer, "cookie", "anonymous")
    peer.hear(WELCOME)
    again, given_again = connect(router, pair(given), path="/open")
    assert given_again is not None
    peer.close()
    again.close()


def test_autobahn_is_known_again_until_it_logs_out(router):
    host, port = router.address("tcp")
    command = [sys.executable, "-m", "puppets.cookie", f"ws://{host}:{port}/ws", "joe", "joe"]
    done = subprocess.run(
        command, cwd=ROOT / "conformance", capture_output=True, text=True, timeout=DEADLINE_S
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    joe = {"authid": "joe", "authrole": "user", "authmethod": "ticket"}
    assert told == [
        {**joe, "authprovider": "static"},
        {**joe, "authprovider": "cookie"},
        {**joe, "authprovider": "cookie"},
        {"refused": "wamp.error.no_matching_auth_method"},
    ], done.stderr
