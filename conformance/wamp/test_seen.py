"""WAMP clients can be seen: in the log, in the metrics, on the status page, by management."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Line, Router, binary
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    GOODBYE,
    HELLO,
    INVOCATION,
    PUBLISH,
    ROLES,
    WELCOME,
    YIELD,
)
from rig.waiting import await_true
from rig.websocket import CLOSE, WebSocket

STALL = {"queue_bytes_max": 65_536, "queue_stall_timeout_ms": 3_600_000}


def line_of(router: Router, text: str, session: int) -> Line:
    """Return the log's line of that session."""
    return router.await_log(
        lambda line: line.text.startswith(text) and line.fields.get("session") == session
    )


def ends(router: Router, reason: str) -> float:
    """Return how many sessions have ended for that reason."""
    return router.metric("session_ends_total", reason=reason)


def test_joins_and_leaves_are_logged(start_router):
    router = start_router(config.plain())
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.join()
        joined = line_of(router, "session joined", peer.id)
        assert joined.level == "INFO"
        assert joined.fields["peer"] == f"tcp:{peer.name}"
        assert (joined.fields["role"], joined.fields["realm"]) == ("anonymous", "realm1")
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)
        left = line_of(router, "session left", peer.id)
        assert left.fields["reason"] == "goodbye"
        assert left.fields["authid"] == joined.fields["authid"]
    assert ends(router, "goodbye") == 1


def test_why_a_session_ended(start_router):
    router = start_router(config.plain())
    address = router.address("tcp")

    def check(peer, reason: str) -> None:
        assert line_of(router, "session left", peer.id).fields["reason"] == reason
        assert ends(router, reason) == 1

    with RawSocket.tcp(address).shake_hands().join() as peer:
        peer.say(50, 1, {})
        peer.expect_abort()
        check(peer, "violation")
    with RawSocket.tcp(address).shake_hands().join() as peer:
        peer.say(ABORT, {}, "com.enough")
        check(peer, "aborted")
    with RawSocket.tcp(address).shake_hands().join() as peer:
        peer.finish()
        check(peer, "closed")
    peer = RawSocket.tcp(address).shake_hands().join()
    peer.reset()
    check(peer, "lost")


def test_a_silent_and_a_stalled_peer(start_router):
    silence = {"options": {"auto_ping_interval": 1000, "auto_ping_timeout": 1000}}
    transport = config.universal("tcp", config.tcp(), rawsocket={}, websocket={"ws": silence})
    limits = {"queue_bytes_max": 65_536, "queue_stall_timeout_ms": 500}
    router = start_router(config.plain(transport, limits=limits))
    address = router.address("tcp")
    with WebSocket.tcp(address).open().join() as dead:
        dead.receive_all()
        assert line_of(router, "session left", dead.id).fields["reason"] == "silent"
    with (
        RawSocket.tcp(address, receive_buffer=4096).shake_hands().join() as stuck,
        RawSocket.tcp(address).shake_hands().join() as publisher,
    ):
        stuck.subscribe("com.flood")
        await_true("it is closed", lambda: flood(router, publisher))
        router.await_fault(0, "queued output")
        assert line_of(router, "session left", stuck.id).fields["reason"] == "stalled"
        # Whether the system's patience or the router's was over first, it is counted once.
        assert router.metric("connections_closed_for_stall_total") == 1


def flood(router: Router, publisher: RawSocket) -> bool:
    """Publish some, unless the subscriber was closed for reading nothing."""
    for _ in range(64):
        publisher.publish("com.flood", "x" * 16_000)
    return ends(router, "stalled") == 1


@pytest.mark.parametrize("kind", [RawSocket, WebSocket])
def test_a_caller_whose_results_do_not_fit_is_told(start_router, kind):
    """Progressive results pile up; when one finds no room, the caller hears why it goes."""
    router = start_router(config.plain(limits=STALL))
    progress = {"features": {"progressive_call_results": True}}
    roles = {"caller": progress, "callee": progress}
    with (
        kind.tcp(router.address("tcp"), receive_buffer=4096) as caller,
        RawSocket.tcp(router.address("tcp")).shake_hands().join(roles=roles) as callee,
    ):
        caller.shake_hands() if kind is RawSocket else caller.open()
        caller.join(roles=roles)
        callee.register("com.stream")
        caller.ask(CALL, {"receive_progress": True}, "com.stream")
        number = callee.hear(INVOCATION)[1]

        def is_full() -> bool:
            for _ in range(64):
                callee.say(YIELD, number, {"progress": True}, ["x" * 16_000])
            return ends(router, "queue_full") == 1

        await_true("the caller's queue is full", is_full)
        line = line_of(router, "session closed", caller.id)
        assert (line.level, line.fields["reason"]) == ("WARN", "queue_bytes_max")
        # It reads again: what was queued, and then why there is no more.
        while (message := json.loads(caller.receive_octets()))[0] != ABORT:
            assert message[0] == 50
        assert message[2] == "crosstie.error.queue_bytes_max"
        if kind is WebSocket:
            assert caller.receive_frame()[0] == CLOSE
        caller.expect_end()


def test_denied_requests_are_logged(start_router):
    reader = config.role("anonymous", config.permission("com.open.", subscribe=True))
    realm = {"name": "realm1", "roles": [reader]}
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        peer.ask(CALL, {}, "com.secret")
        assert peer.hear(ERROR)[4] == "wamp.error.not_authorized"
        # Only the log has this one.
        peer.ask(PUBLISH, {}, "com.other\u001b[31m")
        for action, uri in (("call", "com.secret"), ("publish", "com.other")):
            line = router.await_log(
                lambda line, action=action: (
                    line.text == "request denied" and line.fields["action"] == action
                )
            )
            assert str(line.fields["uri"]).startswith(uri)
            assert "\u001b" not in str(line.fields["uri"])
            assert line.fields["role"] == "anonymous"
        await_true("both are counted", lambda: router.metric("requests_denied_total") == 2)


def test_a_hostile_peer_does_not_fill_the_log(start_router):
    router = start_router(config.plain())
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        for _ in range(500):
            peer.join()
            peer.say(GOODBYE, {}, "wamp.close.normal")
            peer.hear(GOODBYE)
    assert router.metric("sessions_left_total") == 500
    told = [line for line in router.log if line.text.startswith("session ")]
    assert 0 < len(told) < 400


def crosstie(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the program."""
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def embedded(tmp_path):
    """Start a router on its embedded default, which has a management realm."""
    router = Router(tmp_path, "--listen", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
    yield router
    router.stop()


def place(router: Router) -> tuple[str, int]:
    """Return where it listens."""
    for line in router.log:
        for word in line.text.replace(",", " ").split():
            if word.startswith("ws://"):
                host, port = word.removeprefix("ws://").split("/")[0].split(":")
                return host, int(port)
    raise LookupError("no WebSocket")


def test_sessions_are_listed_and_closed(embedded, tmp_path):
    with (
        RawSocket.tcp(place(embedded)).shake_hands("cbor").join() as one,
        WebSocket.tcp(place(embedded)).open().join() as two,
    ):
        one.subscribe("com.a")
        one.register("com.b")
        done = crosstie("sessions", "--json", cwd=tmp_path)
        listed = {row["session"]: row for row in json.loads(done.stdout)}
        assert set(listed) == {one.id, two.id}
        row = listed[one.id]
        assert (row["realm"], row["authrole"]) == ("realm1", "anonymous")
        assert (row["transport"], row["serializer"]) == ("rawsocket", "cbor")
        assert (row["subscriptions"], row["registrations"], row["calls"]) == (1, 1, 0)
        assert row["peer"] == f"tcp:{one.name}"
        table = crosstie("sessions", "list", cwd=tmp_path).stdout
        assert str(two.id) in table
        assert "websocket" in table
        nowhere = crosstie("sessions", "--realm", "nowhere", cwd=tmp_path)
        assert nowhere.returncode == 1
        assert "no realm 'nowhere'" in nowhere.stderr

        closed = crosstie("sessions", "close", two.id, "--reason", "enough", cwd=tmp_path)
        assert (closed.returncode, closed.stdout) == (0, f"Closed session {two.id}\n")
        goodbye = two.hear(GOODBYE)
        assert goodbye[1:] == [{"message": "enough"}, "wamp.close.killed"]
        assert line_of(embedded, "session left", two.id).fields["reason"] == "killed"
        again = crosstie("sessions", "close", two.id, cwd=tmp_path)
        assert again.returncode == 1
        assert f"there is no session {two.id}" in again.stderr
        # The connection is still there, for another session.
        two.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
        two.join().round_trip()
        one.round_trip()


def test_the_status_page_shows_sessions(start_router):
    router = start_router(config.plain())
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        page = router.page("/")
        assert str(peer.id) in page
        assert peer.name in page
    await_true("it is gone", lambda: str(peer.id) not in router.page("/"))


def test_welcome_says_where_one_is(start_router):
    router = start_router(config.plain())
    keys = {"x_cb_node", "x_cb_worker", "x_cb_peer", "x_cb_pid"}
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        said = {"who": "me", "x_cb_pid": 1}
        peer.say(HELLO, "realm1", {"roles": ROLES, "authextra": said})
        details = peer.hear(WELCOME)[2]
        assert keys <= details.keys()
        assert details["x_cb_pid"] == router.process.pid
        assert details["x_cb_peer"] == f"tcp4:{peer.name}"
        assert details["x_cb_worker"] == "worker1"
        own = {key: details[key] for key in keys}
        assert details["authextra"] == {"who": "me", **own}


def test_welcome_that_says_nothing_of_the_router(start_router):
    realm = {
        "name": "realm1",
        "roles": [config.role("anonymous")],
        "options": {"disclose_router": False},
    }
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "realm1", {"roles": ROLES})
        details = peer.hear(WELCOME)[2]
        assert not any(key.startswith("x_cb_") for key in details)
        assert "authextra" not in details
