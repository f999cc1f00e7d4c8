"""`crosstie backup`: of a node under load, of a stopped one, of several stores; and restored."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest
from rig import config
from rig.node import Node
from rig.router import Router, binary
from rig.waiting import DEADLINE_S, await_true

PERSISTENT = pika.BasicProperties(delivery_mode=2)
BODY = b"x" * 20_000
# Confirmed before a backup begins: several of its slices.
BEFORE = 400


def crosstie(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    """Run a command to its end, in an environment that names no node directory."""
    command = [str(binary()), *map(str, arguments)]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=cwd, env=environment, text=True, capture_output=True, timeout=60, check=False
    )


def worker(store: str) -> dict:
    """Return a router worker that speaks nothing but AMQP."""
    transport = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
    return {"type": "router", "amqp": {"store": store}, "transports": [transport]}


def address(node: Node, number: int = 1) -> tuple[str, int]:
    """Return where a worker of a node speaks AMQP."""
    line = node.says(f"'worker{number}': transport 'amqp' started at")
    found = re.search(r"amqp://([\d.]+):(\d+)", line.text)
    assert found, line.text
    return found[1], int(found[2])


def connect(place: tuple[str, int]) -> pika.BlockingConnection:
    """Return a connection of pika's."""
    return pika.BlockingConnection(pika.ConnectionParameters(*place))


def names(place: tuple[str, int]) -> list[int]:
    """Return the numbers of all messages, in their order."""
    with connect(place) as connection:
        channel = connection.channel()
        count = channel.queue_declare("kept", durable=True, passive=True).method.message_count
        bodies = [channel.basic_get("kept", auto_ack=True)[2] for _ in range(count)]
    assert all(body.endswith(BODY) for body in bodies)
    return [int(body[: -len(BODY)]) for body in bodies]


class Publisher:
    """Publishes numbered messages, one confirmed after the other, until it is told to stop."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.confirmed = 0
        self.failed: list[Exception] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._run, args=(place,))
        self._thread.start()

    def stop(self) -> None:
        """Take no more, and say what went wrong."""
        self._is_over = True
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert not self.failed, self.failed

    def _run(self, place: tuple[str, int]) -> None:
        try:
            with connect(place) as connection:
                channel = connection.channel()
                channel.queue_declare("kept", durable=True)
                channel.confirm_delivery()
                while not self._is_over:
                    body = b"%d" % self.confirmed + BODY
                    channel.basic_publish("", "kept", body, PERSISTENT)
                    self.confirmed += 1
        except (pika.exceptions.AMQPError, OSError) as error:
            self.failed.append(error)


@pytest.fixture
def start_node(tmp_path) -> Iterator[Callable[..., Node]]:
    """Start nodes in directories of their own; they end with the test."""
    running: list[Node] = []

    def start(name: str, *stores: str) -> Node:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        workers = [worker(store) for store in stores or ["broker.store"]]
        started = Node(directory, {"version": 2, "workers": workers})
        running.append(started)
        started.says("^Ready")
        return started

    yield start
    for each in running:
        each.close()


def test_a_backup_under_load_has_all_that_was_confirmed_before(start_node, tmp_path):
    node = start_node("first")
    publisher = Publisher(address(node))
    file = tmp_path / "backups/monday.store"
    file.parent.mkdir()
    try:
        await_true("there is something to copy", lambda: publisher.confirmed >= BEFORE)
        before = publisher.confirmed
        done = crosstie("backup", file, "--cbdir", node.directory, cwd=tmp_path)
        after = publisher.confirmed
        assert done.returncode == 0, done.stderr
        size = file.stat().st_size
        assert done.stdout == f"Backed up the store of worker 'worker1' to {file}: {size} bytes\n"
        node.says(f"store backed up to {file}, {size} bytes")
        # And the node has gone on.
        await_true("it goes on", lambda: publisher.confirmed > after)
    finally:
        publisher.stop()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == [file.name]

    (tmp_path / "second").mkdir()
    shutil.copy(file, tmp_path / "second/broker.store")
    kept = names(address(start_node("second")))
    assert kept == list(range(len(kept)))
    assert before <= len(kept) <= after + 1
    assert names(address(node)) == list(range(publisher.confirmed))


def test_existing_files_stay(start_node, tmp_path):
    node = start_node("node")
    # Of a node that has kept nothing, an empty store.
    done = crosstie("backup", "empty", "--cbdir", node.directory, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "empty").read_bytes().startswith(b"XTIEBAK")
    assert not (node.directory / "broker.store").exists()
    with connect(address(node)) as connection:
        connection.channel().queue_declare("kept", durable=True)
    for name in ("mine", "mine.partial"):
        (tmp_path / name).write_text("mine")
        done = crosstie("backup", "mine", "--cbdir", node.directory, cwd=tmp_path)
        assert done.returncode == 1, done
        assert f"{tmp_path / name} is there already" in done.stderr
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    done = crosstie("backup", "missing/mine", "--cbdir", node.directory, cwd=tmp_path)
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert not list(tmp_path.glob("*mine*"))
    done = crosstie("backup", "mine", "--cbdir", node.directory, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_each_of_several_stores_is_named(start_node, tmp_path):
    node = start_node("node", "one.store", "two.store")
    for number in (1, 2):
        with connect(address(node, number)) as connection:
            connection.channel().queue_declare(f"queue{number}", durable=True)
    where = ("--cbdir", node.directory)
    done = crosstie("backup", "copy", *where, cwd=tmp_path)
    assert done.returncode == 1
    assert "name one of worker1, worker2 with --worker" in done.stderr
    assert not (tmp_path / "copy").exists()
    for number in (1, 2):
        one = ("--worker", f"worker{number}")
        done = crosstie("backup", f"copy{number}", *one, *where, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        content = (tmp_path / f"copy{number}").read_bytes()
        assert [f"queue{n}".encode() in content for n in (1, 2)] == [number == 1, number == 2]
    done = crosstie("backup", "copy", "--worker", "worker3", *where, cwd=tmp_path)
    assert done.returncode == 1
    assert "no worker 'worker3'" in done.stderr


def test_the_store_of_a_node_that_is_stopped(start_node, tmp_path):
    node = start_node("first")
    publisher = Publisher(address(node))
    await_true("something is kept", lambda: publisher.confirmed >= 10)
    publisher.stop()
    store = node.directory / "broker.store"
    done = crosstie("backup", "copy", "--store", store, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{store} is in use" in done.stderr
    # However it ended.
    node.process.kill()
    node.process.wait()
    done = crosstie("backup", "copy", "--cbdir", node.directory, cwd=tmp_path)
    assert done.returncode == 2
    assert "--store" in done.stderr
    done = crosstie("backup", "copy", "--store", store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = crosstie("backup", "again", "--store", tmp_path / "missing", cwd=tmp_path)
    assert done.returncode == 2
    assert "missing" in done.stderr
    (tmp_path / "second").mkdir()
    (tmp_path / "copy").rename(tmp_path / "second/broker.store")
    assert names(address(start_node("second"))) == list(range(publisher.confirmed))


def test_the_embedded_default_is_backed_up(tmp_path):
    node = Router(tmp_path, "--listen", "127.0.0.1:0")
    try:
        with connect(node.address("amqp")) as connection:
            connection.channel().queue_declare("lasting", durable=True)
        done = crosstie("backup", "copy", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert b"lasting" in (tmp_path / "copy").read_bytes()
    finally:
        node.stop()
