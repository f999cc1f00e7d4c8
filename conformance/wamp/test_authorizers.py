"""Procedures that say what sessions may do: what they are told and answer, how they fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rig import config
from rig.puppet import HERE
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    CALL,
    ERROR,
    EVENT,
    GOODBYE,
    INTERRUPT,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    REGISTERED,
    RESULT,
    SUBSCRIBE,
    SUBSCRIBED,
    YIELD,
    Wamp,
)
from rig.waiting import await_true
from rig.websocket import WebSocket

AUTHORIZER = "com.example.authorize"
FAILED = "wamp.error.authorization_failed"
NOT_AUTHORIZED = "wamp.error.not_authorized"


def judged(name: str, authorizer: str = AUTHORIZER, **more: object) -> dict:
    """Return a role that is asked about."""
    return {"name": name, "authorizer": authorizer, **more}


def transport(name: str, auth: dict | None = None) -> dict:
    """Return a transport whose sessions have the role of its name."""
    auth = {"auth": auth or config.static(name, "joe")}
    return config.universal(name, config.tcp(), rawsocket=auth, websocket={"ws": auth})


@pytest.fixture
def node(start_router) -> Router:
    """A router with roles that are asked about."""
    roles = [
        config.role("backend"),
        judged("user", authorizer_timeout_ms=60_000),
        judged("quick", authorizer_timeout_ms=200),
        judged("apart", authorizer_cache="session"),
        judged("near", authorizer_cache="uri"),
        judged("far", authorizer_cache="uri", authorizer_cache_bytes_max=4_096),
        judged("looped", "com.example.loop"),
        judged("brief", "com.example.authorize_briefly"),
    ]
    names = ["backend", "user", "quick", "apart", "near", "far", "looped", "brief"]
    ticket = {"ticket": {"type": "static", "principals": {"joe": {"ticket": "x", "role": "user"}}}}
    transports = [transport(name) for name in names]
    transports += [transport("ticket", ticket), config.universal("tcp", config.tcp())]
    realms = [{"name": "realm1", "roles": roles}]
    log = {"file": "audit.log"}
    return start_router(config.node(realms, transports, audit_log=log))


def join(node: Router, role: str, kind: str = "rawsocket") -> Wamp:
    """Open a session with a role."""
    if kind == "rawsocket":
        return RawSocket.tcp(node.address(role)).shake_hands().join()
    return WebSocket.tcp(node.address(role)).open().join()


@pytest.fixture
def authorizer(node) -> Iterator[RawSocket]:
    """A session that has the procedure."""
    with join(node, "backend") as session:
        session.register(AUTHORIZER)
        yield session


def say(authorizer: Wamp, *answer: object) -> list:
    """Answer the next question; return its arguments."""
    invocation = authorizer.hear(INVOCATION)
    authorizer.say(YIELD, invocation[1], {}, list(answer))
    return invocation[4]


@pytest.mark.parametrize("kind", ["rawsocket", "websocket"])
def test_arguments_of_an_authorizer(node, authorizer, kind):
    with join(node, "user", kind) as peer:
        peer.ask(
            CALL, {"receive_progress": True, "timeout": 5000}, "com.example.add", [1], {"a": 2}
        )
        invocation = authorizer.hear(INVOCATION)
        assert invocation[3]["caller_authid"] == "crosstie.authorizer"
        assert invocation[3]["caller_authrole"] == "trusted"
        session, uri, action, options = invocation[4]
        transport = session.pop("transport")
        assert session == {
            "session": peer.id,
            "authid": "joe",
            "authrole": "user",
            "authmethod": "anonymous",
            "authprovider": "static",
            "authextra": {},
        }
        assert transport["channel_framing"] == kind
        assert (uri, action) == ("com.example.add", "call")
        assert options == {"receive_progress": True, "timeout": 5000}
        authorizer.say(YIELD, invocation[1], {}, [True])
        assert peer.hear(ERROR)[4] == "wamp.error.no_such_procedure"

        peer.ask(SUBSCRIBE, {"match": "prefix"}, "com.example.")
        assert say(authorizer, True)[1:] == ["com.example.", "subscribe", {"match": "prefix"}]
        peer.hear(SUBSCRIBED)
        peer.ask(REGISTER, {"invoke": "roundrobin"}, "com.example.mine")
        assert say(authorizer, True)[1:] == [
            "com.example.mine",
            "register",
            {"invoke": "roundrobin"},
        ]
        peer.hear(REGISTERED)
        peer.ask(PUBLISH, {"acknowledge": True, "exclude": [1]}, "com.example.news", ["x"])
        asked = say(authorizer, True)
        assert asked[1:3] == ["com.example.news", "publish"]
        assert asked[3] == {"acknowledge": True, "exclude": [1]}
        peer.hear(PUBLISHED)
        peer.ask(CALL, {}, "wamp.session.count")
        assert say(authorizer, True)[1:] == ["wamp.session.count", "call", {}]
        assert peer.hear(RESULT)[3] == [2]


def test_details_of_the_session_are_passed(node, authorizer):
    with RawSocket.tcp(node.address("ticket")).shake_hands() as peer:
        peer.say(
            1,
            "realm1",
            {
                "roles": {"publisher": {}},
                "authmethods": ["ticket"],
                "authid": "joe",
                "authextra": {"a": 1},
            },
        )
        peer.hear(4)
        peer.say(5, "x", {})
        welcome = peer.hear(2)
        peer.say(PUBLISH, 1, {"acknowledge": True}, "com.example.news")
        session = say(authorizer, True)[0]
        assert (session["session"], session["authmethod"]) == (welcome[1], "ticket")
        peer.hear(PUBLISHED)


@pytest.mark.parametrize("kind", ["rawsocket", "websocket"])
def test_nothing_overtakes_what_is_judged(node, authorizer, kind):
    with join(node, "user", kind) as peer, join(node, "backend") as other:
        subscription = other.subscribe("com.example.", match="prefix")
        for number in range(20):
            peer.ask(PUBLISH, {}, f"com.example.n{number}", [number])
        for number in range(20):
            assert say(authorizer, number % 3 != 0)[1] == f"com.example.n{number}"
            if number % 3 != 0:
                event = other.hear(EVENT)
                assert (event[1], event[4]) == (subscription, [number])


def test_a_refusal_and_an_unacknowledged_publication(node, authorizer):
    with join(node, "user") as peer, join(node, "backend") as other:
        other.subscribe("com.example.a")
        peer.ask(PUBLISH, {}, "com.example.a")
        say(authorizer, False)
        request = peer.ask(CALL, {}, "com.example.a")
        say(authorizer, {"allow": False})
        error = peer.hear(ERROR)
        assert (error[1:3], error[4]) == ([CALL, request], NOT_AUTHORIZED)
        assert 'is not authorized to call procedure "com.example.a"' in error[5][0]
        other.round_trip()
    assert node.metric("actions_refused_total", cause="authorizer_denied") == 2


def test_disclosure(node, authorizer):
    with join(node, "user") as peer, join(node, "backend") as other:
        other.register("com.example.who")
        other.subscribe("com.example.news")
        for answer, expected in [
            (True, None),
            ({"allow": True}, None),
            ({"allow": True, "disclose": False}, None),
            ({"allow": True, "disclose": True, "validate": None}, peer.id),
        ]:
            peer.ask(CALL, {}, "com.example.who")
            say(authorizer, answer)
            invocation = other.hear(INVOCATION)
            assert invocation[3].get("caller") == expected
            other.say(YIELD, invocation[1], {})
            peer.hear(RESULT)
            peer.ask(PUBLISH, {"acknowledge": True}, "com.example.news")
            say(authorizer, answer)
            peer.hear(PUBLISHED)
            assert other.hear(EVENT)[3].get("publisher") == expected


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([], "Authorizer returned unknown type 'null'"),
        (["yes"], "Authorizer returned unknown type 'text'"),
        ([1], "Authorizer returned unknown type 'integer'"),
        ([{}], "Authorizer must have 'allow' in returned dict"),
        ([{"allow": True, "more": 1}], "Authorizer returned unknown key 'more'"),
        ([{"allow": True, "cache": 1}], "Authorizer must have bool for 'cache'"),
        ([{"allow": True, "validate": {"call": "x"}}], "does not validate payloads"),
    ],
)
def test_nonsense_allows_nothing(node, authorizer, answer, text):
    with join(node, "user") as peer:
        for kind, uri in [(CALL, "com.example.a"), (SUBSCRIBE, "com.example.a")]:
            peer.ask(kind, {}, uri)
            say(authorizer, *answer)
            error = peer.hear(ERROR)
            assert error[4] == FAILED
            assert text in error[5][0]
    assert node.metric("actions_refused_total", cause="authorizer_nonsense") == 2


def test_an_error_fails_the_action(node, authorizer):
    with join(node, "user") as peer:
        peer.ask(CALL, {}, "com.example.a")
        invocation = authorizer.hear(INVOCATION)
        authorizer.say(ERROR, INVOCATION, invocation[1], {}, "com.example.denied", ["nope"])
        error = peer.hear(ERROR)
        text = "failed to authorize session for calling procedure 'com.example.a'"
        assert error[4:] == [FAILED, [f"{text}: com.example.denied: nope"]]
        assert node.await_log(lambda line: "authorizer failed" in line.text)


def test_an_authorizer_without_options(node, authorizer):
    with join(node, "user") as peer:
        peer.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        invocation = authorizer.hear(INVOCATION)
        text = "authorize() takes 3 positional arguments but 4 were given"
        authorizer.say(ERROR, INVOCATION, invocation[1], {}, "wamp.error.runtime_error", [text])
        assert say(authorizer, True)[1:] == ["com.example.a", "publish"]
        peer.hear(PUBLISHED)
        # No third call is made.
        peer.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        for _ in range(2):
            invocation = authorizer.hear(INVOCATION)
            authorizer.say(ERROR, INVOCATION, invocation[1], {}, "wamp.error.runtime_error", [text])
        assert peer.hear(ERROR)[4] == FAILED


def test_no_authorizer(node):
    with join(node, "user") as peer:
        peer.ask(CALL, {}, "com.example.a")
        error = peer.hear(ERROR)
        assert error[4] == FAILED
        assert "wamp.error.no_such_procedure" in error[5][0]
    assert node.metric("actions_refused_total", cause="authorizer_unavailable") == 1


def test_an_authorizer_that_does_not_answer_in_time(node, authorizer):
    with join(node, "quick") as peer:
        peer.ask(CALL, {}, "com.example.a")
        invocation = authorizer.hear(INVOCATION)
        error = peer.hear(ERROR)
        assert error[4] == FAILED
        assert "did not answer within 200 ms" in error[5][0]
        # Its late answer is dropped.
        authorizer.say(YIELD, invocation[1], {}, [True])
        peer.ask(CALL, {}, "wamp.session.count")
        say(authorizer, True)
        peer.hear(RESULT)
    assert node.metric("actions_refused_total", cause="authorizer_timeout") == 1


def test_an_authorizer_that_leaves(node):
    with join(node, "user") as peer:
        with join(node, "backend") as session:
            session.register(AUTHORIZER)
            peer.ask(CALL, {}, "com.example.a")
            session.hear(INVOCATION)
        error = peer.hear(ERROR)
        assert error[4] == FAILED


def test_a_session_that_leaves_while_it_is_judged(start_router, node):
    with RawSocket.tcp(node.address("backend")).shake_hands() as session:
        session.join(roles={"callee": {"features": {"call_canceling": True}}})
        session.register(AUTHORIZER)
        peer = join(node, "user")
        peer.ask(PUBLISH, {}, "com.example.a")
        invocation = session.hear(INVOCATION)
        assert node.metric("realm_sessions_judged") == 1
        peer.close()
        assert session.hear(INTERRUPT)[1] == invocation[1]
        session.say(YIELD, invocation[1], {}, [True])
        session.round_trip()
        await_true("it is gone", lambda: node.metric("realm_sessions_judged") == 0)


def test_a_session_that_is_killed_while_it_is_judged(node, authorizer):
    with join(node, "user") as peer, join(node, "backend") as other:
        peer.ask(PUBLISH, {}, "com.example.a")
        invocation = authorizer.hear(INVOCATION)
        other.ask(CALL, {}, "wamp.session.kill", [peer.id])
        other.hear(RESULT)
        assert peer.hear(GOODBYE)[2] == "wamp.close.killed"
        # It is read, although no answer has arrived.
        peer.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
        peer.join()
        authorizer.say(YIELD, invocation[1], {}, [True])
        peer.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        say(authorizer, True)
        peer.hear(PUBLISHED)


def test_a_session_that_serves_its_own_authorizer_fails_at_once(node):
    with join(node, "looped") as peer, join(node, "backend") as backend:
        backend.register("com.example.loop", invoke="roundrobin")
        peer.ask(REGISTER, {"invoke": "roundrobin"}, "com.example.loop")
        say(backend, True)
        peer.hear(REGISTERED)
        peer.ask(CALL, {}, "com.example.a")
        error = peer.hear(ERROR)
        assert error[4] == FAILED
        assert "it would wait for itself" in error[5][0]


def test_cached_decisions(node, authorizer):
    with join(node, "user") as peer, join(node, "user") as same, join(node, "backend") as other:
        peer.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        say(authorizer, {"allow": True, "cache": True})
        peer.hear(PUBLISHED)
        peer.publish("com.example.a")
        same.publish("com.example.a")
        assert node.metric("realm_decisions") == 1
        assert node.metric("realm_decisions_reused_total") == 2
        other.ask(CALL, {}, "crosstie.authorizer.invalidate", [], {"authrole": "user"})
        assert other.hear(RESULT)[3] == [1]
        peer.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        say(authorizer, {"allow": False, "cache": True})
        assert peer.hear(ERROR)[4] == NOT_AUTHORIZED
        same.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        assert same.hear(ERROR)[4] == NOT_AUTHORIZED
    with join(node, "apart") as peer, join(node, "apart") as another:
        for session in (peer, another):
            session.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
            say(authorizer, {"allow": True, "cache": True})
            session.hear(PUBLISHED)
            session.publish("com.example.a")


def test_decisions_by_uri_apply_to_other_roles(node, authorizer):
    with join(node, "near") as near, join(node, "far") as far, join(node, "apart") as apart:
        near.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        say(authorizer, {"allow": True, "cache": True})
        near.hear(PUBLISHED)
        far.publish("com.example.a")
        apart.ask(PUBLISH, {"acknowledge": True}, "com.example.a")
        say(authorizer, False)
        assert apart.hear(ERROR)[4] == NOT_AUTHORIZED


def test_cached_decisions_are_bounded_and_on_the_account(start_router):
    """A session asks about as many URIs as it likes, all of which its authorizer lets be kept."""
    bound = 20_000
    roles = [config.role("backend"), judged("user", authorizer_cache_bytes_max=bound)]
    transports = [transport(each) for each in ("backend", "user")]
    transports.append(config.universal("tcp", config.tcp()))
    realms = [{"name": "realm1", "roles": roles}]
    node = start_router(config.node(realms, transports))
    kept = lambda: node.metric("held_bytes", kind="kept")  # noqa: E731
    with join(node, "user") as peer, join(node, "backend") as authorizer:
        authorizer.register(AUTHORIZER)
        for number in range(100):
            peer.ask(PUBLISH, {"acknowledge": True}, f"com.{'x' * 900}.n{number}")
            say(authorizer, {"allow": True, "cache": True})
            peer.hear(PUBLISHED)
        assert bound / 2 < kept() <= bound
        assert node.metric("realm_decision_bytes") == kept()
        assert 10 < node.metric("realm_decisions") < 22
        authorizer.ask(CALL, {}, "crosstie.authorizer.invalidate")
        authorizer.hear(RESULT)
        assert kept() == 0


def test_large_messages_are_judged_too(node, authorizer):
    with join(node, "user") as peer, join(node, "backend") as other:
        other.subscribe("com.example.a")
        text = "x" * 300_000
        for number in range(3):
            peer.ask(PUBLISH, {}, "com.example.a", [number, text])
        for number in range(3):
            say(authorizer, True)
            assert other.hear(EVENT)[4] == [number, text]


def test_a_refusal_is_written_down(node, authorizer):
    path = node.directory / "audit.log"
    with join(node, "user") as peer:
        peer.ask(CALL, {}, "com.example.a")
        say(authorizer, False)
        peer.hear(ERROR)
        name, session = f"tcp:{peer.name}", peer.id
    await_true("the line is there", lambda: path.read_text().endswith("\n"))
    line = json.loads(path.read_text())
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "action_refused",
        "cause": "authorizer_denied",
        "action": "call",
        "uri": "com.example.a",
        "realm": "realm1",
        "session": str(session),
        "authid": "joe",
        "role": "user",
        "peer": name,
    }


def test_a_flood_of_refusals_is_bounded_in_the_audit_log(start_router):
    realms = [{"name": "realm1", "roles": [{"name": "user"}]}]
    transports = [transport("user"), config.universal("tcp", config.tcp())]
    node = start_router(config.node(realms, transports, audit_log={"file": "audit.log"}))
    with join(node, "user") as peer:
        for _ in range(2_000):
            peer.ask(PUBLISH, {}, "com.example.a")
        peer.ask(CALL, {}, "com.example.a")
        peer.hear(ERROR)
    refused = lambda: node.metric("actions_refused_total", cause="permissions")  # noqa: E731
    await_true("all are counted", lambda: refused() == 2_001)
    lines = (node.directory / "audit.log").read_text().splitlines()
    assert len(lines) < 1_000


@pytest.fixture(params=["rawsocket", "websocket"])
def component(request, node) -> Iterator[str]:
    """A component of Autobahn|Python that has the procedure; the transport that it came by."""
    host, port = node.address("backend")
    scheme, path = ("rs", "") if request.param == "rawsocket" else ("ws", "/ws")
    command = [
        sys.executable,
        "-m",
        "puppets.authorizer",
        f"{scheme}://{host}:{port}{path}",
        request.param,
    ]
    with subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True) as process:
        assert "ready\n" in process.stdout
        yield request.param
        process.kill()


def test_a_component_decides(node, component):
    with join(node, "quick", component) as peer, join(node, "brief", component) as brief:

        def call(session: Wamp, uri: str) -> str | None:
            request = session.ask(CALL, {}, uri)
            answer = session.hear_any()
            if answer[0] == RESULT:
                assert answer[1] == request
                return None
            assert answer[1:3] == [CALL, request]
            return answer[4]

        assert call(peer, "com.example.true") is None
        assert call(peer, "com.example.false") == NOT_AUTHORIZED
        assert call(peer, "com.example.dict") is None
        assert call(peer, "com.example.error") == FAILED
        assert call(peer, "com.example.nonsense") == FAILED
        assert call(peer, "com.example.hang") == FAILED
        for _ in range(3):
            assert call(peer, "com.example.cached") is None
        peer.publish("com.example.news")
        assert call(brief, "com.example.true") is None
        assert call(brief, "com.example.false") == NOT_AUTHORIZED
    with join(node, "backend") as backend:
        backend.ask(CALL, {}, "com.example.asked", ["com.example.cached"])
        assert backend.hear(RESULT)[3] == [[["quick", "com.example.cached", "call"]]]
