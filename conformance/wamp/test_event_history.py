"""Events that are recorded for later requests."""

from __future__ import annotations

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, PUBLISH, RESULT, WELCOME
from rig.waiting import await_true

GET = "wamp.subscription.get_events"
LOOKUP = "wamp.subscription.lookup"


def keeping(**store: object) -> dict:
    """Return a node with a realm that keeps events, and one that does not."""
    kept = {"type": "memory", "event-history": [{"uri": "com.kept", "limit": 3}], **store}
    guest = config.role("guest", config.permission(GET, call=True))
    realms = [
        {"name": "realm1", "roles": [config.role("anonymous"), guest], "store": kept},
        {"name": "realm2", "roles": [config.role("anonymous")]},
    ]
    guests = config.static("guest")
    transports = [
        config.universal("tcp", config.tcp()),
        config.universal("guests", config.tcp(), rawsocket={"auth": guests}),
    ]
    return config.node(realms, transports)


@pytest.fixture(params=["memory", "sqlite"])
def store(request) -> dict:
    """Return where they are kept."""
    return {"type": "sqlite", "path": "events.db"} if request.param == "sqlite" else {}


@pytest.fixture
def connect(request):
    """Open connections by RawSocket, and close them at the end."""

    def opened(node, transport: str = "tcp", serializer: str = "json") -> RawSocket:
        peer = RawSocket.tcp(node.address(transport)).shake_hands(serializer)
        request.addfinalizer(peer.close)
        return peer

    return opened


def asked(peer: RawSocket, procedure: str, *args: object, **kwargs: object):
    """Call; return the one result."""
    peer.ask(CALL, {}, procedure, list(args), kwargs)
    answer = peer.hear(RESULT)
    return answer[3][0]


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_events_without_a_receiver(start_router, connect, store, serializer):
    node = start_router(keeping(**store))
    publisher = connect(node, serializer=serializer).join()
    for number in range(5):
        publisher.publish("com.kept", number, "ä")
    publisher.publish("com.other", 9)
    reader = connect(node).join()
    subscription = asked(reader, LOOKUP, "com.kept")
    events = asked(reader, GET, subscription)
    assert [event["args"] for event in events] == [[4, "ä"], [3, "ä"], [2, "ä"]]
    assert {event["topic"] for event in events} == {"com.kept"}
    assert {event["realm"] for event in events} == {"realm1"}
    # An undisclosed publisher is not named here either.
    assert {event["session_id"] for event in events} == {None}
    assert [event["args"][0] for event in asked(reader, GET, subscription, 2)] == [4, 3]
    specified = asked(reader, GET, subscription, reverse=False)
    assert [event["args"][0] for event in specified] == [2, 3, 4]
    after = specified[0]["publication"]
    found = asked(reader, GET, subscription, after_publication=after, limit=1)
    assert [event["args"][0] for event in found] == [3]
    found = asked(reader, GET, subscription, after_time=specified[0]["timestamp"])
    assert [event["args"][0] for event in found] == [3, 4]
    assert node.metric("realm_recorded_events", realm="realm1") == 3
    assert node.metric("realm_recorded_bytes", realm="realm1") > 0


def test_recorded_once_for_all_receivers(start_router, connect, store):
    node = start_router(keeping(**store))
    peers = [connect(node).join() for _ in range(3)]
    subscription = {peer.subscribe("com.kept") for peer in peers}.pop()
    publisher = connect(node).join()
    publisher.ask(PUBLISH, {"acknowledge": True, "disclose_me": True}, "com.kept", [1])
    publisher.hear_any()
    (event,) = asked(publisher, GET, subscription)
    assert (event["session_id"], event["authrole"]) == (publisher.id, "anonymous")
    assert event["details"]["publisher"] == publisher.id


def test_a_caller_without_permission_to_subscribe_gets_nothing(start_router, connect, store):
    node = start_router(keeping(**store))
    subscription = asked(connect(node).join(), LOOKUP, "com.kept")
    guest = connect(node, "guests").join()
    guest.ask(CALL, {}, GET, [subscription])
    assert guest.hear(ERROR)[4] == "wamp.error.not_authorized"
    assert node.metric("actions_refused_total", cause="permissions") == 1


def test_events_that_are_not_recorded(start_router, connect):
    node = start_router(keeping())
    for realm in ("realm1", "realm2"):
        peer = connect(node).join(realm)
        subscription = peer.subscribe("com.not.kept")
        peer.ask(CALL, {}, GET, [subscription])
        assert peer.hear(ERROR)[4] == "wamp.error.history_unavailable"


def test_the_feature_is_announced_where_it_is(start_router, connect, store):
    node = start_router(keeping(**store))
    for realm, there in (("realm1", True), ("realm2", False)):
        peer = connect(node)
        peer.say(1, realm, {"roles": {"publisher": {}}})
        features = peer.hear(WELCOME)[2]["roles"]["broker"]["features"]
        assert features.get("event_history", False) == there


def test_events_that_are_too_old(start_router, connect, store):
    history = [{"uri": "com.kept", "age_ms_max": 200}]
    node = start_router(keeping(**{**store, "event-history": history}))
    peer = connect(node).join()
    subscription = asked(peer, LOOKUP, "com.kept")
    peer.publish("com.kept", 1)
    await_true("it is gone", lambda: asked(peer, GET, subscription) == [], 30)


def test_a_store_on_disk_is_in_memory(start_router, connect):
    node = start_router(keeping(type="cfxdb", path="events", sync=True))
    peer = connect(node).join()
    peer.publish("com.kept", 1)
    assert len(asked(peer, GET, asked(peer, LOOKUP, "com.kept"))) == 1
    assert any("kept in memory" in line.text for line in node.log)


def test_more_than_an_answer_may_have(start_router, connect, store):
    node = keeping(**store)
    node["limits"] = {"history_answer_bytes_max": 2_000}
    peer = connect(start_router(node)).join()
    for number in range(3):
        peer.publish("com.kept", number, "x" * 1_000)
    peer.ask(CALL, {}, GET, [asked(peer, LOOKUP, "com.kept")])
    answer = peer.hear(RESULT)
    assert [event["args"][0] for event in answer[3][0]] == [2]
    assert answer[4] == {"incomplete": True}
