"""Retained messages of a vhost after stops, kills, full disks, and at their bounds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import mqtt_wire as wire
from rig.plain import ClosedError
from rig.router import binary
from rig.small_disk import MIB, Disk
from rig.waiting import await_true

from fleet.places import Crosstie

V5, V311 = wire.V5, wire.V311
STORE = "amqp.store"
LONG_S = 100_000


def retained(node: Crosstie, *topics: str, version: int = V5) -> dict[str, wire.Publish]:
    """Return the retained messages of topics."""
    with node.client("reader", version) as reader:
        reader.subscribe(*topics, "end", qos=1)
        reader.publish("end", b"end", 1)
        found = {}
        while (message := reader.message()).topic != "end":
            assert message.retain
            found[message.topic] = message
        reader.leave()
    return found


def payloads(node: Crosstie, *topics: str, version: int = V5) -> dict[str, bytes]:
    """Return their payloads."""
    found = retained(node, *topics, version=version)
    return {topic: message.payload for topic, message in found.items()}


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("version", [V311, V5], ids=["3.1.1", "5"])
def test_retained_messages_survive(start, kill: bool, version: int) -> None:
    node = start(amqp={"store": STORE})
    with node.client("sender", version) as sender:
        for qos in (0, 1, 2):
            sender.publish(f"r/{qos}", b"at %d" % qos, qos, retain=True)
        sender.publish("r/new", b"old", 1, retain=True)
        sender.publish("r/new", b"new", 1, retain=True)
        sender.publish("r/gone", b"x", 1, retain=True)
        sender.publish("r/gone", b"", 1, retain=True)
        if version == V5:
            sender.publish("r/brief", b"x", 1, retain=True, message_expiry=1)
            sender.publish("r/long", b"x", 1, retain=True, message_expiry=LONG_S)
        sender.close()
    topics = [f"r/{rest}" for rest in ("0", "1", "2", "new", "gone", "brief", "long")]
    expected = {"r/0": b"at 0", "r/1": b"at 1", "r/2": b"at 2", "r/new": b"new"}
    if version == V5:
        expected["r/long"] = b"x"
    for _ in range(2):
        node.restart(kill=kill)
        await_true("the brief one has expired", lambda: "r/brief" not in payloads(node, "r/brief"))
        found = retained(node, *topics)
        assert {topic: message.payload for topic, message in found.items()} == expected
        if version == V5:
            assert 0 < found["r/long"].properties["message_expiry"] <= LONG_S
    # The messages and the queue are nothing that clients of AMQP see.
    assert node.queues("reader") == {}
    assert not [queue for queue in node.api.json("queues") if "retained" in queue["name"]]
    held = len(expected)
    count = "mqtt_retained_messages"
    await_true("what has expired is gone", lambda: node.router.metric(count, vhost="/") == held)


def test_the_retained_will_of_a_lost_client_survives_a_kill(start) -> None:
    node = start(amqp={"store": STORE})
    with node.client("heir", V5) as heir:
        heir.subscribe("will", qos=1)
        will = wire.Will("will", b"gone", 1, retain=True)
        node.client("mortal", V5, will=will).close()
        assert heir.message().payload == b"gone"
        # A confirm that leaves after that of the will.
        heir.publish("other", b"x", 1, retain=True)
        node.restart(kill=True)
    assert payloads(node, "will") == {"will": b"gone"}


# So many that a start leaves them on the disk at first.
THOUSANDS = 3_000


def retain_thousands(node: Crosstie) -> None:
    with node.client("sender", V5) as sender:
        for number in range(THOUSANDS):
            message = wire.Publish(
                f"many/{number}", b"<%d>" % number, 1, id=number + 1, retain=True
            )
            sender.say(message)
            if number % 500 == 499:
                for _ in range(500):
                    assert sender.expect(wire.Ack).code == 0
        sender.leave()


def is_in(node: Crosstie) -> bool:
    with node.peer(V5) as peer:
        try:
            return peer.ask_to_connect("early", user="test", password=b"test").code == 0
        except (ClosedError, OSError):
            return False


def test_thousands_survive_a_kill(start) -> None:
    node = start(amqp={"store": STORE})
    retain_thousands(node)
    node.restart(kill=True)
    await_true("clients are let in", lambda: is_in(node))
    numbers = range(0, THOUSANDS, 100)
    found = payloads(node, *[f"many/{number}" for number in numbers])
    assert found == {f"many/{number}": b"<%d>" % number for number in numbers}
    assert node.router.metric("mqtt_retained_messages", vhost="/") == THOUSANDS


def test_a_damaged_message_leaves_clients_in(start) -> None:
    node = start(amqp={"store": STORE})
    retain_thousands(node)
    node.router.stop()
    segment = next((node.directory / STORE).glob("*.segment"))
    octets = bytearray(segment.read_bytes())
    octets[octets.index(b"<2000>")] ^= 1
    segment.write_bytes(octets)
    node.restart(kill=False)
    await_true("clients are let in", lambda: is_in(node))
    with node.client("sender", V5) as sender:
        # The page with the earlier message would replace it.
        assert sender.publish("many/2001", b"new", 1, retain=True) == 0x97
        assert sender.publish("many/2001", b"new", 1) in (0, 0x10)
        sender.leave()


def test_another_message_at_the_bound_is_not_retained(start) -> None:
    node = start(amqp={"store": STORE}, limits={"mqtt_retained_messages_max": 2})
    with node.client("sender", V5) as sender:
        for number in range(3):
            assert sender.publish(f"b/{number}", b"x", 1, retain=True) in (0, 0x10)
        sender.publish("b/0", b"y", 1, retain=True)
        sender.leave()
    topics = [f"b/{number}" for number in range(3)]
    assert payloads(node, *topics) == {"b/0": b"y", "b/1": b"x"}
    node.restart(kill=True)
    assert payloads(node, *topics) == {"b/0": b"y", "b/1": b"x"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 64 mebibytes."""
    disk = Disk(tmp_path / "disk", 64 * MIB)
    yield disk
    disk.unmount()


def test_a_full_disk_refuses_and_keeps_the_earlier_message(small_disk: Disk, start) -> None:
    store = str(small_disk.place / STORE)
    node = start(amqp={"store": store, "limits": {"disk_free_bytes_min": 0}})

    def ask(payload: bytes) -> int:
        with node.client("sender", V5) as sender:
            return sender.publish("full", payload, 1, retain=True)

    assert ask(b"before") == 0
    small_disk.leave_free(0)
    # The store has a reserve of its own.
    await_true("a message is refused", lambda: ask(bytes(100_000)) == 0x97)
    assert ask(bytes(100_000)) == 0x97
    last = payloads(node, "full")
    with node.client("old", V311) as old:
        old.say(wire.Publish("full", bytes(100_000), 1, id=7, retain=True))
        old.expect_end()
    assert payloads(node, "full") == last
    small_disk.empty()
    await_true("messages are kept again", lambda: ask(b"after") == 0)
    node.restart(kill=True)
    assert payloads(node, "full") == {"full": b"after"}


def test_a_check_and_a_salvage_know_the_messages(start, tmp_path: Path) -> None:
    node = start(amqp={"store": STORE})
    with node.client("sender", V5) as sender:
        sender.publish("a", b"one", 1, retain=True)
        sender.leave()
    node.router.stop()
    store = node.directory / STORE
    told = subprocess.run(
        [binary(), "store", "check", store], capture_output=True, text=True, check=True
    )
    assert "amq.crosstie.retained" in told.stdout
    target = tmp_path / "salvaged"
    subprocess.run([binary(), "store", "salvage", store, target], capture_output=True, check=True)
    store.rename(tmp_path / "aside")
    target.rename(store)
    node.restart(kill=False)
    assert payloads(node, "a") == {"a": b"one"}
