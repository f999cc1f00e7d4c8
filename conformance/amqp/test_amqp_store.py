"""`crosstie store check`, `store salvage` and `restore`, on the store of a killed node."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from rig import config
from rig.node import Node
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true

PERSISTENT = pika.BasicProperties(delivery_mode=2)
STORE = "broker.store"
QUEUES = ("orders", "invoices")
# Several segments of 16 MiB.
LONG = 100_000
MESSAGES = 420


def crosstie(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    """Run a command to its end, in an environment that names no node directory."""
    command = [str(binary()), *map(str, arguments)]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=cwd, env=environment, text=True, capture_output=True, timeout=60, check=False
    )


def check(store: Path) -> tuple[int, dict]:
    """Return the exit code of a check, and its report."""
    done = crosstie("store", "check", store, "--json", cwd=store.parent)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def queue(report: dict, name: str) -> dict:
    """Return what a report has about a queue."""
    found = [one for vhost in report["vhosts"] for one in vhost["queues"] if one["name"] == name]
    assert len(found) == 1, report
    return found[0]


def files(store: Path) -> dict[str, bytes]:
    """Return the files of a store."""
    return {file.name: file.read_bytes() for file in sorted(store.iterdir())}


def body(name: str, number: int, length: int) -> bytes:
    """Return a body that tells its queue and its number."""
    return random.Random(f"{name} {number}").randbytes(length - 8) + b"%08d" % number


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[Path], Node]]:
    """Start nodes; they end with the tests."""
    running: list[Node] = []

    def start(directory: Path) -> Node:
        directory.mkdir(exist_ok=True)
        transport = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
        worker = {"type": "router", "amqp": {"store": STORE}, "transports": [transport]}
        node = Node(directory, {"version": 2, "workers": [worker]})
        running.append(node)
        return node

    yield start
    for node in running:
        node.close()


def connect(node: Node) -> pika.BlockingConnection:
    """Return a connection of pika's."""
    line = node.says("transport 'amqp' started at")
    found = re.search(r"amqp://([\d.]+):(\d+)", line.text)
    assert found, line.text
    return pika.BlockingConnection(pika.ConnectionParameters(found[1], int(found[2])))


def kill(node: Node) -> None:
    """End a node as the system does that has no memory left."""
    node.process.kill()
    node.process.wait(DEADLINE_S)


@pytest.fixture(scope="module")
def killed(started, tmp_path_factory) -> Path:
    """Return the store of a killed node, with messages in two queues, half of one acknowledged."""
    node = started(tmp_path_factory.mktemp("killed"))
    store = node.directory / STORE
    with connect(node) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.exchange_declare("trade", "topic", durable=True)
        for name in QUEUES:
            channel.queue_declare(name, durable=True)
            channel.queue_bind(name, "trade", f"{name}.#")
        for number in range(MESSAGES):
            name = QUEUES[number % 2]
            channel.basic_publish("trade", f"{name}.new", body(name, number, LONG), PERSISTENT)
            # Stored before the messages that are confirmed later.
            if number == MESSAGES * 3 // 4:
                for _ in range(20):
                    channel.basic_ack(channel.basic_get("orders")[0].delivery_tag)

    def are_indexed() -> bool:
        indexes = list(store.glob("*.index"))
        count = len(segments(store))
        if count < 3 or len(indexes) < count - 1 or any(store.glob("*.new")):
            return False
        # The manifest names them after that.
        named = (store / "manifest").stat().st_mtime_ns
        return all(index.stat().st_mtime_ns <= named for index in indexes)

    await_true("complete segments have indexes", are_indexed)
    kill(node)
    return store


@pytest.fixture
def store(killed, tmp_path) -> Path:
    """Return a copy of the killed node's store."""
    return shutil.copytree(killed, tmp_path / STORE)


def flip(file: Path, at: int, bit: int = 3) -> None:
    """Change one bit of a file."""
    octets = bytearray(file.read_bytes())
    octets[at] ^= 1 << bit
    file.write_bytes(octets)


def segments(store: Path) -> list[Path]:
    """Return the segments in their order."""
    return sorted(store.glob("*.segment"))


def in_a_body(segment: Path) -> tuple[int, str]:
    """Return an offset within the body of the second message of a segment, and its queue."""
    octets = segment.read_bytes()
    found = list(re.finditer(rb"trade.?(orders|invoices)\.new", octets, re.DOTALL))
    return found[1].end() + LONG // 2, found[1][1].decode()


def test_the_store_of_a_killed_node_is_whole(store):
    before = files(store)
    code, report = check(store)
    assert code == 0, report
    assert report["is_whole"]
    assert not report["faults"]
    assert queue(report, "orders")["whole"] == MESSAGES // 2 - 20
    assert queue(report, "invoices")["whole"] == MESSAGES // 2
    (vhost,) = report["vhosts"]
    assert (vhost["name"], vhost["exchanges"], vhost["bindings"]) == ("/", 1, 2)
    done = crosstie("store", "check", store, cwd=store.parent)
    assert done.returncode == 0
    assert "all is whole, 400 messages" in done.stdout
    assert re.search(r"^/ +invoices +210 +0 +0$", done.stdout, re.MULTILINE), done.stdout
    assert files(store) == before


def test_a_wrong_bit_in_a_message_names_its_queue_and_the_rest_is_salvaged(store, started):
    segment = segments(store)[1]
    at, name = in_a_body(segment)
    flip(segment, at)
    before = files(store)
    code, report = check(store)
    assert code == 1
    assert report["lost_messages"] == 1
    assert queue(report, name)["damaged"] == 1
    (fault,) = report["faults"]
    assert fault["file"] == segment.name
    assert f"queue '{name}' of vhost '/': 1 message is damaged" in fault["what"]

    to = store.parent / "salvaged"
    to.mkdir()
    done = crosstie("store", "salvage", store, to / STORE, cwd=store.parent)
    assert done.returncode == 1, done.stderr
    assert f"Salvaged 2 queues with 399 messages from {store} to {to / STORE}" in done.stdout
    assert files(store) == before
    assert check(to / STORE)[0] == 0
    node = started(to)
    with connect(node) as connection:
        channel = connection.channel()
        seen = set()
        for name in QUEUES:
            while (got := channel.basic_get(name, auto_ack=True))[0] is not None:
                number = int(got[2][-8:])
                assert got[2] == body(name, number, LONG)
                seen.add(number)
    assert len(seen) == 399
    kill(node)


@pytest.mark.parametrize(
    ("name", "at", "is_named"),
    [
        ("manifest", 20, "one of its two copies is damaged"),
        ("head", 4, "one of its two slots is damaged"),
        ("0000000001.index", 80, "it cannot be read"),
        ("0000000001.segment", 14, "its head is damaged"),
        # The sequence of the first record.
        ("0000000001.segment", 64 + 17, "1 header has a wrong bit, which is corrected"),
    ],
)
def test_a_wrong_bit_elsewhere_is_named_and_nothing_is_lost(store, name, at, is_named):
    flip(store / name, at)
    before = files(store)
    code, report = check(store)
    assert code == 1
    (fault,) = report["faults"]
    assert (fault["file"], fault["is_loss"]) == (name, False)
    assert is_named in fault["what"]
    assert report["messages"] == 400
    assert report["lost_messages"] == report["unknown_records"] == 0
    done = crosstie("store", "check", store, cwd=store.parent)
    assert "(nothing is lost by it)" in done.stdout
    assert files(store) == before


def test_a_missing_segment_is_counted_by_queue_by_a_check_and_by_a_start(store, started):
    missing = segments(store)[1]
    missing.unlink()
    code, report = check(store)
    assert code == 1
    lost = {name: queue(report, name)["missing"] for name in QUEUES}
    assert all(count > 50 for count in lost.values()), lost
    assert report["messages"] + sum(lost.values()) == 400
    assert all(fault["what"].startswith("the file is missing") for fault in report["faults"])

    node = started(store.parent)
    said = node.says("confirmed data is missing").text
    for name, count in lost.items():
        assert f"queue '{name}' of vhost '/': {count} messages" in said
    node.process.wait(DEADLINE_S)
    assert check(store) == (1, report)

    to = store.parent / "salvaged"
    done = crosstie("store", "salvage", store, to, "--json", cwd=store.parent)
    assert done.returncode == 1, done.stderr
    salvaged = json.loads(done.stdout)
    assert (salvaged["queues"], salvaged["messages"]) == (2, report["messages"])
    assert salvaged["source"] == report
    assert check(to)[1]["messages"] == report["messages"]


@pytest.mark.parametrize("length", [0, 64, 100, 50_000])
def test_a_cut_file_is_named_and_the_rest_is_salvaged(store, length):
    for file in [*segments(store), store / "manifest", *sorted(store.glob("*.index"))]:
        whole = file.read_bytes()
        if length >= len(whole):
            continue
        file.write_bytes(whole[:length])
        code, report = check(store)
        assert code == 1, file.name
        assert file.name in {fault["file"] for fault in report["faults"]}, report
        to = store.parent / "salvaged"
        done = crosstie("store", "salvage", store, to, "--json", cwd=store.parent)
        assert done.returncode in (0, 1), done.stderr
        assert json.loads(done.stdout)["messages"] == report["messages"], file.name
        code, again = check(to)
        assert (code, again["messages"]) == (0, report["messages"]), file.name
        shutil.rmtree(to)
        file.write_bytes(whole)


def test_a_running_node_and_bad_paths_are_refused(started, tmp_path):
    node = started(tmp_path / "running")
    store = node.directory / STORE
    with connect(node) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"first", PERSISTENT)
    backup = tmp_path / "backup"
    done = crosstie("backup", backup, "--cbdir", node.directory, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for command in (
        ("store", "check", store),
        ("store", "salvage", store, tmp_path / "to"),
        ("restore", backup, store, "--replace"),
    ):
        done = crosstie(*command, cwd=tmp_path)
        assert done.returncode == 2, command
        assert f"{store} is in use" in done.stderr, command
    with connect(node) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "kept", b"second", PERSISTENT)
    kill(node)
    thesis = tmp_path / "thesis"
    thesis.write_text("my thesis\n" * 1000)
    earlier = tmp_path / "earlier"
    earlier.write_bytes(b"SQLite format 3\0" + bytes(5000))
    for path, why in (
        (tmp_path / "missing", "No such file or directory"),
        (tmp_path / "missing/too", "No such file or directory"),
        (thesis, "is not a store of Crosstie"),
        (tmp_path, "a directory of something else"),
        (earlier, "is a store of version 0.1.0"),
    ):
        for command in (("check", path), ("salvage", path, tmp_path / "to")):
            done = crosstie("store", *command, cwd=tmp_path)
            assert done.returncode == 2, (command, done.stdout)
            assert why in done.stderr, command
            assert not (tmp_path / "to").exists()
    done = crosstie("store", "salvage", store, thesis, cwd=tmp_path)
    assert done.returncode == 2
    assert thesis.read_text().startswith("my thesis")
    done = crosstie("store", "salvage", store, store / "inside", cwd=tmp_path)
    assert done.returncode == 2
    assert "inside the damaged store" in done.stderr
    code, report = check(store)
    assert (code, queue(report, "kept")["whole"]) == (0, 2)


def test_a_backup_is_restored_only_where_that_is_asked_for(store, started, tmp_path):
    backup = tmp_path / "backup"
    done = crosstie("backup", backup, "--store", store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert check(backup)[1]["messages"] == 400
    before = files(store)
    done = crosstie("restore", backup, store, cwd=tmp_path)
    assert done.returncode == 2
    assert "--replace" in done.stderr
    assert files(store) == before
    done = crosstie("restore", store, tmp_path / "to", cwd=tmp_path)
    assert done.returncode == 2
    assert "is no backup" in done.stderr

    # A damaged backup is refused, and what it has is salvaged.
    whole = backup.read_bytes()
    flip(backup, len(whole) // 2)
    done = crosstie("restore", backup, store, "--replace", cwd=tmp_path)
    assert done.returncode == 2
    assert "crosstie store salvage" in done.stderr
    assert files(store) == before
    assert check(backup)[1]["lost_messages"] == 1
    done = crosstie("store", "salvage", backup, tmp_path / "salvaged", cwd=tmp_path)
    assert done.returncode == 1
    assert check(tmp_path / "salvaged")[1]["messages"] == 399

    backup.write_bytes(whole)
    shutil.rmtree(store)
    store.mkdir()
    done = crosstie("restore", backup, store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"Restored 2 queues with 400 messages to {store} from {backup}, of 2" in done.stdout
    segments(store)[0].unlink()
    done = crosstie("restore", backup, store, "--replace", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    restored = json.loads(done.stdout)
    assert restored["former"] == f"{store}.former"
    assert check(Path(restored["former"]))[0] == 1
    node = started(tmp_path)
    with connect(node) as connection:
        channel = connection.channel()
        counts = {
            name: channel.queue_declare(name, passive=True).method.message_count for name in QUEUES
        }
    assert counts == {"orders": 190, "invoices": 210}
    kill(node)


def test_a_store_on_a_read_only_file_system_is_checked(store, tmp_path):
    mounted = subprocess.run(
        ["mount", "--bind", "-o", "ro", str(store), str(store)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mount: {mounted.stderr.decode().strip()}")
    try:
        assert check(store)[0] == 0
        done = crosstie("store", "salvage", store, tmp_path / "to", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert check(tmp_path / "to")[1]["messages"] == 400
        done = crosstie("restore", tmp_path / "to", store / "new", cwd=tmp_path)
        assert done.returncode == 2
        backup = tmp_path / "backup"
        assert crosstie("backup", backup, "--store", store, cwd=tmp_path).returncode == 0
        done = crosstie("restore", backup, store / "new", cwd=tmp_path)
        assert done.returncode == 2
        assert "Read-only file system" in done.stderr
        done = crosstie("store", "salvage", store, store / "new", cwd=tmp_path)
        assert done.returncode == 2
    finally:
        subprocess.run(["umount", "--lazy", str(store)], check=True)
