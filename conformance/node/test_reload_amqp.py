"""AMQP users and permissions that change while the node runs."""

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

CONNECTION_FORCED, ACCESS_REFUSED = 320, 403


def permission(user: str, write: str = ".*") -> dict:
    """Return permissions with everything but perhaps writing."""
    return {"user": user, "configure": ".*", "write": write, "read": ".*"}


def node(users: dict[str, str], *permissions: dict, vhosts: tuple[str, ...] = ()) -> dict:
    """Return a node whose users have these passwords."""
    made = config.plain({"type": "amqp", "id": "amqp", "endpoint": config.tcp()})
    made["workers"][0]["amqp"] = {
        "users": [{"name": name, "password": password} for name, password in users.items()],
        "vhosts": [{"name": "/", "permissions": list(permissions)}]
        + [{"name": name} for name in vhosts],
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


def test_another_vhost_needs_a_restart(start_router, reload):
    router = start_router(node({"joe": "a"}, permission("joe")))
    joe = connect(router, "joe", "a")
    said = reload(router, node({"ann": "a"}, permission("ann"), vhosts=("second",)), code=1)
    assert "workers[worker1].amqp.vhosts[second]" in said
    assert may_publish(joe)
    joe.close()
