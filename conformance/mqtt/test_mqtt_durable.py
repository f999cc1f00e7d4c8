"""Durability: sessions, messages and retained messages after stops, kills, full disks, damage."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import mqtt_broker
from rig import mqtt_wire as wire
from rig.mqtt_broker import Node
from rig.mqtt_peer import Peer
from rig.mqtt_wire import V5, V311, Ack, Disconnect, Publish
from rig.node import management
from rig.plain import ClosedError
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true

STORE = "mqtt.store"
LONG_S = 100_000
# Acknowledged messages of each publisher before a kill.
ENOUGH = 40


@pytest.fixture
def durable(start_node) -> Callable[..., Node]:
    """Start a node with a store."""

    def start(path: str = STORE) -> Node:
        return start_node(mqtt_broker.configuration(of=mqtt_broker.realm(mqtt_store=path)))

    return start


def away(node: Node, client_id: str, *filters: str, version: int = V5, qos: int = 2) -> None:
    """Leave a session with subscriptions."""
    with kept(node, client_id, version) as client:
        client.subscribe(*filters, qos=qos)
        client.leave()


def kept(node: Node, client_id: str, version: int = V5, **more: object) -> Peer:
    """Connect with a session that stays."""
    peer = Peer.to(node.address(), version)
    properties = {"session_expiry": LONG_S} if version == V5 else {}
    peer.connect(client_id, clean=False, **{**properties, **more})
    return peer


def restart(node: Node, kill: bool) -> None:
    """End the node, and start it again."""
    if kill:
        node.kill()
    else:
        node.stop()
    node.start()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("version", [V311, V5], ids=["3.1.1", "5"])
def test_sessions_survive_with_everything(durable, kill: bool, version: int) -> None:
    node = durable()
    away(node, "kept", "a/#", "$share/group/b", version=version)
    with kept(node, "sender") as sender:
        for qos in (1, 2, 1):
            assert sender.publish("a/b", b"at %d" % qos, qos) == 0
        assert sender.publish("b", b"shared", 1) == 0
        assert sender.publish("a/r", b"retained", 1, retain=True, message_expiry=LONG_S) == 0
        assert sender.publish("a/gone", b"x", 1, retain=True) == 0
        assert sender.publish("a/gone", b"", 1, retain=True) == 0
    restart(node, kill)
    client = Peer.to(node.address(), version)
    properties = {"session_expiry": LONG_S} if version == V5 else {}
    assert client.connect("kept", clean=False, **properties).present
    found = [(each.topic, each.payload, each.qos, each.dup) for each in client.messages(7)]
    assert found == [
        ("a/b", b"at 1", 1, False),
        ("a/b", b"at 2", 2, False),
        ("a/b", b"at 1", 1, False),
        ("b", b"shared", 1, False),
        ("a/r", b"retained", 1, False),
        ("a/gone", b"x", 1, False),
        ("a/gone", b"", 1, False),
    ]
    # The subscriptions are there as well.
    client.publish("a/now", b"now", 2)
    assert client.message().payload == b"now"
    # SUBACK leaves after the commit of what came before.
    client.subscribe("later")
    client.close()
    with Peer.to(node.address(), V5) as new:
        new.connect()
        new.subscribe("#")
        retained = new.message()
        assert (retained.topic, retained.payload) == ("a/r", b"retained")
        assert 0 < retained.properties["message_expiry"] <= LONG_S
        new.publish("c", b"last")
        assert new.message().payload == b"last"
    restart(node, kill)
    with kept(node, "kept", version) as client:
        client.publish("a/now", b"nothing else waits", 1)
        assert client.message().payload == b"nothing else waits"


def test_a_message_in_flight_has_its_identifier_after_a_kill(durable) -> None:
    node = durable()
    with kept(node, "kept") as client:
        client.subscribe("a")
        with kept(node, "sender") as sender:
            sender.publish("a", b"one", 2)
            sender.publish("a", b"two", 2)
        one, two = client.expect(Publish), client.expect(Publish)
        client.say(Ack(wire.PUBREC, one.id))
        client.ack(wire.PUBREL, one.id)
        restart(node, kill=True)
    with kept(node, "kept") as client:
        client.ack(wire.PUBREL, one.id)
        again = client.expect(Publish)
        assert (again.id, again.payload, again.dup) == (two.id, b"two", True)


def test_a_message_of_qos_2_is_published_once_over_a_kill(durable) -> None:
    node = durable()
    away(node, "receiver", "a")
    with kept(node, "sender") as sender:
        sender.say(Publish("a", b"once", 2, id=7))
        assert sender.ack(wire.PUBREC, 7).code == 0
        restart(node, kill=True)
    with kept(node, "sender") as sender:
        # The client does not know that PUBREC has come.
        sender.say(Publish("a", b"once", 2, id=7, dup=True))
        assert sender.ack(wire.PUBREC, 7).code == 0
        sender.say(Ack(wire.PUBREL, 7))
        sender.ack(wire.PUBCOMP, 7)
        sender.publish("a", b"last", 2)
    with kept(node, "receiver") as receiver:
        assert [each.payload for each in receiver.messages(2)] == [b"once", b"last"]


class Load(threading.Thread):
    """Publishes until the connection ends, and notes what is acknowledged."""

    def __init__(self, node: Node, number: int):
        super().__init__(daemon=True)
        self.peer = kept(node, f"load{number}")
        self.number = number
        self.sent = 0
        self.acknowledged: set[bytes] = set()
        self.enough = threading.Event()

    def run(self) -> None:
        """Publish with QoS 1 and 2 in turn."""
        try:
            while True:
                self.sent += 1
                payload = b"%d %d" % (self.number, self.sent)
                if self.peer.publish("load", payload, 1 + self.sent % 2) == 0:
                    self.acknowledged.add(payload)
                if len(self.acknowledged) == ENOUGH:
                    self.enough.set()
        except (ClosedError, OSError):
            pass


def test_kills_under_load_lose_nothing_acknowledged(durable) -> None:
    node = durable()
    away(node, "receiver", "load")
    acknowledged: set[bytes] = set()
    for turn in range(3):
        loads = [Load(node, 3 * turn + number) for number in range(3)]
        for each in loads:
            each.start()
        for each in loads:
            each.enough.wait(DEADLINE_S)
        node.kill()
        for each in loads:
            each.join(DEADLINE_S)
            acknowledged |= each.acknowledged
        node.start()
    found = []
    with kept(node, "receiver") as receiver, kept(node, "last") as last:
        last.publish("load", b"last", 1)
        while (payload := receiver.message().payload) != b"last":
            found.append(payload)
    assert acknowledged <= set(found)
    twice = [each for each in set(found) if found.count(each) > 1]
    # One of QoS 2 whose publisher is gone for good cannot come twice.
    assert not twice


def test_a_session_ends_at_its_expiry_over_a_kill(durable) -> None:
    node = durable()
    with Peer.to(node.address(), V5) as brief:
        brief.connect("brief", clean=False, session_expiry=1)
        brief.subscribe("a")
        brief.leave()
    restart(node, kill=True)

    # A will with a delay is the broker's clock.
    with kept(node, "heir") as heir:
        heir.subscribe("clock")
        clock = wire.Will("clock", properties={"will_delay": 2})
        kept(node, "mortal", will=clock).close()
        heir.message()
    with Peer.to(node.address(), V5) as brief:
        assert not brief.connect("brief", clean=False, session_expiry=1).present


def test_the_will_of_a_client_is_published_after_a_kill(durable) -> None:
    node = durable()
    away(node, "heir", "will")
    mortal = kept(node, "mortal", will=wire.Will("will", b"gone", 1))
    restart(node, kill=True)
    mortal.close()
    with kept(node, "heir") as heir:
        assert heir.message().payload == b"gone"


def test_a_session_of_another_user_is_not_taken_over_after_a_restart(start_node) -> None:
    users = {name: {"ticket": "secret", "role": "anonymous"} for name in ("one", "other")}
    listener = mqtt_broker.transport(auth={"ticket": {"type": "static", "principals": users}})
    realm = mqtt_broker.realm(mqtt_store=STORE)
    node = start_node(mqtt_broker.configuration(listener, of=realm))

    def ask(user: str) -> int:
        with Peer.to(node.address(), V5) as client:
            login = {"user": user, "password": b"secret"}
            return client.ask_to_connect("client", clean=False, session_expiry=LONG_S, **login).code

    assert ask("one") == 0
    restart(node, kill=True)
    assert ask("other") == 0x85
    assert ask("one") == 0


def test_a_realm_that_stops_and_starts_has_its_store_again(durable) -> None:
    node = durable()
    heir = kept(node, "heir")
    heir.subscribe("a", "will")
    mortal = kept(node, "mortal", will=wire.Will("will", b"never", 1))
    mortal.publish("a", b"before", 1)
    worker = "crossbar.worker.worker1"
    with management(node.directory) as manager:
        realm = "realm1"
        manager.call(f"{worker}.stop_router_realm", realm)
        for client in (heir, mortal):
            client.receive_all()
        with pytest.raises(ClosedError):
            Peer.to(node.address(), V5).ask_to_connect("early", clean=False, session_expiry=LONG_S)
        settings = mqtt_broker.realm(mqtt_store=STORE)
        manager.call(f"{worker}.start_router_realm", realm, settings)
    heir = Peer.to(node.address(), V5)
    assert heir.connect("heir", clean=False, session_expiry=LONG_S).present
    with kept(node, "sender") as sender:
        assert sender.publish("a", b"after", 1) == 0
    assert [each.payload for each in heir.messages(2)] == [b"before", b"after"]
    heir.subscribe("later")
    restart(node, kill=True)
    with kept(node, "heir") as again:
        again.publish("a", b"last", 1)
        assert again.message().payload == b"last"


def mount(*words: object) -> None:
    """Run `mount`, or skip the test where that is not allowed."""
    ended = subprocess.run(["mount", *map(str, words)], capture_output=True, check=False)
    if ended.returncode:
        pytest.skip(f"mount: {ended.stderr.decode().strip()}")


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Return a directory of two mebibytes."""
    directory = tmp_path / "small"
    directory.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", directory)
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(node: Node) -> list[bytes]:
    """Publish until the store is full and closes the connection; return what was acknowledged."""
    acknowledged = []
    with kept(node, "sender") as sender:
        for number in range(200):
            payload = b"%d " % number + bytes(50_000)
            message = Publish("a", payload, 1, id=number + 1)
            sender.say(message)
            answer = sender.hear()
            if isinstance(answer, Disconnect):
                assert answer.code == 0x83
                return acknowledged
            assert (answer.kind, answer.id, answer.code) == (wire.PUBACK, message.id, 0)
            acknowledged.append(payload)
    raise AssertionError("the disk is full before 10 MB")


def test_a_full_disk_refuses_and_recovers(small_disk: Path, durable) -> None:
    node = durable(str(small_disk / STORE))
    away(node, "receiver", "a", qos=1)
    acknowledged = fill(node)
    assert 0 < len(acknowledged) < 100
    assert "its MQTT store cannot be written" in node.router.health()[1]
    assert node.router.metric("mqtt_store_failing", realm="realm1") == 1
    with Peer.to(node.address(), V5) as other:
        # Messages that need no store go on, and others have an answer.
        other.connect()
        other.subscribe("b")
        other.publish("b", b"not stored")
        assert other.message().payload == b"not stored"
        assert other.publish("a", b"refused", 1) == 0x97
    mount("-o", "remount,size=64m", small_disk)

    def is_kept() -> bool:
        with Peer.to(node.address(), V5) as again:
            again.connect()
            return again.publish("a", b"later", 1) == 0

    await_true("messages are kept again", is_kept)
    assert "MQTT store" not in node.router.health()[1]
    restart(node, kill=True)
    found = []
    with kept(node, "receiver") as receiver:
        while (payload := receiver.message().payload) != b"later":
            found.append(payload)
    assert found[: len(acknowledged)] == acknowledged
    assert b"refused" not in found


def test_damage_is_named_and_accepted_only_by_the_operator(durable) -> None:
    node = durable()
    away(node, "client one", "a", "b")
    away(node, "client two", "a")
    with kept(node, "sender") as sender:
        sender.publish("b", b"message of one", 1)
        sender.publish("a", b"message of both", 1)
    node.stop()
    segment = next((node.directory / STORE).glob("*.segment"))
    octets = bytearray(segment.read_bytes())
    octets[octets.index(b"message of one")] ^= 1
    segment.write_bytes(octets)
    command = [str(binary()), "start", "--config", str(node.directory / "config.json")]
    ended = subprocess.run(
        command,
        cwd=node.directory,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode != 0
    assert "confirmed data is missing: queue 'messages' of vhost 'realm1'" in ended.stderr
    checked = [str(binary()), "store", "check", str(node.directory / STORE)]
    told = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert told.returncode != 0
    assert "messages" in told.stdout + told.stderr
