"""Long-poll sessions that wait for another session: an authenticator, an authorizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rig import config
from rig.longpoll import LongPoll, Requests, Waiting
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import (
    ABORT,
    ENCODE,
    ERROR,
    HELLO,
    INVOCATION,
    ROLES,
    SUBSCRIBE,
    SUBSCRIBED,
    WELCOME,
    YIELD,
)

CHALLENGE, AUTHENTICATE = 4, 5
PROCEDURE = "com.example.authenticate"
AUTHORIZER = "com.example.authorize"
DYNAMIC = {"type": "dynamic", "authenticator": PROCEDURE, "authenticator-realm": "auth"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[Router]:
    """Long-poll with an authenticator and an authorizer."""
    judged = {"name": "judged", "authorizer": AUTHORIZER}
    realms = [
        {"name": "realm1", "roles": [judged, config.role("anonymous")]},
        {"name": "auth", "roles": [config.role("anonymous")]},
    ]
    paths = {
        "lp": {"type": "longpoll", "auth": {"ticket": DYNAMIC}},
        "judged": {"type": "longpoll", "auth": config.static("judged")},
    }
    transports = [
        {"type": "web", "id": "web", "endpoint": config.tcp(), "paths": paths},
        config.universal("tcp", config.tcp()),
    ]
    directory = tmp_path_factory.mktemp("guarded")
    running = Router(directory, config=config.node(realms, transports))
    yield running
    running.stop()


@pytest.fixture
def authenticator(guarded: Router) -> Iterator[RawSocket]:
    """The session that is asked."""
    with RawSocket.tcp(guarded.address("tcp")).shake_hands().join("auth") as session:
        session.register(PROCEDURE)
        yield session


def begin(guarded: Router) -> tuple[LongPoll, Requests]:
    """Come as far as the question to the authenticator, with the request that waits for it."""
    session = LongPoll(guarded.address("web"))
    session.say(HELLO, "realm1", {"roles": ROLES, "authmethods": ["ticket"], "authid": "joe"})
    assert session.hear(CHALLENGE)[1] == "ticket"
    requests = Requests(session.address, session.base)
    requests.begin(session.path("send"), ENCODE["json"]([AUTHENTICATE, "secret", {}]))
    return session, requests


def test_a_ticket_that_is_asked_about(guarded, authenticator):
    """Messages sent meanwhile wait."""
    session, authenticating = begin(guarded)
    invocation = authenticator.hear(INVOCATION)
    behind = Requests(session.address, session.base)
    behind.begin(session.path("send"), ENCODE["json"]([SUBSCRIBE, 1, {}, "com.behind"]))
    waiting = Waiting(session)
    authenticator.say(YIELD, invocation[1], {}, [{"role": "anonymous", "authid": "joan"}])
    welcome = waiting.message()
    assert (welcome[0], welcome[2]["authid"]) == (WELCOME, "joan")
    assert authenticating.finish().status == 204
    assert behind.finish().status == 204
    assert session.hear(SUBSCRIBED)[1] == 1
    session.drop()


def test_a_ticket_that_is_refused(guarded, authenticator):
    session, authenticating = begin(guarded)
    invocation = authenticator.hear(INVOCATION)
    authenticator.say(ERROR, INVOCATION, invocation[1], {}, "com.example.no", ["who is that?"])
    assert session.hear(ABORT)
    assert authenticating.finish().status == 204
    session.drop()


def test_a_client_that_closes_while_it_is_judged(guarded, authenticator):
    session, authenticating = begin(guarded)
    invocation = authenticator.hear(INVOCATION)
    assert session.post("close").status == 204
    assert authenticating.finish().status in (204, 410)
    session.expect_gone()
    # The call was cancelled; its answer is dropped.
    authenticator.say(YIELD, invocation[1], {}, [{"role": "anonymous"}])
    session.drop()


def test_messages_behind_one_that_is_judged(guarded):
    """A batch goes on when the authorizer has answered, in its order."""
    with RawSocket.tcp(guarded.address("tcp")).shake_hands().join() as authorizer:
        authorizer.register(AUTHORIZER)
        session = LongPoll(guarded.address("web"), "wamp.2.json.batched", "/judged").join()
        topics = [f"com.judged.n{number}" for number in range(5)]
        messages = [[SUBSCRIBE, number + 1, {}, topic] for number, topic in enumerate(topics)]
        requests = Requests(session.address, session.base)
        body = session.body(*map(ENCODE["json"], messages))
        requests.begin(session.path("send"), body)
        for topic in topics:
            invocation = authorizer.hear(INVOCATION)
            assert invocation[4][1] == topic
            authorizer.say(YIELD, invocation[1], {}, [True])
        assert [session.hear(SUBSCRIBED)[1] for _ in topics] == [1, 2, 3, 4, 5]
        assert requests.finish().status == 204
        session.drop()
