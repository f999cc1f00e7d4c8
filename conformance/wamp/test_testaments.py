"""Testaments: what a session has said to be published when it has left, however it leaves."""

from __future__ import annotations

import pytest
from rig import config
from rig.links import only
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, EVENT, GOODBYE, HELLO, RESULT, ROLES, WELCOME

ADD = "wamp.session.add_testament"
FLUSH = "wamp.session.flush_testaments"
# One way for each serializer and client is enough.
BY_SERIALIZER = only(
    lambda link: (
        link.over == "tcp"
        and "batched" not in link.serializer
        and (link.client, link.kind) in (("asyncio", "ws"), ("twisted", "rs"), ("javascript", "ws"))
    )
)


@pytest.fixture
def router(start_router):
    """A router with a realm of its own."""
    return start_router(config.plain())


@pytest.fixture
def open_(router, new_session, place_of):
    """Open sessions over a link to that router."""
    return lambda link: new_session(link.client).open(place_of(link, of=router))


def joined(router, serializer="json") -> RawSocket:
    """Join by hand."""
    return RawSocket.tcp(router.address("tcp")).shake_hands(serializer).join()


def ask(peer, procedure, *args, **kwargs):
    """Call by hand; return the one result."""
    peer.ask(CALL, {}, procedure, list(args), kwargs)
    return peer.hear(RESULT)[3][0]


def say_goodbye(peer, router):
    """Leave in peace."""
    peer.say(GOODBYE, {}, "wamp.close.normal")
    peer.hear(GOODBYE)


def drop(peer, router):
    """Lose the connection."""
    peer.close()


def break_the_protocol(peer, router):
    """Be aborted."""
    peer.say(HELLO, "realm1", {"roles": ROLES})
    peer.expect_abort()


def be_killed(peer, router):
    """Be ended by another session."""
    with joined(router) as killer:
        ask(killer, "wamp.session.kill", peer.id)
    peer.hear(GOODBYE)


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize("leave", [say_goodbye, drop, break_the_protocol, be_killed])
def test_however_it_leaves(router, leave, serializer):
    with joined(router) as watcher, joined(router, serializer) as peer:
        last = ask(peer, ADD, "com.last", [1, "two", None], {"three": [3.5]})
        first = ask(peer, ADD, "com.first", [], {}, scope="detached")
        watched = watcher.subscribe("com.", match="prefix")
        watcher.subscribe("wamp.session.on_leave")
        leave(peer, router)
        events = [watcher.hear(EVENT) for _ in range(3)]
        assert events[0][1:] == [watched, first, {"topic": "com.first"}]
        details = {"topic": "com.last"}
        assert events[1][1:] == [watched, last, details, [1, "two", None], {"three": [3.5]}]
        assert events[2][4][0] == peer.id


@BY_SERIALIZER
def test_clients_have_testaments(link, open_):
    session, watcher = open_(link), open_(link)
    assert session.call(FLUSH).args == [0]
    session.call(ADD, "com.flushed", [], {})
    assert session.call(FLUSH, "destroyed").args == [1]
    session.call(ADD, "com.topic", ["gone"], {"key": "value"}, {"acknowledge": True})
    with pytest.raises(WampError) as raised:
        session.call(ADD, "com.topic", [], {}, {}, "sometime")
    assert raised.value.uri == "wamp.error.testament_error"
    with pytest.raises(WampError) as raised:
        session.call(ADD, "com.topic", [], {}, {"rkey": "1"})
    assert raised.value.uri == "wamp.error.option_not_allowed"
    watcher.subscribe("com.", match="prefix")
    session.drop()
    event = watcher.next("published")
    assert (event["args"], event["kwargs"]) == (["gone"], {"key": "value"})


def test_they_are_bounded(start_router):
    limits = {"testaments_max": 3, "testaments_bytes_max": 2_000}
    router = start_router(config.plain(limits=limits))
    with joined(router) as peer, joined(router) as watcher:
        peer.ask(CALL, {}, ADD, ["com.topic", ["x" * 2_000], {}])
        assert peer.hear(ERROR)[4] == "crosstie.error.testaments_bytes_max"
        for _ in range(3):
            ask(peer, ADD, "com.topic", [], {})
        peer.ask(CALL, {}, ADD, ["com.topic", [], {}])
        assert peer.hear(ERROR)[4] == "crosstie.error.testaments_max"
        watcher.subscribe("com.topic")
        peer.close()
        for _ in range(3):
            watcher.hear(EVENT)


def test_many_go_in_turns(router):
    """Another client is served while they are published, and all arrive."""
    with joined(router, "cbor") as peer, joined(router) as watcher, joined(router) as other:
        for number in range(128):
            ask(peer, ADD, "com.topic", [number])
        watcher.subscribe("com.topic")
        peer.close()
        other.round_trip()
        assert [watcher.hear(EVENT)[4] for _ in range(128)] == [[n] for n in range(128)]


@pytest.mark.parametrize("is_on", [True, False])
def test_they_are_announced(start_router, is_on):
    realm = {"name": "realm1", "roles": [config.role("anonymous")]}
    realm["options"] = {"enable_meta_api": is_on}
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "realm1", {"roles": ROLES})
        features = peer.hear(WELCOME)[2]["roles"]["dealer"]["features"]
        assert features.get("testament_meta_api", False) is is_on
