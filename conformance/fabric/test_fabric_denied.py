"""Denials by NATS: seen by operators, and never promised to clients."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from rig.nats import NatsServer
from rig.session import ERROR
from rig.waiting import await_true

from fabric.stage import await_neighbours, node_config
from fabric.test_fabric_access import PUBLIC, SEED

ALL = '"W1.realm1.>"'
SECRET = '{ allow: "W1.realm1.>", deny: "W1.realm1.e.com.secret.>" }'
MUTE = '{ allow: "W1.realm1.>", deny: "W1.realm1.c" }'


def account(publish: str = ALL, subscribe: str = ALL) -> str:
    """Return an account whose one user may do that."""
    permissions = f"permissions: {{ publish: {publish}, subscribe: {subscribe} }}"
    return f"accounts {{ one {{ users: [{{ nkey: {PUBLIC}, {permissions} }}] }} }}\n"


@pytest.fixture
def two(nats, start, tmp_path: Path):
    """Start two nodes on a server that lets them do that."""

    def started(permissions: str, **fabric: object):
        (server,) = nats(1, permissions)
        (tmp_path / "user.nk").write_text(SEED)
        nats_of = {"urls": [server.url], "credentials": str(tmp_path / "user.nk")}
        found = [start(node_config([], {"fabric": {"nats": nats_of, **fabric}})) for _ in range(2)]
        await_neighbours(found)
        return server, found

    return started


def permit(server: NatsServer, before: str, after: str) -> None:
    """Change what the user may do, while the server runs."""
    text = server.file.read_text()
    assert before in text
    server.file.write_text(text.replace(before, after))
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)


def test_a_subscription_that_is_denied_is_refused(two, session) -> None:
    _, (here, there) = two(account(subscribe=SECRET))
    subscribers, publisher = [session(here), session(here)], session(there)
    for times in range(3):
        for subscriber in subscribers:
            subscriber.tell_subscribe("com.secret.a")
            assert subscriber.peer.hear(ERROR)[4] == "wamp.error.network_failure"
        assert here.metric("fabric_denials_total", operation="subscribe") > times
    # All others hold, and the link does.
    for subscriber in subscribers:
        subscriber.subscribe("com.open")
    publisher.publish("com.secret.a", 1)
    publisher.publish("com.open", 2)
    assert [subscriber.event()[4] for subscriber in subscribers] == [[2], [2]]
    assert here.metric("fabric_attached") == 1
    assert here.metric("fabric_attachments_total") == 1
    await_true("nobody wants it", lambda: here.metric("fabric_denied") == 0)
    assert here.page("/health") == "ok\n"


def test_an_event_that_is_denied_is_counted(two, session) -> None:
    _, (here, there) = two(account(publish=SECRET))
    near, far, publisher = session(here), session(there), session(here)
    for each in (near, far):
        each.subscribe("com.", match="prefix")
    publisher.publish("com.secret.a", 1)
    publisher.publish("com.open", 2)
    assert [near.event()[4] for _ in range(2)] == [[1], [2]]
    assert far.event()[4] == [2]
    assert here.metric("fabric_denials_total", operation="publish") == 1
    assert here.metric("fabric_attached") == 1


def test_a_node_that_may_not_speak_is_seen_to_be_alone(two, session) -> None:
    server, (here, there) = two(account())
    permit(server, f"publish: {ALL}", f"publish: {MUTE}")
    for node in (here, there):
        await_true("denied", lambda node=node: node.metric("fabric_denied") == 1)
        await_true("left", lambda node=node: node.metric("fabric_attached") == 0)
        assert "Realm 'realm1'" in node.page("/health")
        assert "NATS denies what every node of the realm needs" in node.page("/")
    alone = session(here)
    alone.subscribe("com.a")
    session(here).publish("com.a", 1)
    assert alone.event()[4] == [1]
    permit(server, f"publish: {MUTE}", f"publish: {ALL}")
    for node in (here, there):
        await_true("attached", lambda node=node: node.metric("fabric_attached") == 1)
    await_neighbours([here, there])
    subscriber, publisher = session(there), session(here)
    subscriber.subscribe("com.b")
    publisher.publish("com.b", 2)
    assert subscriber.event()[4] == [2]
