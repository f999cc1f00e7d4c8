"""Nodes and servers that fail, beside others that go on."""

from __future__ import annotations

import re
import signal

import pytest
from rig.nats import await_routes
from rig.rawsocket import RawSocket
from rig.router import ROOT, Router
from rig.session import ABORT, CALL, ERROR, HELLO, PUBLISH, RESULT, ROLES
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


def test_a_killed_node_does_not_disturb_the_others(nats, nodes, session) -> None:
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


def leave_behind(each: Session, topic: str, *args: object, **kwargs: object) -> None:
    """Add a testament."""
    each._request += 1
    procedure = "wamp.session.add_testament"
    each.peer.say(CALL, each._request, {}, procedure, [topic, list(args)], kwargs)
    each.peer.hear(RESULT)


def session_in(details: object) -> object:
    """Return the session that has joined, if these are its details."""
    return details["session"] if isinstance(details, dict) else None


def test_testaments_of_nodes_that_die_or_seem_to(nats, nodes, session) -> None:
    here, there, doomed, stopped = nodes(4, nats())
    watcher, far = session(here), session(there)
    names = {watcher.subscribe(topic): topic for topic in ("com.gone", "com.marker")}
    for topic in ("on_leave", "on_join"):
        names[watcher.subscribe(f"wamp.session.{topic}")] = topic
    far.subscribe("com.gone")
    dead, asleep, flushed = session(doomed), session(stopped), session(doomed)
    leave_behind(dead, "com.gone", "dead", 2)
    leave_behind(dead, "com.gone", "dead", 1, scope="detached")
    leave_behind(asleep, "com.gone", "asleep")
    leave_behind(flushed, "com.gone", "flushed")
    flushed.call("wamp.session.flush_testaments")
    assert flushed.result()[3] == [1]

    def told(count: int) -> list[tuple]:
        heard: list[tuple] = []
        while len(heard) < count:
            event = watcher.event()
            what, details = names[event[1]], event[4]
            # Without processor time for seconds its node may seem dead, too.
            if what.startswith("on_") and far.id in (details[0], session_in(details[0])):
                continue
            heard.append((what, *details))
        return heard

    assert [what for what, *_ in told(3)] == ["on_join"] * 3
    # Three of them, in two places each.
    all_nodes = (here, there, doomed, stopped)
    await_true(
        "they are held",
        lambda: sum(node.metric("fabric_testaments") for node in all_nodes) == 6,
    )
    doomed.kill()
    stopped.signal(signal.SIGSTOP)
    try:
        ended = told(6)
    finally:
        stopped.signal(signal.SIGCONT)
    left = {("on_leave", each.id) for each in (dead, asleep, flushed)}
    assert set(ended[:3]) == left
    gone = [each[1:] for each in ended[3:]]
    assert sorted(gone) == [("asleep",), ("dead", 1), ("dead", 2)]
    assert gone.index(("dead", 1)) < gone.index(("dead", 2))
    assert sorted(far.event()[4] for _ in gone) == [list(each) for each in sorted(gone)]
    # It only seemed to be dead: its session lives, and what it has left has been published.
    [(what, details)] = told(1)
    assert (what, details["session"]) == ("on_join", asleep.id)
    await_neighbours([here, there, stopped])
    asleep.close()
    assert told(1) == [("on_leave", asleep.id)]
    far.publish("com.marker")
    assert told(1) == [("com.marker",)]
    # The one that was stopped learns last that a node has died.
    for node in (here, there, stopped):
        await_true("it holds none", lambda node=node: node.metric("fabric_testaments") == 0)


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
        # Earlier subscriptions are made at another server, too.
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
    code, why = here.health()
    assert code == 200
    assert "no NATS server is reached, it is alone" in why
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
    code, why = here.health()
    assert code == 503
    assert (
        "Realm 'realm1' of router 'worker1': no NATS server is reached, no session is admitted"
        in why
    )
    publisher.peer.say(PUBLISH, 1, {"acknowledge": True}, "com.a", [1])
    assert publisher.peer.hear(ERROR)[4] == "wamp.error.network_failure"
    late = RawSocket.tcp(here.address("tcp")).shake_hands()
    late.say(HELLO, "realm1", {"roles": ROLES})
    assert late.hear(ABORT)[2] == "wamp.error.network_failure"
    # New subscriptions are answered when others know of them.
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


def test_a_malformed_payload_reaches_no_subscriber(nats, nodes, session) -> None:
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
