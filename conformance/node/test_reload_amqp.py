"""AMQP users, permissions, vhosts and limits that change while the node runs."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.router import Router, binary
from rig.waiting import DEADLINE_S

CONNECTION_FORCED, ACCESS_REFUSED, PRECONDITION_FAILED = 320, 403, 406


def permission(user: str, write: str = ".*") -> dict:
    """Return permissions with everything but perhaps writing."""
    return {"user": user, "configure": ".*", "write": write, "read": ".*"}


def node(users: dict[str, str], *permissions: dict) -> dict:
    """Return a node whose users have these passwords."""
    made = config.plain({"type": "amqp", "id": "amqp", "endpoint": config.tcp()})
    made["workers"][0]["amqp"] = {
        "users": [{"name": name, "password": password} for name, password in users.items()],
        "vhosts": [{"name": "/", "permissions": list(permissions)}],
    }
    return made


@pytest.fixture
def reload() -> Callable[..., str]:
    """Change a node's configuration; return all that the command says."""

    def change(router: Router, configuration: dict, code: int = 0) -> str:
        (router.directory / "config.json").write_text(json.dumps(configuration))
        command = [str(binary()), "reload", "--cbdir", str(router.directory)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * DEADLINE_S)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    return change


def connect(router: Router, user: str, password: str) -> Peer:
    """Log in."""
    return Peer(socket.create_connection(router.address("amqp"))).open(user, password)


def may_publish(peer: Peer) -> bool:
    """Say whether a publication on a channel of its own is confirmed, or closes that with 403."""
    number = peer.channel()
    peer.call("confirm.select", number)
    peer.expect("confirm.select-ok", number)
    peer.publish("amq.topic", "key", b"body", channel=number)
    answer = peer.hear(number)
    if answer.name == "basic.ack":
        peer.call("channel.close", number, code=200, text="")
        peer.expect("channel.close-ok", number)
        return True
    assert answer.name == "channel.close", answer
    assert next(iter(answer.arguments.values())) == ACCESS_REFUSED, answer
    peer.call("channel.close-ok", number)
    return False


def test_users_come_and_go(start_router, reload):
    both = permission("joe"), permission("ann")
    router = start_router(node({"joe": "a", "ann": "b"}, *both))
    joe, ann = connect(router, "joe", "a"), connect(router, "ann", "b")
    said = reload(router, node({"ann": "b", "eve": "c"}, permission("ann"), permission("eve")))
    assert "removed workers[worker1].amqp.users[joe]: at once" in said
    code, text, _, _ = joe.expect_connection_close()
    assert (code, "user 'joe' is deleted" in text) == (CONNECTION_FORCED, True), text
    assert may_publish(ann)
    eve = connect(router, "eve", "c")
    assert may_publish(eve)
    with pytest.raises(AssertionError):
        connect(router, "joe", "a")
    for peer in (joe, ann, eve):
        peer.close()


def test_a_right_is_lost_at_the_next_method_and_comes_back(start_router, reload):
    router = start_router(node({"joe": "a"}, permission("joe")))
    joe = connect(router, "joe", "a")
    assert may_publish(joe)
    for rights, expected in [
        ([permission("joe", write="^other$")], False),
        ([permission("joe")], True),
        # Later logins may not even open the vhost, and present ones may do nothing in it.
        ([], False),
        ([permission("joe")], True),
    ]:
        reload(router, node({"joe": "a"}, *rights))
        assert may_publish(joe) == expected, rights
    joe.close()


def test_a_changed_password_applies_to_later_logins(start_router, reload):
    router = start_router(node({"joe": "a"}, permission("joe")))
    joe = connect(router, "joe", "a")
    reload(router, node({"joe": "b"}, permission("joe")))
    assert may_publish(joe)
    with pytest.raises(AssertionError):
        connect(router, "joe", "a")
    again = connect(router, "joe", "b")
    assert may_publish(again)
    for peer in (joe, again):
        peer.close()


def with_vhosts(*names: str) -> dict:
    """Return a node whose user may do everything in these vhosts."""
    made = node({"joe": "a"}, permission("joe"))
    made["workers"][0]["amqp"]["vhosts"] = [
        {"name": name, "permissions": [permission("joe")]} for name in names
    ]
    return made


def with_limits(**limits: int) -> dict:
    """Return a node with these limits of AMQP."""
    made = node({"joe": "a"}, permission("joe"))
    made["workers"][0]["amqp"]["limits"] = limits
    return made


def enter(router: Router, vhost: str) -> Peer:
    """Open a vhost, and channel 1 with confirms."""
    peer = Peer(socket.create_connection(router.address("amqp"))).open("joe", "a", vhost)
    peer.channel()
    peer.call("confirm.select")
    peer.expect("confirm.select-ok")
    return peer


def ready(peer: Peer, queue: str = "q") -> int:
    """Return the number of ready messages of a durable queue, which is declared."""
    peer.call("queue.declare", queue=queue, durable=True)
    return peer.expect("queue.declare-ok")["messages"]


def test_vhosts_come_and_go(start_router, reload):
    router = start_router(with_vhosts("/"))
    first = enter(router, "/")
    said = reload(router, with_vhosts("/", "second"))
    assert "added workers[worker1].amqp.vhosts[second]: at once" in said
    second = enter(router, "second")
    assert ready(second) == 0
    second.publish("", "q", b"kept", {"delivery_mode": 2})
    second.expect("basic.ack")

    # A vhost that is gone ends its connections alone, and its messages stay.
    said = reload(router, with_vhosts("/"))
    assert "removed workers[worker1].amqp.vhosts[second]: at once" in said
    code, text, _, _ = second.expect_connection_close()
    assert (code, text) == (
        CONNECTION_FORCED,
        "CONNECTION_FORCED - vhost 'second' is down",
    )
    first.round_trip()
    with pytest.raises(AssertionError, match="vhost second not found"):
        enter(router, "second")
    reload(router, with_vhosts("/", "second"))
    second = enter(router, "second")
    assert ready(second) == 1
    for peer in (first, second):
        peer.leave()


def test_contents_from_before_the_start_need_another_start(start_router, reload):
    router = start_router(with_vhosts("/", "second"))
    second = enter(router, "second")
    assert ready(second) == 0
    second.leave()
    router.stop()
    again = Router(router.directory, config=with_vhosts("/"))
    try:
        said = reload(again, with_vhosts("/", "second"), code=1)
        assert "vhost 'second' needs a restart" in said
        enter(again, "/").leave()
    finally:
        again.stop()


def test_a_replicated_vhost_needs_a_restart(start_router, reload):
    router = start_router(with_vhosts("/"))
    changed = with_vhosts("/", "second")
    changed["workers"][0]["amqp"]["vhosts"][1]["replicated"] = {
        "nats": {"urls": ["nats://127.0.0.1:1"]}
    }
    said = reload(router, changed, code=1)
    assert "a replicated vhost of worker 'worker1' needs a restart" in said
    enter(router, "/").leave()


def test_limits_apply_at_once(start_router, reload):
    router = start_router(with_limits(queues_max=1))
    joe = enter(router, "/")
    assert ready(joe) == 0
    joe.call("queue.declare", queue="other", durable=True)
    assert joe.expect_channel_close()[0] == PRECONDITION_FAILED
    said = reload(router, with_limits(queues_max=2, message_bytes_max=1024))
    assert "changed workers[worker1].amqp.limits.queues_max from 1 to 2: at once" in said
    joe.channel()
    assert ready(joe, "other") == 0
    joe.publish("", "q", bytes(1025))
    assert joe.expect_channel_close()[0] == PRECONDITION_FAILED
    said = reload(router, with_limits(login_delay_max_ms=1), code=1)
    assert "restart of the node: workers[worker1].amqp.limits.login_delay_max_ms;" in said
    joe.leave()


def test_a_lower_bound_of_memory_blocks_publishers(start_router, reload):
    router = start_router(with_limits())
    joe, ann = enter(router, "/"), enter(router, "/")
    joe.call("queue.declare", queue="transient")
    joe.expect("queue.declare-ok")
    for _ in range(4):
        joe.publish("", "transient", bytes(500_000))
        joe.expect("basic.ack")
    reload(router, with_limits(memory_bytes_max=1 << 20))
    joe.publish("", "transient", b"one more")
    assert joe.expect("connection.blocked")["reason"] == "low on memory"
    ann.round_trip()
    reload(router, with_limits(memory_bytes_max=1 << 30))
    joe.expect("connection.unblocked")
    joe.expect("basic.ack")
    for peer in (joe, ann):
        peer.leave()
