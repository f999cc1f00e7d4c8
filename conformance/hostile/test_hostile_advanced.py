"""The advanced profile turned against the router: what is said, kept, awaited and claimed."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from rig import config
from rig.session import (
    ABORT,
    CALL,
    ERROR,
    EVENT,
    HELLO,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    REGISTERED,
    RESULT,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    WELCOME,
    YIELD,
)
from rig.waiting import await_true

from hostile.stage import MIB, Stage

EVENT_RECEIVED = 337
VIOLATION = "wamp.error.protocol_violation"
NOT_ALLOWED = "wamp.error.option_not_allowed"
INVALID = "wamp.error.invalid_argument"
REROUTES = {"roles": {**ROLES, "callee": {"features": {"call_reroute": True}}}}


@pytest.fixture
def stage(attacked) -> Stage:
    """A node whose realm keeps events and calls, and whose sessions may be resumed."""
    store = {
        "type": "memory",
        "event-history": [{"uri": "com.kept", "limit": 100_000}],
        "call-queue": [{"uri": "com.slow", "limit": 100}],
    }
    realm = {
        "name": "realm1",
        "roles": [config.role("anonymous")],
        "store": store,
        "resumption": {"window_ms": 60_000, "sessions_max": 10},
    }
    return attacked(realm=realm, limits={"history_bytes_max": 4 * MIB})


def test_definitions_of_megabytes(stage):
    """One of a megabyte is refused unread, many come to their bounds and go with sessions."""
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(stage.session()) for _ in range(30)]
        first = sessions[0]
        first.ask(CALL, {}, "wamp.reflect.define", ["com.big", "x" * MIB])
        assert first.hear(ERROR)[4] == INVALID
        errors = set()
        for session in sessions:
            for number in range(400):
                session.ask(CALL, {}, "wamp.reflect.define", [f"com.n{number}", "x" * 500])
            answers = [session.hear_any() for _ in range(400)]
            errors |= {answer[4] for answer in answers if answer[0] == ERROR}
        of_session, of_realm = "definitions_bytes_max", "realm_definitions_max"
        assert f"crosstie.error.{of_session}" in errors
        assert errors <= {f"crosstie.error.{of_session}", f"crosstie.error.{of_realm}"}
        # A session with few may still define, and all may ask.
        with stage.session() as another:
            another.ask(CALL, {}, "wamp.reflect.define", ["com.one", "x"])
            assert another.hear(RESULT)[3] == [True]
            another.ask(CALL, {}, "wamp.reflection.procedure.list")
            assert len(another.hear(RESULT)[3][0]) <= 10_000
            assert 400 < stage.metric("realm_definitions", realm="realm1") <= 10_000
        stage.everybody_else_is_served()
    stage.grew_at_most(48)
    stage.nothing_is_held()


def test_acknowledgements_of_events_that_were_never_sent(stage):
    """They end the session that says them, before anything is counted down that others wait for."""
    with stage.session() as honest, stage.session() as publisher:
        honest.ask(SUBSCRIBE, {"x_acknowledged_delivery": True}, "com.t")
        honest.hear(SUBSCRIBED)
        publisher.publish("com.t", 1)
        own = honest.hear(EVENT)[2]
        for publication in (own, 1, 2**53, 0):
            with stage.session() as liar:
                liar.ask(SUBSCRIBE, {"x_acknowledged_delivery": True}, "com.other")
                liar.hear(SUBSCRIBED)
                liar.say(EVENT_RECEIVED, publication)
                assert liar.hear(ABORT)[2] == VIOLATION
        honest.say(EVENT_RECEIVED, own)
        honest.round_trip()
    stage.nothing_is_held()


def test_keys_and_levels_of_wrong_types(stage):
    """Each ends its session or its request, and no other."""
    wrong: list[tuple] = [
        (PUBLISH, {"acknowledge": True, "rkey": 7}, VIOLATION),
        (PUBLISH, {"acknowledge": True, "rkey": "k" * 1_025}, INVALID),
        (PUBLISH, {"acknowledge": True, "runmode": "partition"}, NOT_ALLOWED),
        (PUBLISH, {"acknowledge": True, "trustlevel": "all"}, VIOLATION),
        (PUBLISH, {"acknowledge": True, "trustlevel": 9}, NOT_ALLOWED),
        (CALL, {"runmode": "all", "rkey": "k"}, NOT_ALLOWED),
        (CALL, {"runmode": "sideways"}, VIOLATION),
        (CALL, {"rkey": {"a": 1}, "runmode": "partition"}, VIOLATION),
        (SUBSCRIBE, {"nkey": ["a"]}, VIOLATION),
        (SUBSCRIBE, {"nkey": "n" * 1_025}, INVALID),
        (REGISTER, {"nkey": 1.5, "invoke": "random"}, VIOLATION),
    ]
    with stage.session() as callee:
        callee.register("com.p")
        for kind, options, expected in wrong:
            with stage.session() as peer:
                peer.ask(kind, options, "com.q" if kind == REGISTER else "com.p")
                answer = peer.hear_any()
                found = answer[2] if answer[0] == ABORT else answer[4]
                assert found == expected, (kind, options, answer)
        callee.round_trip()
    stage.nothing_is_held()


def test_call_queues_at_their_bound(stage):
    """A bounded number waits, one more is an error, and a leaving session removes its calls."""
    with stage.session() as callee, stage.session() as greedy, stage.session() as modest:
        callee.ask(REGISTER, {"concurrency": 1}, "com.slow")
        callee.hear(REGISTERED)
        for _ in range(2_000):
            greedy.ask(CALL, {}, "com.slow", ["x" * 200])
        answers = [greedy.hear(ERROR) for _ in range(2_000 - 1 - 100)]
        assert {answer[4] for answer in answers} == {"crossbar.error.max_concurrency_reached"}
        waiting = stage.metric("realm_calls_waiting", realm="realm1")
        assert 0 < waiting <= 100
        invocation = callee.hear(INVOCATION)
        assert invocation[4] == ["x" * 200]
        greedy.close()
        # Its remains affect no other session.
        await_true(
            "nothing waits", lambda: stage.metric("realm_calls_waiting", realm="realm1") == 0
        )
        request = modest.ask(CALL, {}, "com.slow", ["modest"])
        callee.say(YIELD, invocation[1], {}, [])
        own = callee.hear_any()
        while own[0] != INVOCATION:
            own = callee.hear_any()
        assert own[4] == ["modest"]
        callee.say(YIELD, own[1], {}, ["served"])
        assert modest.hear(RESULT)[1:4:2] == [request, ["served"]]
        stage.everybody_else_is_served()
    stage.grew_at_most(32)
    stage.nothing_is_held()


def test_a_call_that_every_callee_declines(stage):
    """It goes to eight callees, and back; those who say so for ever are asked no more of it."""
    with contextlib.ExitStack() as stack:
        callees = [stack.enter_context(stage.session(**REROUTES)) for _ in range(12)]
        for callee in callees:
            callee.ask(REGISTER, {"invoke": "roundrobin"}, "com.nobody")
            callee.hear(REGISTERED)
        caller = stack.enter_context(stage.session())
        for _ in range(8):
            request = caller.ask(CALL, {}, "com.nobody", ["x" * 1_000])
            asked = 0
            # In turn, so that it is known who is next.
            while asked < 8:
                callee = callees[0]
                callees.append(callees.pop(0))
                invocation = callee.hear(INVOCATION)
                callee.say(ERROR, INVOCATION, invocation[1], {}, "wamp.error.unavailable")
                callee.round_trip()
                asked += 1
            error = caller.hear(ERROR)
            assert (error[2], error[4]) == (request, "wamp.error.no_available_callee")
        assert stage.metric("realm_kept_call_bytes", realm="realm1") == 0
    stage.nothing_is_held()


def test_another_clients_session(stage):
    """Tokens that are guessed, cut or turned lead to other sessions, and harm none."""
    wish = {"roles": {**ROLES, "subscriber": {"features": {"x_acknowledged_event_delivery": True}}}}
    owner = stage.rawsocket()
    owner.say(HELLO, "realm1", {**wish, "resumable": True})
    welcome = owner.hear(WELCOME)
    token = welcome[2]["resume_token"]
    owner.close()
    for guess in ("", "0" * 64, token[:-1], token + "0", token[::-1]):
        with stage.rawsocket() as thief:
            claim = {"resumable": True, "resume-session": welcome[1], "resume-token": guess}
            thief.say(HELLO, "realm1", {**wish, **claim})
            answer = thief.hear(WELCOME)
            assert answer[2]["resumed"] is False
            assert answer[1] != welcome[1]
    with stage.rawsocket() as back:
        claim = {"resumable": True, "resume-session": welcome[1], "resume-token": token}
        back.say(HELLO, "realm1", {**wish, **claim})
        answer = back.hear(WELCOME)
        assert (answer[1], answer[2]["resumed"]) == (welcome[1], True)


def test_more_sessions_than_may_wait(stage):
    """A client that joins and is cut, again and again, holds at most ten sessions."""
    for _ in range(100):
        with stage.rawsocket() as peer:
            peer.say(HELLO, "realm1", {"roles": ROLES, "resumable": True})
            peer.hear(WELCOME)
            peer.requests = itertools.count(1)
            peer.ask(SUBSCRIBE, {}, "com.t")
            peer.hear(SUBSCRIBED)
    assert stage.metric("realm_sessions", realm="realm1") <= 10 + 40
    stage.grew_at_most(32)


def test_a_history_that_is_flooded(stage):
    """It keeps what its bytes allow, and the oldest go."""
    with stage.session() as publisher:
        for _ in range(20):
            for _ in range(100):
                publisher.ask(PUBLISH, {"acknowledge": True}, "com.kept", ["x" * 8_000])
            for _ in range(100):
                publisher.hear(PUBLISHED)
        assert stage.metric("realm_recorded_bytes", realm="realm1") <= 4 * MIB
        stage.everybody_else_is_served()
    stage.grew_at_most(48)
