"""Sessions that outlive their connections, and miss nothing of what they are to acknowledge."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.session import (
    CALL,
    EVENT,
    GOODBYE,
    HELLO,
    PUBLISH,
    RESULT,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    UNSUBSCRIBE,
    WELCOME,
)

EVENT_RECEIVED = 337
UNSUBSCRIBED = 35
ACKNOWLEDGES = {"subscriber": {"features": {"x_acknowledged_event_delivery": True}}}
LONG = 60_000
# A longer run is `CROSSTIE_CUTS=1000`.
CUTS = int(os.environ.get("CROSSTIE_CUTS", "40"))


def configuration(**resumption: int) -> dict:
    """Return a node whose realm's sessions may be resumed."""
    node = config.plain()
    realm = node["workers"][0]["realms"][0]
    realm["resumption"] = {"window_ms": LONG, **resumption}
    return node


@pytest.fixture
def router(start_router):
    """A router with a realm of its own."""
    return start_router(configuration())


def hello(router, **details: object) -> tuple[RawSocket, list]:
    """Say HELLO; return the peer and its WELCOME."""
    peer = RawSocket.tcp(router.address("tcp")).shake_hands("json")
    peer.say(HELLO, "realm1", {"roles": {**ROLES, **ACKNOWLEDGES}, **details})
    welcome = peer.hear(WELCOME)
    peer.id, peer.requests = welcome[1], itertools.count(1)
    return peer, welcome


def again(router, welcome: list, **details: object) -> tuple[RawSocket, list]:
    """Say HELLO again, for the session that this WELCOME was for."""
    token = welcome[2].get("resume_token")
    wish = {"resumable": True, "resume-session": welcome[1], "resume-token": token, **details}
    return hello(router, **wish)


def joined(router) -> RawSocket:
    """Join as another client."""
    return RawSocket.tcp(router.address("tcp")).shake_hands("json").join()


def publish(peer: RawSocket, topic: str, *args: object) -> None:
    """Publish, and see that it has been."""
    peer.publish(topic, *args)


def test_missed_events_come_when_the_session_is_resumed(router) -> None:
    reader, welcome = hello(router, resumable=True)
    assert (welcome[2]["resumed"], welcome[2]["resumable"]) == (False, True)
    subscription = reader.subscribe("com.x")
    writer = joined(router)
    publish(writer, "com.x", 1)
    first = reader.hear(EVENT)
    assert first[3]["x_acknowledged_delivery"] is True
    reader.close()
    publish(writer, "com.x", 2)
    reader, resumed = again(router, welcome)
    assert resumed[1] == welcome[1]
    assert (resumed[2]["resumed"], resumed[2]["resume_token"]) == (
        True,
        welcome[2]["resume_token"],
    )
    events = [reader.hear(EVENT) for _ in range(2)]
    assert [(e[1], e[4]) for e in events] == [(subscription, [1]), (subscription, [2])]
    assert events[0][2] == first[2]
    for event in events:
        reader.say(EVENT_RECEIVED, event[2])
    publish(writer, "com.x", 3)
    assert reader.hear(EVENT)[4] == [3]


def test_the_meta_api_says_who_may_be_and_was_resumed(router) -> None:
    reader, welcome = hello(router, resumable=True)
    other = joined(router)

    def told(session: int) -> tuple:
        other.ask(CALL, {}, "wamp.session.get", [session])
        [details] = other.hear(RESULT)[3]
        return details["resumed"], details["resumable"], details["resume_token"]

    assert told(other.id) == (False, False, None)
    assert told(reader.id) == (False, True, None)
    again(router, welcome)
    assert told(reader.id) == (True, True, None), "the token is for its client alone"


def test_a_client_may_be_back_before_its_end_is_noticed(router) -> None:
    reader, welcome = hello(router, resumable=True)
    reader.subscribe("com.x")
    other, resumed = again(router, welcome)
    assert resumed[2]["resumed"] is True
    reader.expect_end()
    publish(joined(router), "com.x", 1)
    assert other.hear(EVENT)[4] == [1]


def test_nothing_is_lost_over_many_cuts(router) -> None:
    reader, welcome = hello(router, resumable=True)
    reader.subscribe("com.x")
    writer = joined(router)
    seen: list[int] = []
    for number in range(CUTS * 5):
        publish(writer, "com.x", number)
        if number % 5 == 4:
            # Some have been read and acknowledged, some read, and some are on their way.
            for _ in range(number % 3):
                event = reader.hear(EVENT)
                seen.append(event[4][0])
                reader.say(EVENT_RECEIVED, event[2])
            reader.close()
            reader, resumed = again(router, welcome)
            assert resumed[2]["resumed"] is True
    while not seen or seen[-1] != CUTS * 5 - 1:
        event = reader.hear(EVENT)
        seen.append(event[4][0])
        reader.say(EVENT_RECEIVED, event[2])
    assert sorted(set(seen)) == list(range(CUTS * 5))


def test_events_of_an_ended_subscription_do_not_come_again(router) -> None:
    reader, welcome = hello(router, resumable=True)
    subscription = reader.subscribe("com.x")
    reader.subscribe("com.y")
    writer = joined(router)
    publish(writer, "com.x", 1)
    reader.hear(EVENT)
    reader.ask(UNSUBSCRIBE, subscription)
    reader.hear(UNSUBSCRIBED)
    reader.close()
    publish(writer, "com.y", 2)
    reader, _ = again(router, welcome)
    assert reader.hear(EVENT)[4] == [2]


@pytest.mark.parametrize("token", ["", "00" * 32, "zz" * 32, "a", None])
def test_a_foreign_token_gets_a_session_of_its_own(router, token) -> None:
    _, welcome = hello(router, resumable=True)
    mine, other = again(router, welcome, **{"resume-token": token})
    assert other[1] != welcome[1]
    assert other[2]["resumed"] is False
    assert other[2]["resume_token"] != welcome[2]["resume_token"]
    mine.round_trip()


def test_a_missing_session_cannot_be_resumed(router) -> None:
    _, welcome = hello(router, resumable=True)
    _, other = again(router, welcome, **{"resume-session": 1})
    assert other[2]["resumed"] is False


@pytest.mark.parametrize(
    "details", [{"resumable": 1}, {"resume-session": "1"}, {"resume-token": []}]
)
def test_wishes_of_wrong_types(router, details) -> None:
    peer = RawSocket.tcp(router.address("tcp")).shake_hands("json")
    peer.say(HELLO, "realm1", {"roles": ACKNOWLEDGES, **details})
    peer.expect_abort()


def test_a_session_that_said_goodbye_is_over(router) -> None:
    reader, welcome = hello(router, resumable=True)
    reader.say(GOODBYE, {}, "wamp.close.normal")
    reader.hear(GOODBYE)
    _, other = again(router, welcome)
    assert other[2]["resumed"] is False


def test_one_too_many_is_given_up(start_router) -> None:
    router = start_router(configuration(sessions_max=1))
    first, welcome = hello(router, resumable=True)
    second, welcome_2 = hello(router, resumable=True)
    # Each is waited for: which connection's end is noticed first is nobody's to say.
    watcher = joined(router)
    watcher.ask(SUBSCRIBE, {}, "wamp.session.on_leave")
    watcher.hear(SUBSCRIBED)
    first.close()
    publish(watcher, "com.nobody")
    second.close()
    left = watcher.hear(EVENT)[4][0]
    assert left in (welcome[1], welcome_2[1])
    gone, waits = (welcome, welcome_2) if left == welcome[1] else (welcome_2, welcome)
    assert again(router, waits)[1][2]["resumed"] is True
    assert again(router, gone)[1][2]["resumed"] is False


def test_one_that_is_late_is_given_up(start_router) -> None:
    router = start_router(configuration(window_ms=1))
    reader, welcome = hello(router, resumable=True)
    watcher = joined(router)
    watcher.ask(SUBSCRIBE, {}, "wamp.session.on_leave")
    watcher.hear(SUBSCRIBED)
    reader.close()
    assert watcher.hear(EVENT)[4][0] == welcome[1]
    assert again(router, welcome)[1][2]["resumed"] is False


def test_nothing_is_resumable_unless_configured(start_router) -> None:
    router = start_router(config.plain())
    _, welcome = hello(router, resumable=True)
    assert (welcome[2]["resumed"], welcome[2]["resumable"]) == (False, False)
    assert "resume_token" not in welcome[2]


def test_a_line_at_its_bound_ends_the_session(start_router) -> None:
    node = configuration()
    node["limits"] = {"unacknowledged_events_max": 3}
    router = start_router(node)
    reader, welcome = hello(router, resumable=True)
    reader.subscribe("com.x")
    writer = joined(router)
    for number in range(4):
        writer.say(PUBLISH, number + 1, {}, "com.x", [number])
    for _ in range(3):
        reader.hear(EVENT)
    reader.expect_abort("crosstie.error.unacknowledged_max")
    assert again(router, welcome)[1][2]["resumed"] is False


def test_autobahn_is_resumed(router) -> None:
    """It acknowledges by itself; what its handler has not ended with comes again."""
    host, port = router.address("tcp")
    command = [sys.executable, "-m", "puppets.resumed", host, str(port)]
    with subprocess.Popen(
        command,
        cwd=Path(__file__).resolve().parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:

        def told() -> dict:
            return json.loads(client.stdout.readline())

        first = told()
        assert (first["resumed"], bool(first["token"])) == (False, True)
        writer = joined(router)
        publish(writer, "com.resumed.topic", 1)
        publish(writer, "com.resumed.topic", 2)
        assert told()["events"] == [1, 2]
        publish(writer, "com.resumed.topic", 3)
        client.stdin.write("\n")
        client.stdin.flush()
        second = told()
        assert (second["resumed"], second["session"]) == (True, first["session"])
        assert second["events"] == [2, 3]
        assert client.wait(30) == 0
