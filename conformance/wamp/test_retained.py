"""Retained events: the last event of a topic, for those who subscribe later."""

from __future__ import annotations

import pytest
from rig import config
from rig.links import Link, available
from rig.rawsocket import RawSocket
from rig.session import ERROR, EVENT, HELLO, PUBLISH, ROLES, SUBSCRIBE, SUBSCRIBED, WELCOME
from rig.waiting import await_true

SIDES = available(
    [
        Link("asyncio", "ws", "tcp", "json"),
        Link("twisted", "rs", "tcp", "msgpack"),
        Link("javascript", "ws", "tcp", "cbor"),
    ]
)


@pytest.mark.parametrize("subscriber_link", SIDES, ids=str)
@pytest.mark.parametrize("publisher_link", SIDES, ids=str)
def test_the_last_event_waits(open_link, uri, publisher_link, subscriber_link):
    publisher, subscriber = open_link(publisher_link), open_link(subscriber_link)
    publisher.publish(uri, "first", options={"retain": True})
    kept = publisher.publish(uri, "second", 2, options={"retain": True}, key=[1, None])
    publisher.publish(uri, "third")
    subscription = subscriber.subscribe(uri, get_retained=True)
    event = subscriber.next("published")
    assert (event["args"], event["kwargs"]) == (["second", 2], {"key": [1, None]})
    assert event["retained"] is True
    assert (event["subscription"], event["publication"]) == (subscription, kept)
    publisher.publish(uri, "live")
    event = subscriber.next("published")
    assert (event["args"], event["retained"]) == (["live"], False)


@pytest.mark.parametrize("link", SIDES, ids=str)
def test_patterns_get_them_topic_by_topic(session, other, uri):
    for name in ("b", "a", "c"):
        session.publish(f"{uri}.{name}", name, options={"retain": True})
    other.subscribe(f"{uri}.", match="prefix", get_retained=True)
    events = [other.next("published") for _ in range(3)]
    assert [(event["topic"], event["args"]) for event in events] == [
        (f"{uri}.{name}", [name]) for name in ("a", "b", "c")
    ]


def test_lists_are_applied_to_who_comes_later(open_link, uri):
    red, blue = (open_link(SIDES[0], path=f"/{role}") for role in ("red", "blue"))
    red.publish(uri, "for all", options={"retain": True})
    red.publish(uri, "for red", options={"retain": True, "eligible_authrole": ["red"]})
    for session, expected in ((red, "for red"), (blue, "for all")):
        session.subscribe(uri, get_retained=True)
        assert session.next("published")["args"] == [expected]


@pytest.mark.parametrize("into", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_between_serializers(abused, serializer, into):
    topic = f"com.retained.{serializer}.{into}"
    with RawSocket.tcp(abused.address("tcp")).shake_hands(serializer).join() as publisher:
        publisher.ask(
            PUBLISH, {"acknowledge": True, "retain": True, "_x": 7}, topic, [1.5], {"a": []}
        )
        publisher.hear(17)
    with RawSocket.tcp(abused.address("tcp")).shake_hands(into).join() as subscriber:
        subscriber.subscribe(topic, get_retained=True)
        assert subscriber.hear(EVENT)[3:] == [{"retained": True, "_x": 7}, [1.5], {"a": []}]


def test_it_is_announced(abused):
    with RawSocket.tcp(abused.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "realm1", {"roles": ROLES})
        roles = peer.hear(WELCOME)[2]["roles"]
    assert roles["broker"]["features"]["event_retention"] is True
    assert roles["dealer"]["features"]["registration_revocation"] is True


def test_bounds(start_router):
    """A publisher without end takes no more memory, and a subscription no more than its share."""
    limits = {
        "retained_events_max": 50,
        "retained_bytes_max": 100_000,
        "retained_event_bytes_max": 10_000,
        "retained_sent_max": 20,
    }
    router = start_router(config.plain(limits=limits))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        options = {"acknowledge": True, "retain": True}
        for number in range(1000):
            peer.ask(PUBLISH, options, f"com.flood.n{number:04}", ["x" * (number % 100)])
            peer.hear(17)
        peer.ask(PUBLISH, options, "com.flood.long", ["x" * 10_000])
        refused = peer.hear(ERROR)
        assert refused[4] == "crosstie.error.retained_event_bytes_max"
        assert "10000" in refused[5][0]
        peer.ask(SUBSCRIBE, {"match": "prefix", "get_retained": True}, "com.flood.")
        peer.hear(SUBSCRIBED)
        topics = [peer.hear(EVENT)[3]["topic"] for _ in range(20)]
        assert topics == [f"com.flood.n{number:04}" for number in range(950, 970)]
        peer.round_trip()
    await_true(
        "what was not sent is counted",
        lambda: router.metric("retained_events_not_sent_total") == 30,
    )
    assert router.metric("retained_events_evicted_total") == 950
    assert router.metric("realm_retained_events") == 50
    assert 50 * 256 < router.metric("realm_retained_bytes") < 100_000


def test_octets_make_room_too(start_router):
    limits = {"retained_bytes_max": 10_000}
    router = start_router(config.plain(limits=limits))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        for number in range(8):
            options = {"acknowledge": True, "retain": True, "exclude_authid": ["x" * 2000]}
            peer.ask(PUBLISH, options, f"com.octets.n{number}", [number])
            peer.hear(17)
        assert router.metric("realm_retained_events") == 4
        peer.ask(SUBSCRIBE, {"match": "wildcard", "get_retained": True}, "com.octets.")
        peer.hear(SUBSCRIBED)
        assert [peer.hear(EVENT)[4] for _ in range(4)] == [[number] for number in range(4, 8)]
        peer.round_trip()


def test_retained_events_that_end(start_router):
    """They go by themselves: as their publisher said, or their realm."""
    node = config.plain()
    store = {"type": "memory", "retained": [{"uri": "com.aged", "age_ms_max": 100}]}
    node["workers"][0]["realms"][0]["store"] = store
    router = start_router(node)
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        for topic, more in (("com.aged", {}), ("com.said", {"retain_ms": 100}), ("com.kept", {})):
            peer.ask(PUBLISH, {"acknowledge": True, "retain": True, **more}, topic, [1])
            peer.hear(17)
        await_true("two have ended", lambda: router.metric("realm_retained_events") == 1)
        for topic in ("com.aged", "com.said", "com.kept"):
            peer.subscribe(topic, get_retained=True)
        assert peer.hear(EVENT)[3] == {"retained": True}
        peer.ask(PUBLISH, {"acknowledge": True, "retain": True, "retain_ms": 0}, "com.kept")
        peer.hear(17)
        assert router.metric("realm_retained_events") == 0
