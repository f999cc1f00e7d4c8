"""Users who are thrown out stay out: what is remembered of their logins ends with it."""

from __future__ import annotations

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import CALL, GOODBYE, HELLO, RESULT, ROLES, WELCOME
from rig.waiting import await_true
from wamp.test_authentication import AUTHENTICATE, CHALLENGE
from wamp.test_cookies import connect, log_in, pair, who

LOGOUT = "wamp.close.logout"
PRINCIPALS = {"joe": "joe", "ann": "ann"}


def node(directory, **auth: object) -> Router:
    """Start a router with principals in a file, cookies, and sessions that may be resumed."""
    ticket = {"type": "static", "principals_file": "tickets.json", "default-role": "user"}
    guard = {"ticket": ticket, "cookie": {}, **auth}
    cookie = {"store": {"type": "file", "filename": "cookies.txt"}}
    paths = {"ws": {"auth": guard, "cookie": cookie}}
    transports = [
        config.universal("tcp", config.tcp(), websocket=paths, rawsocket={"auth": guard}),
    ]
    realm = {"name": "realm1", "roles": [config.role("user")], "resumption": {"window_ms": 60_000}}
    limits = {"login_delay_ms_max": 0}
    return Router(directory, config=config.node([realm], transports, limits=limits))


def write(directory, **tickets: str) -> None:
    """Write the principals' file."""
    entries = ", ".join(f'"{name}": {{"ticket": "{ticket}"}}' for name, ticket in tickets.items())
    (directory / "tickets.json").write_text("{" + entries + "}")


@pytest.fixture
def router(tmp_path):
    write(tmp_path, **PRINCIPALS)
    running = node(tmp_path)
    yield running
    running.stop()


def log_in_raw(router, authid: str, **details: object) -> RawSocket:
    """Log in without a cookie."""
    peer = RawSocket.tcp(router.address("tcp")).shake_hands("json")
    peer.say(
        HELLO, "realm1", {"roles": ROLES, "authmethods": ["ticket"], "authid": authid, **details}
    )
    peer.hear(CHALLENGE)
    peer.say(AUTHENTICATE, authid, {})
    peer.id = peer.hear(WELCOME)[1]
    return peer


def call(peer: RawSocket, number: int, procedure: str, *args: object, **kwargs: object) -> object:
    """Call a meta procedure."""
    peer.say(CALL, number, {}, procedure, args, kwargs)
    return peer.hear(RESULT)[3][0]


@pytest.mark.parametrize("kill", ["kill_by_authid", "kill", "kill_by_authrole", "kill_all"])
def test_a_user_who_was_logged_out_has_to_log_in_again(router, kill):
    peer, given = connect(router)
    log_in(peer)
    elsewhere, other_given = connect(router)
    log_in(elsewhere)
    elsewhere.close()
    admin = log_in_raw(router, "ann")
    if kill == "kill":
        whom = [call(admin, 1, "wamp.session.list")]
        whom = [next(number for number in whom[0] if number != admin.id)]
    else:
        whom = {"kill_by_authid": ["joe"], "kill_by_authrole": ["user"]}.get(kill, [])
    call(admin, 2, f"wamp.session.{kill}", *whom, reason=LOGOUT)
    assert peer.hear(GOODBYE)[2] == LOGOUT
    for cookie in (given, other_given):
        again, _ = connect(router, pair(cookie))
        assert who(again) is None
        again.close()
    peer.close()
    admin.close()


def test_a_user_who_was_cut_off_for_another_reason_is_known_again(router):
    peer, given = connect(router)
    log_in(peer)
    admin = log_in_raw(router, "ann")
    call(admin, 1, "wamp.session.kill_by_authid", "joe")
    peer.hear(GOODBYE)
    again, _ = connect(router, pair(given))
    assert who(again)["authid"] == "joe"
    for each in (peer, again, admin):
        each.close()


REVOKED = [{"ann": "ann"}, {"joe": "changed", "ann": "ann"}]


@pytest.mark.parametrize("tickets", REVOKED, ids=["removed", "changed"])
def test_a_user_who_was_taken_out_of_the_file_is_not_known_again(router, tmp_path, tickets):
    cookies = {}
    for name in PRINCIPALS:
        peer, given = connect(router)
        log_in(peer, name)
        cookies[name] = pair(given)
        peer.close()
    admin = log_in_raw(router, "ann")
    log_in_raw(router, "joe", resumable=True).close()
    await_true("the session waits", lambda: call_count(admin) == 2)
    since = len(router.log)
    write(tmp_path, **tickets)
    router.await_log(lambda line: "were reloaded" in line.text, since)
    await_true("the session that waits is over", lambda: call_count(admin) == 1)
    for name, cookie in cookies.items():
        again, _ = connect(router, cookie)
        assert (who(again) is None) == (name == "joe")
        again.close()
    admin.close()


def call_count(peer: RawSocket) -> int:
    """Return how many sessions there are."""
    peer.counted = getattr(peer, "counted", 0) + 1
    return call(peer, peer.counted, "wamp.session.count")


@pytest.mark.parametrize("tickets", REVOKED, ids=["removed", "changed"])
def test_nor_is_one_who_was_taken_out_while_the_node_was_down(tmp_path, tickets):
    write(tmp_path, **PRINCIPALS)
    router = node(tmp_path)
    peer, given = connect(router)
    log_in(peer)
    file = tmp_path / "cookies.txt"
    await_true("the file has it", lambda: "joe" in file.read_text())
    peer.close()
    router.stop()
    write(tmp_path, **tickets)
    router = node(tmp_path)
    again, _ = connect(router, pair(given))
    assert who(again) is None
    again.close()
    router.stop()


@pytest.mark.parametrize("ends", [True, False])
def test_the_operator_says_whether_live_sessions_end_too(tmp_path, ends):
    write(tmp_path, **PRINCIPALS)
    router = node(tmp_path, end_revoked_sessions=ends)
    peers = {name: log_in_raw(router, name) for name in PRINCIPALS}
    since = len(router.log)
    write(tmp_path, ann="ann")
    router.await_log(lambda line: "were reloaded" in line.text, since)
    if ends:
        assert peers["joe"].hear(GOODBYE)[2] == LOGOUT
    else:
        assert call_count(peers["joe"]) == 2
    assert call_count(peers["ann"]) == (1 if ends else 2)
    for peer in peers.values():
        peer.close()
    router.stop()
