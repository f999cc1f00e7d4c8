"""Nodes and servers that fail, beside others that go on."""

from __future__ import annotations

import re

import pytest
from rig.nats import await_routes
from rig.rawsocket import RawSocket
from rig.router import ROOT, Router
from rig.session import ABORT, ERROR, HELLO, PUBLISH, ROLES
from rig.waiting import await_true

from fabric.stage import Session, await_neighbours, node_config


def await_attached(node: Router, attached: bool = True) -> None:
    """Wait until the node reaches a server, or does not any more."""
    await_true("attached", lambda: node.metric("fabric_attached") == int(attached))


def await_event(publisher: Session, subscriber: Session, topic: str) -> None:
    """Wait until what the one publishes comes to the other."""
    subscriber.subscribe(topic)
    publisher.publish(topic, 1)
    assert subscriber.event()[4] == [1]


def test_a_node_that_is_killed_is_missed_by_nobody(nats, nodes, session) -> None:
    here, there, doomed = nodes(3, nats(3))
    publisher, subscriber = session(here), session(there)
    subscriber.subscribe("com.a")
    session(doomed).subscribe("com.a")
    doomed.kill()
    for number in range(50):
        publisher.publish("com.a", number)
        assert subscriber.event()[4] == [number]
    # Subscriptions wait for it until it is suspected.
    await_event(publisher, subscriber, "com.b")
    await_neighbours([here, there], 1)


def test_every_metric_is_in_the_documentation(nats, nodes) -> None:
    here, _ = nodes(2, nats())
    page = (ROOT / "docs/metrics.md").read_text()
    documented = re.findall(r"(?m)^\| `(crosstie_fabric_\w+)` \|", page)
    told = re.findall(r"(?m)^(crosstie_fabric_\w+)\{", here.page("/metrics"))
    assert documented
    assert set(documented) == set(told)


def test_a_node_that_ends_says_so(nats, nodes, session) -> None:
    here, there = nodes(2, nats())
    there.stop()
    await_neighbours([here], 0)
    assert here.metric("fabric_neighbours", state="suspected") == 0
    assert here.metric("fabric_frames_total", direction="received", kind="leave") == 1


def test_a_server_that_is_killed_and_comes_back(nats, start, session) -> None:
    servers = nats(3)
    urls = [server.url for server in servers]
    found = [start(node_config([urls[index], *urls])) for index in range(3)]
    await_neighbours(found)
    here, there, _ = found
    publisher, subscriber = session(here), session(there)
    subscriber.subscribe("com.kept")
    for server in servers:
        server.kill()
        for each in found:
            await_attached(each)
        await_neighbours(found)
        await_event(publisher, subscriber, f"com.{server.name}")
        # What was subscribed to before is subscribed to at another server, too.
        publisher.publish("com.kept", server.name)
        assert subscriber.event()[4] == [server.name]
        server.start()
        for other in servers:
            await_routes(other, servers)


def test_without_nats_a_node_serves_its_own_sessions(nats, nodes, session) -> None:
    (server,) = servers = nats()
    here, there = nodes(2, servers)
    publisher, near, far = session(here), session(here), session(there)
    for each in (near, far):
        each.subscribe("com.a")
    server.kill()
    for node in (here, there):
        await_attached(node, False)
    publisher.publish("com.a", "alone")
    assert near.event()[4] == ["alone"]
    await_event(publisher, session(here), "com.b")
    server.start()
    for node in (here, there):
        await_attached(node)
    await_neighbours([here, there])
    publisher.publish("com.a", "again")
    assert (near.event()[4], far.event()[4]) == (["again"], ["again"])


def test_without_nats_a_node_may_refuse(nats, nodes, session) -> None:
    (server,) = servers = nats()
    here, there = nodes(2, servers, detached="refuse")
    publisher, waiting, far = session(here), session(here), session(there)
    far.subscribe("com.a")
    server.kill()
    await_attached(here, False)
    publisher.peer.say(PUBLISH, 1, {"acknowledge": True}, "com.a", [1])
    assert publisher.peer.hear(ERROR)[4] == "wamp.error.network_failure"
    late = RawSocket.tcp(here.address("tcp")).shake_hands()
    late.say(HELLO, "realm1", {"roles": ROLES})
    assert late.hear(ABORT)[2] == "wamp.error.network_failure"
    # What is subscribed to now, is when others know of it.
    waiting.tell_subscribe("com.b")
    server.start()
    waiting.await_subscribed()
    await_neighbours([here, there])
    session(there).publish("com.b", 2)
    assert waiting.event()[4] == [2]


@pytest.mark.parametrize("frame", [b"", b"\x01", b"x" * 40, b"\x09" + b"\0" * 30])
def test_frames_that_are_none_are_refused_and_counted(frame, nats, nodes, session) -> None:
    (server,) = servers = nats()
    here, there = nodes(2, servers)
    publisher, subscriber = session(here), session(there)
    subscriber.subscribe("com.", match="prefix")
    with server.client() as hostile:
        for subject in ("W1.realm1.e.com.a", "W1.realm1.c"):
            hostile.publish(subject, frame)
        hostile.flush()
    await_true("counted", lambda: there.metric("fabric_frames_refused_total") >= 2)
    publisher.publish("com.a", 1)
    assert subscriber.event()[4] == [1]


def test_a_payload_that_is_none_reaches_nobody(nats, nodes, session) -> None:
    (server,) = servers = nats()
    here, there = nodes(2, servers)
    publisher, subscriber = session(here), session(there)
    subscriber.subscribe("com.a")
    with server.client() as hostile:
        hostile.subscribe("W1.realm1.e.>")
        hostile.flush()
        publisher.publish("com.a", "marker")
        await_true("the frame is heard", lambda: hostile.flush() or bool(hostile.messages))
        subject, frame = hostile.messages[0]
        assert subscriber.event()[4] == ["marker"]
        # The same again is no news; newer ones with a wound are no events.
        hostile.publish(subject, frame)
        for number in range(1, 100):
            newer = frame[:16] + (10_000 + number).to_bytes(8, "big") + frame[24:]
            hostile.publish(subject, newer[:-number])
        hostile.flush()
    await_true("counted", lambda: there.metric("fabric_frames_refused_total") >= 90)
    assert there.metric("fabric_events_duplicate_total") >= 1
    assert there.page("/health").startswith("ok")
