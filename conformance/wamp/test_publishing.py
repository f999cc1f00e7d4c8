"""Publishing over every link: who gets an event, and what is in it."""

import pytest
from conftest import DISCLOSED, FORBIDDEN
from rig.links import Link, only
from rig.puppet import WampError

VALUES = [None, True, -1, 2**53 - 1, 1.5, "ü😀", [1, [2]], {"k": [None]}]


def test_an_event_brings_what_was_published(session, other, uri):
    subscription = other.subscribe(uri)
    publication = session.publish(uri, *VALUES, key="ü")
    event = other.next("published")
    assert event["subscription"] == subscription
    assert event["publication"] == publication
    assert event["args"] == VALUES
    assert event["kwargs"] == {"key": "ü"}
    assert event["publisher"] is None


@only(lambda link: link.holds_binary)
def test_octets_in_an_event(session, other, uri):
    other.subscribe(uri)
    session.publish(uri, b"\x00\xff", data=b"x")
    event = other.next("published")
    assert (event["args"], event["kwargs"]) == ([b"\x00\xff"], {"data": b"x"})


def test_a_mebibyte(session, other, uri):
    other.subscribe(uri)
    text = "0123456789abcdef" * 65536
    session.publish(uri, text)
    assert other.next("published")["args"] == [text]


def test_without_acknowledgement(session, other, uri):
    other.subscribe(uri)
    assert session.publish(uri, 1, options={"acknowledge": False}) is None
    assert other.next("published")["args"] == [1]


def test_events_keep_their_order(session, other, uri):
    other.subscribe(uri)
    for number in range(300):
        session.publish(uri, number, options={"acknowledge": number % 100 == 99})
    assert [other.next("published")["args"][0] for _ in range(300)] == list(range(300))


def test_the_publisher_is_left_out_unless_it_asks(session, uri):
    session.subscribe(uri)
    session.publish(uri, 1)
    session.publish(uri, 2, options={"exclude_me": True})
    session.publish(uri, 3, options={"exclude_me": False})
    assert session.next("published")["args"] == [3]


def test_unsubscribing_ends_it(session, other, uri):
    other.unsubscribe(other.subscribe(uri))
    session.publish(uri, 1)
    other.round_trip()
    assert other.told_nothing()


def test_forbidden_topics(session):
    with pytest.raises(WampError) as raised:
        session.publish(f"{FORBIDDEN}.topic", 1)
    assert raised.value.uri == "wamp.error.not_authorized"
    with pytest.raises(WampError) as raised:
        session.subscribe(f"{FORBIDDEN}.topic")
    assert raised.value.uri == "wamp.error.not_authorized"


def test_every_matching_subscription_gets_its_event(session, other, uri):
    exact = other.subscribe(f"{uri}.a.b")
    prefix = other.subscribe(f"{uri}.a", match="prefix")
    wildcard = other.subscribe(f"{uri}..b", match="wildcard")
    other.subscribe(f"{uri}..c", match="wildcard")
    session.publish(f"{uri}.a.b", 1)
    events = {event["subscription"]: event for event in (other.next("published") for _ in "abc")}
    assert set(events) == {exact, prefix, wildcard}
    assert {event["topic"] for event in events.values()} == {f"{uri}.a.b"}
    assert len({event["publication"] for event in events.values()}) == 1
    other.round_trip()
    assert other.told_nothing()


def test_a_prefix_subscription(session, other, uri):
    other.subscribe(f"{uri}.a", match="prefix")
    for topic in ("a", "a.b", "ab", "b", "a.b.c"):
        session.publish(f"{uri}.{topic}", topic)
    # A prefix is a string's beginning, not whole components.
    got = [other.next("published") for _ in range(4)]
    assert [event["args"][0] for event in got] == ["a", "a.b", "ab", "a.b.c"]
    assert [event["topic"] for event in got] == [f"{uri}.{event['args'][0]}" for event in got]
    other.round_trip()
    assert other.told_nothing()


LISTS = [
    ("exclude", lambda red, blue: [red.id], "blue"),
    ("exclude_authid", lambda red, blue: ["bert"], "red"),
    ("exclude_authrole", lambda red, blue: ["red"], "blue"),
    ("eligible", lambda red, blue: [red.id], "red"),
    ("eligible_authid", lambda red, blue: ["bert", "nobody"], "blue"),
    ("eligible_authrole", lambda red, blue: ["red", "green"], "red"),
    ("eligible", lambda red, blue: [], ""),
    ("exclude", lambda red, blue: [red.id, blue.id], ""),
    ("exclude", lambda red, blue: [], "red blue"),
]


@pytest.mark.parametrize(("option", "value", "receivers"), LISTS)
def test_lists_say_who_gets_it(link, session, open_link, uri, option, value, receivers):
    red = open_link(Link("asyncio", "ws", "tcp", "msgpack"), path="/red")
    blue = open_link(Link("twisted", "ws", "tcp", "cbor"), path="/blue")
    assert (red.details["authid"], red.details["authrole"]) == ("ruby", "red")
    assert (blue.details["authid"], blue.details["authrole"]) == ("bert", "blue")
    red.subscribe(uri)
    blue.subscribe(uri)
    session.publish(uri, "listed", options={option: value(red, blue)})
    session.publish(uri, "fence")
    for name, subscriber in (("red", red), ("blue", blue)):
        expected = ["listed", "fence"] if name in receivers.split() else ["fence"]
        assert [subscriber.next("published")["args"][0] for _ in expected] == expected, name


def test_a_publisher_is_disclosed_where_the_realm_says_so(session, other, uri):
    topic = f"{DISCLOSED}.{uri}"
    other.subscribe(topic)
    session.publish(topic, 1)
    event = other.next("published")
    assert event["publisher"] == session.id
    assert event["publisher_authid"] == session.details["authid"]
    assert event["publisher_authrole"] == "anonymous"
