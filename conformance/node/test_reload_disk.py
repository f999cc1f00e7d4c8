"""Reloads of a node whose disk is full, and of the free space that a broker wants."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import config
from rig.amqp_peer import Peer
from rig.container import RefusedError
from rig.node import management
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import ERROR, PUBLISH
from rig.small_disk import MIB, Disk
from rig.waiting import await_true

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
PERSISTENT = {"delivery_mode": 2}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 64 mebibytes."""
    disk = Disk(tmp_path / "disk", 64 * MIB)
    yield disk
    disk.unmount()


@pytest.fixture
def node(small_disk) -> Iterator[Router]:
    """A node there."""
    router = Router(small_disk.place, config=configured())
    yield router
    router.stop()


def configured(*forbidden: str, users: tuple[str, ...] = ("joe",), free: int = 0) -> dict:
    """Return a node whose users may do everything, and whose sessions may not publish these."""
    amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    made = config.plain(config.universal("tcp", config.tcp()), amqp)
    worker = made["workers"][0]
    permissions = [config.permission(uri, publish=False) for uri in forbidden]
    permissions.append(config.permission("*"))
    worker["realms"][0]["roles"] = [config.role("anonymous", *permissions)]
    worker["amqp"] = {
        "users": [{"name": name, "password": "a"} for name in users],
        "vhosts": [{"name": "/", "permissions": [{"user": each, **EVERYTHING} for each in users]}],
        "limits": {"disk_free_bytes_min": free},
    }
    return made


def write(node: Router, configuration: dict) -> None:
    """Replace the configuration's file."""
    (node.directory / "config.json").write_text(json.dumps(configuration))


def reload(node: Router) -> dict:
    """Reload, which must succeed."""
    with management(node.directory) as operator:
        told = operator.call("crossbar.reload")
    assert told["applied"], told
    return told


def enter(node: Router, user: str = "joe") -> Peer:
    """Open a channel with confirms and a durable queue."""
    peer = Peer(socket.create_connection(node.address("amqp"))).open(user, "a")
    peer.channel()
    peer.call("confirm.select")
    peer.expect("confirm.select-ok")
    peer.call("queue.declare", queue="kept", durable=True)
    peer.expect("queue.declare-ok")
    return peer


def may_publish(session: RawSocket, topic: str) -> bool:
    """Say whether a session may publish."""
    session.ask(PUBLISH, {"acknowledge": True}, topic)
    return session.hear_any()[0] != ERROR


def is_kept(peer: Peer) -> bool:
    """Say whether a durable message is confirmed."""
    peer.publish("", "kept", bytes(100_000), PERSISTENT)
    return peer.hear().name == "basic.ack"


def test_a_full_disk_prevents_no_reload(node, small_disk):
    joe, session = enter(node), RawSocket.tcp(node.address("tcp")).shake_hands().join()
    write(node, configured("com.secret", users=("joe", "eve")))
    small_disk.leave_free(0)
    # The store has a reserve of its own.
    await_true("a message is refused", lambda: not is_kept(joe))
    assert may_publish(session, "com.secret")
    assert reload(node)["changes"]
    assert not may_publish(session, "com.secret")
    eve = Peer(socket.create_connection(node.address("amqp"))).open("eve", "a")
    eve.leave()
    # What does not fit on the disk is no configuration, and what was in force stays so.
    with pytest.raises(OSError, match="No space left"):
        write(node, configured(*(f"com.{nth}.{'x' * 100}" for nth in range(10_000))))
    with management(node.directory) as operator, pytest.raises(RefusedError, match=r"config\.json"):
        operator.call("crossbar.reload")
    assert not may_publish(session, "com.secret")
    assert may_publish(session, "com.open")
    small_disk.empty()
    write(node, configured("com.open"))
    assert reload(node)["changes"]
    assert not may_publish(session, "com.open")
    await_true("messages are kept again", lambda: is_kept(joe))
    session.close()
    joe.leave()


def test_a_reload_changes_the_free_space_that_a_broker_wants(node, small_disk):
    joe = enter(node)
    assert is_kept(joe)
    # Less than an eighth of the disk, which is the most that a broker wants of a small one.
    small_disk.leave_free(6 * MIB)
    assert is_kept(joe)
    write(node, configured(free=64 * MIB))
    key = "workers[worker1].amqp.limits.disk_free_bytes_min"
    assert [each["key"] for each in reload(node)["changes"]] == [key]
    await_true("the disk is low", lambda: "disk" in node.health()[1])
    joe.publish("", "kept", b"blocked", PERSISTENT)
    assert joe.expect("connection.blocked")["reason"] == "low on disk"
    # A lower bound frees its publishers.
    write(node, configured(free=1 * MIB))
    reload(node)
    joe.expect("connection.unblocked")
    joe.expect("basic.ack")
    assert is_kept(joe)
    joe.leave()
