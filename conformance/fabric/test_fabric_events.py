"""Events between nodes, over one server and over three."""

from __future__ import annotations

import pytest
from rig.session import CALL, ERROR, PUBLISH
from rig.waiting import await_true

from fabric.stage import await_neighbours, node_config

BARRIERS = 150


@pytest.mark.parametrize("servers", [1, 3])
def test_events_cross_for_every_kind_of_subscription(servers, nats, nodes, session) -> None:
    here, there, elsewhere = nodes(3, nats(servers))
    publisher = session(here)
    subscribers = [session(node) for node in (here, there, elsewhere)]
    for subscriber in subscribers:
        subscriber.kinds = {
            subscriber.subscribe("com.example.x=y"): False,
            subscriber.subscribe("com.exa", match="prefix"): True,
            subscriber.subscribe("com..x=y", match="wildcard"): True,
        }
    for number in range(3):
        publisher.publish("com.example.x=y", number, [None, "é"])
    for subscriber in subscribers:
        events = [subscriber.event() for _ in range(9)]
        for subscription, has_topic in subscriber.kinds.items():
            own = [event for event in events if event[1] == subscription]
            assert [event[4] for event in own] == [[n, [None, "é"]] for n in range(3)]
            assert all(("topic" in event[3]) == has_topic for event in own)
        # One publication is one, wherever it is heard.
        assert len({event[2] for event in events}) == 3


@pytest.mark.parametrize("servers", [1, 3])
def test_no_event_is_lost_once_subscribed(servers, nats, nodes, session) -> None:
    here, there, elsewhere = nodes(3, nats(servers))
    publishers = [session(there), session(elsewhere)]
    subscriber = session(here)
    for number in range(BARRIERS):
        topic = f"com.example.t{number}"
        subscriber.subscribe(topic)
        for publisher in publishers:
            publisher.publish(topic, number)
        assert [subscriber.event()[4] for _ in publishers] == [[number]] * 2
    assert here.metric("fabric_barriers_total") >= BARRIERS


def test_one_publishers_events_keep_their_order_over_topics(nats, nodes, session) -> None:
    here, there = nodes(2, nats(3))
    subscriber, publisher = session(there), session(here)
    kinds = [
        ("com.example.a", {}),
        ("com.example.", {"match": "prefix"}),
        ("com..b", {"match": "wildcard"}),
        ("com.exam", {"match": "prefix"}),
    ]
    for topic, options in kinds:
        subscriber.subscribe(topic, **options)
    count = 2_000
    for number in range(count):
        publisher.tell(f"com.example.{'ab'[number % 2]}", number)
    last: dict[int, int] = {}
    heard = 0
    # Each is under three subscriptions.
    while heard < 3 * count:
        _, subscription, _, _, (number,) = subscriber.event()
        assert number > last.get(subscription, -1)
        # Nothing of a later publication before everything of this one.
        assert number >= max(last.values(), default=0)
        last[subscription] = number
        heard += 1
    assert there.metric("fabric_events_duplicate_total") >= 0


def test_lists_of_receivers_and_disclosure_hold_across(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    publisher, own = session(here), session(here)
    first, second = session(there), session(there)
    for each in (publisher, own, first, second):
        each.subscribe("com.example.a")
    publisher.publish("com.example.a", 1, eligible=[first.id], disclose_me=True)
    publisher.publish("com.example.a", 2, exclude=[first.id])
    publisher.publish("com.example.a", 3, exclude_authrole=["anonymous"])
    publisher.publish("com.example.a", 4, exclude_me=False)
    (event, after) = (first.event(), first.event())
    assert (event[4], event[3]["publisher"]) == ([1], publisher.id)
    assert (after[4], after[3]) == ([4], {})
    assert [second.event()[4] for _ in range(2)] == [[2], [4]]
    assert [own.event()[4] for _ in range(2)] == [[2], [4]]
    assert publisher.event()[4] == [4]


def test_topics_that_stay_on_their_node(nats, nodes, session) -> None:
    here, there = nodes(2, nats(), local_prefixes=["com.here."])
    publisher, near, far = session(here), session(here), session(there)
    for each in (near, far):
        each.subscribe("com.", match="prefix")
    publisher.publish("com.here.a", 1)
    publisher.publish("com.there.a", 2)
    assert [near.event()[4] for _ in range(2)] == [[1], [2]]
    assert far.event()[4] == [2]
    # A call finds the procedures of its own node.
    publisher.peer.say(CALL, 99, {}, "com.example.echo")
    assert publisher.peer.hear(ERROR)[4] == "wamp.error.no_such_procedure"


def test_events_too_long_for_nats_reach_no_subscriber(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    publisher, near, far = session(here), session(here), session(there)
    for each in (near, far):
        each.subscribe("com.", match="prefix")
    for topic, size in [("com.a", 9 << 20), ("com." + "x" * 4_000, 1)]:
        publisher.peer.say(PUBLISH, 7, {"acknowledge": True}, topic, ["x" * size])
        assert publisher.peer.hear(ERROR)[4] in (
            "wamp.error.payload_size_exceeded",
            "wamp.error.invalid_uri",
        )
    publisher.publish("com.b", 2)
    assert (near.event()[4], far.event()[4]) == ([2], [2])


def test_retained_events_are_sent_on_all_nodes(nats, start, session) -> None:
    (server,) = nats()
    here, there = (start(node_config([server.url])) for _ in range(2))
    await_neighbours([here, there])
    publisher, far = session(here), session(there)
    # No subscriber at all, or one on the other node.
    far.subscribe("com.b")
    publisher.publish("com.a", "old", retain=True)
    publisher.publish("com.a", 1, retain=True)
    publisher.publish("com.a", "nobody's", retain=True, eligible_authid=["nobody"])
    publisher.publish("com.b", 2, retain=True)
    assert far.event()[4] == [2]
    publisher.publish("com.c", "gone", retain=True)

    def await_retained(node, count: int) -> None:
        await_true(
            f"{count} are retained",
            lambda: node.metric("realm_retained_events", realm="realm1") == count,
        )

    # Of two nodes that publish at the same moment either may win.
    await_retained(there, 4)
    far.publish("com.c", retain=True, retain_ms=0)
    for topic, number in (("com.d", 4), ("com.e", 5)):
        far.publish(topic, number, retain=True)
    for node in (here, there):
        await_retained(node, 5)
    # One that begins late has them, too; and they outlive the node that they were published on.
    late = start(node_config([server.url]))
    await_neighbours([here, there, late])
    await_retained(late, 5)
    here.kill()
    for node in (there, late):
        subscriber = session(node)
        subscriber.subscribe("com.", match="prefix", get_retained=True)
        events = [subscriber.event() for _ in range(4)]
        assert [(e[3]["topic"], e[4]) for e in events] == [
            ("com.a", [1]),
            ("com.b", [2]),
            ("com.d", [4]),
            ("com.e", [5]),
        ]
        assert all(event[3]["retained"] for event in events)
        assert node.metric("fabric_retained_refused_total") == 0
    # An event removed on one node is removed on the other.
    session(late).publish("com.d", retain=True, retain_ms=0)
    for node in (there, late):
        await_retained(node, 4)
