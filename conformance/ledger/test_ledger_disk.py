"""Servers of NATS whose disks are full, or that may keep no more."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from rig.nats import NatsServer, cluster, jetstream
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import PERSISTENT, QUEUE, await_owner, connect, declare, role, told

# The needs of a server without messages, with room for some or for many.
SMALL, LARGE, ROOM = "5m", "12m", "64m"
BODY = b"x" * 100_000
ELECTION_S = 120.0
# More than a node with these limits has in memory.
DEEP = {"memory_bytes_max": 8 << 20}
DEEP_COUNT = 250


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Mount a file system of that size, or have one be as large."""
    if os.geteuid() != 0:
        pytest.skip("file systems are mounted by root")
    mounted: list[Path] = []

    def disk(name: str, size: str) -> Path:
        place = tmp_path / f"disk_{name}"
        place.mkdir(exist_ok=True)
        options = f"size={size},remount" if place in mounted else f"size={size}"
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no file system is mounted: {done.stderr.strip()}")
        if place not in mounted:
            mounted.append(place)
        return place

    yield disk
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], capture_output=True)


def has_given_up(server: NatsServer) -> bool:
    """Whether a server says that it keeps nothing any more."""
    return "will be DISABLED" in server.log.read_text()


def publish(node: Router, first: int, is_over: Callable[[int], bool]) -> int:
    """Publish numbered messages, each when the one before it is confirmed; return the last one."""
    number = first
    with connect(node) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        while not is_over(number):
            number += 1
            channel.basic_publish("", QUEUE, f"{number} ".encode() + BODY, PERSISTENT)
    return number


def publish_until_blocked(node: Router, first: int, count: int) -> None:
    """Publish so many messages at once, and then some, until the publisher is told to wait."""
    connection = connect(node)
    blocked: list[bool] = []
    connection.add_on_connection_blocked_callback(lambda *_: blocked.append(True))
    channel = connection.channel()
    for number in range(first, first + count):
        channel.basic_publish("", QUEUE, f"{number} ".encode() + BODY, PERSISTENT)

    def is_blocked() -> bool:
        channel.basic_publish("", QUEUE, b"0", PERSISTENT)
        connection.process_data_events(0.1)
        return bool(blocked)

    await_true("its publisher is told to wait", is_blocked)


def numbers(node: Router) -> list[int]:
    """Take all messages."""
    found = []
    with connect(node) as connection:
        channel = connection.channel()
        while (got := channel.basic_get(QUEUE, auto_ack=True))[0] is not None:
            found.append(int(got[2].split()[0]))
    return [number for number in found if number]


def test_disks_that_are_full(tmp_path, disk, start, request):
    """One of three goes unnoticed; when all are, publishers wait, and nothing confirmed is lost."""
    directory = tmp_path / "nats"
    directory.mkdir()
    sizes = {"nats1": SMALL, "nats2": LARGE, "nats3": LARGE}
    places = {name: disk(name, size) for name, size in sizes.items()}

    def each(name: str) -> str:
        return jetstream(name).replace(f'"js-{name}"', f'"{places[name]}/js"')

    servers = cluster(directory, 3, each=each)
    for server in servers:
        request.addfinalizer(server.close)
    node = start(servers, "node_a")
    assert await_owner([node], ELECTION_S) is node
    declare(node)
    reached = publish(node, 0, lambda _: has_given_up(servers[0]))
    confirmed = publish(node, reached, lambda number: number >= reached + 5)
    assert not any(has_given_up(server) for server in servers[1:])
    publish_until_blocked(node, confirmed + 1, 90)
    assert any(has_given_up(server) for server in servers[1:])
    await_true("it is said", lambda: "its log takes nothing: " in node.health()[1])
    # Room is not enough for a server that has given up.
    for name in sizes:
        disk(name, ROOM)
    for server in servers:
        server.kill()
    for server in servers:
        server.start()
    publish_again(node)
    found = numbers(node)
    assert found == sorted(found)
    assert set(range(1, confirmed + 1)) <= set(found)


def test_servers_that_may_keep_no_more(tmp_path, start, request):
    """Appends are refused in the servers' words, until they may keep more."""
    directory = tmp_path / "nats"
    directory.mkdir()
    bounded = jetstream("nats1").replace("max_file: 1GB", "max_file: 2MB")
    (server,) = cluster(directory, 1, each=lambda _: bounded)
    request.addfinalizer(server.close)
    node = start([server], "node_a")
    declare(await_owner([node]))
    confirmed = publish(node, 0, lambda number: number >= 5)
    publish_until_blocked(node, confirmed + 1, 30)
    words = "its log takes nothing: insufficient"
    await_true("it is said", lambda: words in node.health()[1])
    # Nor can it be moved then.
    second = start([server], "node_b")
    stays = "its log acknowledges nothing: it stays here"
    await_true("it is not moved", lambda: stays in told(node, "amqp", "move", "/", code=1))
    assert role(node) == "owner"
    server.file.write_text(server.file.read_text().replace("max_file: 2MB", "max_file: 1GB"))
    server.kill()
    # An earlier refusal is no fault when the node no longer owns the vhost.
    lost = "is on no node that is known: no NATS server is reached"
    await_true("it says what is", lambda: lost in node.health()[1])
    server.start()
    owner = await_owner([node, second])
    publish_again(owner)
    found = numbers(owner)
    assert found == sorted(found)
    assert set(range(1, confirmed + 1)) <= set(found)


def publish_again(node: Router) -> None:
    """Wait until the node owns the vhost, and its log takes something."""

    def is_taken() -> bool:
        try:
            publish(node, -1, lambda number: number >= 0)
        except (pika.exceptions.AMQPError, OSError):
            return False
        return role(node) == "owner"

    await_true("it is taken", is_taken, ELECTION_S)


def test_a_full_disk_is_named_while_a_copy_is_filled_from_the_log(
    tmp_path, nats, start, disk
) -> None:
    """The queue is served meanwhile, and the copy is whole once there is room."""
    servers = nats()
    owner = await_owner([start(servers, "node_a", limits=DEEP)])
    with connect(owner) as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        channel.confirm_delivery()
        for number in range(1, DEEP_COUNT + 1):
            channel.basic_publish("", QUEUE, f"{number} ".encode() + BODY, PERSISTENT)
    (tmp_path / "node_b").mkdir()
    copies = tmp_path / "node_b" / "amqp.store.replicated"
    copies.symlink_to(disk("b", "20m"))
    other = start(servers, "node_b", limits=DEEP, keep_local=True)
    await_true("it stands by", lambda: role(other) == "standby")
    owner.stop()
    assert await_owner([other], ELECTION_S) is other
    full = "this node's copy cannot be written: "
    await_true("the full disk is named", lambda: full in other.health()[1])
    with connect(other) as connection:
        got, _, body = connection.channel().basic_get(QUEUE, auto_ack=True)
        assert got.message_count == DEEP_COUNT - 1
        assert body.startswith(b"1 ")
    assert list(copies.glob("*.partial"))
    disk("b", ROOM)
    await_true("the copy is whole", lambda: not list(copies.glob("*.partial")))
    await_true("the alarm is over", lambda: full not in other.health()[1])
