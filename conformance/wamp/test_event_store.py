"""Recorded events in a file: after restarts and kills, in files that are none, on full disks."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import config
from rig.rawsocket import RawSocket
from rig.router import Router, binary
from rig.session import CALL, ERROR, EVENT, PUBLISH, PUBLISHED, RESULT
from rig.waiting import DEADLINE_S, await_true

GET = "wamp.subscription.get_events"
LOOKUP = "wamp.subscription.lookup"
HISTORY = [
    {"uri": "com.kept", "limit": 1_000},
    {"uri": "com.", "match": "prefix", "limit": 10},
]


class Kept:
    """Nodes, one after the other, with a realm whose events are in one file."""

    def __init__(self, directory: Path):
        self.path = directory / "events.db"
        self.directory = directory
        self.store: dict[str, object] = {"event-history": HISTORY}
        self.nodes: list[Router] = []
        self.peers: list[RawSocket] = []

    def configuration(self, **store: object) -> dict:
        """Return the configuration of such a node."""
        store = {"type": "sqlite", "path": str(self.path), **self.store, **store}
        realms = [{"name": "realm1", "roles": [config.role("anonymous")], "store": store}]
        limits = {"history_answer_bytes_max": 8 << 20}
        return config.node(realms, [config.universal("tcp", config.tcp())], limits=limits)

    def start(self, **store: object) -> RawSocket:
        """Start the next node; return a session on it."""
        directory = self.directory / f"node{len(self.nodes)}"
        directory.mkdir()
        self.nodes.append(Router(directory, config=self.configuration(**store)))
        return self.join()

    def join(self) -> RawSocket:
        """Return a session on the node that runs."""
        peer = RawSocket.tcp(self.nodes[-1].address("tcp")).shake_hands("json")
        self.peers.append(peer)
        return peer.join()

    def stop(self) -> None:
        """Stop the running node; it has no client to wait for."""
        for peer in self.peers:
            peer.close()
        self.peers.clear()
        if self.nodes and self.nodes[-1].process.poll() is None:
            self.nodes[-1].stop()

    def refuse(self, **options: object) -> str:
        """Have a node started that does not; return what it says."""
        file = self.directory / "refused.json"
        file.write_text(json.dumps(self.configuration(**options)))
        ended = subprocess.run(
            [binary(), "start", "--config", file],
            capture_output=True,
            check=False,
            cwd=self.directory,
            timeout=DEADLINE_S,
        )
        assert ended.returncode != 0
        return ended.stderr.decode()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """Return nodes that are stopped at the end."""
    nodes = Kept(tmp_path)
    yield nodes
    nodes.stop()


def call(peer: RawSocket, procedure: str, *args: object, **kwargs: object) -> list:
    """Call; return the RESULT."""
    peer.ask(CALL, {}, procedure, list(args), kwargs)
    return peer.hear(RESULT)


def events(peer: RawSocket, topic: str = "com.kept", **kwargs: object) -> list[dict]:
    """Return what is recorded of a topic, as the specification has it."""
    options = {"match": "prefix"} if topic.endswith(".") else {}
    subscription = call(peer, LOOKUP, topic, options)[3][0]
    return call(peer, GET, subscription, reverse=False, **kwargs)[3][0]


def numbers(found: list[dict]) -> list[int]:
    """Return the first arguments of events."""
    return [event["args"][0] for event in found]


def acknowledged(peer: RawSocket, number: int, *more: object, topic: str = "com.kept") -> int:
    """Publish, and wait for the answer; return the publication."""
    peer.ask(PUBLISH, {"acknowledge": True}, topic, [number, *more])
    return peer.hear(PUBLISHED)[2]


def test_a_restart_keeps_them(kept):
    peer = kept.start()
    for number in range(300):
        peer.publish("com.kept", number, "ä")
    peer.publish("com.other", 300)
    before = events(peer)
    assert numbers(before) == list(range(300))
    kept.stop()
    peer = kept.start()
    assert events(peer) == before
    assert numbers(events(peer, "com.")) == list(range(291, 301))
    peer.publish("com.kept", 301)
    middle = before[100]["publication"]
    found = events(peer, after_publication=middle)
    assert numbers(found) == [*range(101, 300), 301]
    found = events(peer, after_time=before[-1]["timestamp"], topic="com.kept")
    assert numbers(found) == [301]
    newest = call(peer, GET, found[0]["subscription"])[3][0]
    assert numbers(newest) == [301, *range(299, 290, -1)]
    assert kept.nodes[-1].metric("realm_recorded_events", realm="realm1") >= 311


def test_a_kill_leaves_what_was_acknowledged(kept):
    sent = 0
    for _ in range(5):
        peer = kept.start()
        assert numbers(events(peer))[:sent] == list(range(sent))
        for _ in range(20):
            acknowledged(peer, sent)
            sent += 1
        kept.nodes[-1].kill()
    assert numbers(events(kept.start())) == list(range(sent))


def test_all_that_is_known_of_an_event(kept):
    peer = kept.start()
    options = {
        "acknowledge": True,
        "disclose_me": True,
        "eligible_authrole": ["anonymous"],
        "exclude_authid": ["nobody"],
    }
    peer.ask(PUBLISH, options, "com.kept", [1], {"a": [2]})
    peer.hear(PUBLISHED)
    peer.ask(PUBLISH, {"acknowledge": True, "eligible_authrole": ["other"]}, "com.kept", [2])
    peer.hear(PUBLISHED)
    session = peer.id
    kept.stop()
    (event,) = events(kept.start())
    assert (event["args"], event["kwargs"]) == ([1], {"a": [2]})
    assert (event["session_id"], event["authrole"]) == (session, "anonymous")


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_retained_events(kept, way):
    kept.store["keep_retained"] = True
    peer = kept.start()
    for number in range(5):
        retain(peer, "org.now.a", number)
    retain(peer, "org.now.ends", 1, retain_ms=1)
    retain(peer, "org.now.taken", 1)
    retain(peer, "org.now.taken", 2, retain_ms=0)
    retain(peer, "org.now.later", 1, retain_ms=3_600_000)
    retain(peer, "org.now.others", 1, eligible_authrole=["other"])
    peer.ask(PUBLISH, {"retain": True}, "org.now.b", [7])
    peer.publish("org.now.b", 8)
    if way == "kill":
        retain(peer, "org.now.c", 9)
        kept.nodes[-1].kill()
    else:
        kept.stop()
    peer = kept.start()
    expected = {"org.now.a": 4, "org.now.later": 1, "org.now.b": 7}
    assert retained(peer) == expected | ({"org.now.c": 9} if way == "kill" else {})
    # It ends when it was to end, whatever was in between.
    kept.stop()
    database = sqlite3.connect(kept.path)
    ((first, last),) = database.execute(
        "SELECT min(ends_us), max(ends_us) FROM retained WHERE ends_us IS NOT NULL"
    )
    assert first == last > 0
    database.execute("UPDATE retained SET ends_us = 1 WHERE ends_us IS NOT NULL")
    database.commit()
    database.close()
    assert "org.now.later" not in retained(kept.start())
    kept.stop()
    kept.store["keep_retained"] = False
    assert retained(kept.start()) == {}
    kept.stop()
    kept.store["keep_retained"] = True
    assert retained(kept.start()) == {}


def test_the_oldest_go(kept):
    peer = kept.start(bytes_max=65_536)
    for number in range(40):
        acknowledged(peer, number, "x" * 4_000)
    found = numbers(events(peer))
    assert found == list(range(found[0], 40))
    assert 5 < len(found) < 20
    node = kept.nodes[-1]
    assert node.metric("realm_recorded_bytes") <= 65_536
    assert node.metric("recorded_events_evicted_total") > 0
    assert numbers(events(peer, until_publication=events(peer)[0]["publication"])) == found[:1]


def test_a_publication_that_is_not_there(kept):
    peer = kept.start()
    acknowledged(peer, 1)
    subscription = call(peer, LOOKUP, "com.kept")[3][0]
    peer.ask(CALL, {}, GET, [subscription], {"after_publication": 4711})
    error = peer.hear(ERROR)
    assert error[4] == "wamp.error.invalid_argument"
    assert "4711" in error[5][0]


def retain(peer: RawSocket, topic: str, number: int, **options: object) -> None:
    """Publish what is to be retained, and wait for the answer."""
    peer.ask(PUBLISH, {"acknowledge": True, "retain": True, **options}, topic, [number])
    peer.hear(PUBLISHED)


def retained(peer: RawSocket) -> dict[str, int]:
    """Return what is retained below one prefix, by topic: what a subscription is sent first."""
    peer.subscribe("org.now.", match="prefix", get_retained=True)
    peer.ask(PUBLISH, {"acknowledge": True}, "org.last", [])
    found = {}
    # The answer comes behind all that was retained.
    while (event := peer.hear_any())[0] == EVENT:
        found[event[3]["topic"]] = event[4][0]
    return found


def unacknowledged(peer: RawSocket, number: int, *more: object) -> None:
    """Publish, and wait for nothing."""
    peer.ask(PUBLISH, {}, "com.kept", [number, *more])


def spoil(change: Callable[[Path], None]) -> Callable[[Kept], None]:
    """Return what spoils the file of a node that has ended."""
    return lambda kept: change(kept.path)


def pragma(words: str) -> Callable[[Kept], None]:
    """Return what says something to SQLite about the file."""

    def change(path: Path) -> None:
        database = sqlite3.connect(path)
        database.execute(words)
        database.commit()
        database.close()

    return spoil(change)


def overwrite(path: Path) -> None:
    """Write nonsense over the pages behind the first."""
    octets = bytearray(path.read_bytes())
    octets[4096:] = b"\xa5" * (len(octets) - 4096)
    path.write_bytes(octets)


SPOILT = {
    "no file of SQLite": (spoil(lambda path: path.write_text("text" * 100)), "not a store"),
    "a file of something else": (pragma("PRAGMA application_id = 7"), "not a store"),
    "another version": (pragma("PRAGMA user_version = 99"), "version 99"),
    "an empty file": (spoil(lambda path: path.write_bytes(b"")), "damaged"),
    "a file with wrong pages": (spoil(overwrite), "damaged"),
    "another realm's": (pragma("UPDATE realm SET name = 'com.other'"), "realm com.other"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_file_that_is_none(kept, what):
    change, said = SPOILT[what]
    peer = kept.start()
    for number in range(10):
        acknowledged(peer, number, "x" * 2_000)
    kept.stop()
    change(kept)
    before = kept.path.read_bytes()
    refusal = kept.refuse()
    assert said in refusal
    assert str(kept.path) in refusal
    assert kept.path.read_bytes() == before


def test_a_path_that_leads_nowhere(kept):
    kept.path = kept.directory / "nowhere" / "events.db"
    assert "directory" in kept.refuse()
    kept.path = kept.directory
    assert "is no file" in kept.refuse()


def test_a_file_that_is_in_use(kept):
    kept.start()
    assert "is in use" in kept.refuse()


def test_events_whose_bytes_have_changed(kept):
    peer = kept.start()
    acknowledged(peer, 1)
    kept.stop()
    pragma("UPDATE chunk SET body = zeroblob(length(body))")(kept)
    peer = kept.start()
    subscription = call(peer, LOOKUP, "com.kept")[3][0]
    peer.ask(CALL, {}, GET, [subscription])
    error = peer.hear(ERROR)
    assert error[4] == "wamp.error.history_unavailable"
    assert "other bytes" in error[5][0]
    # Publications are recorded all the same.
    acknowledged(peer, 2)


@pytest.fixture
def small_disk(kept) -> Iterator[Kept]:
    """Have the file on a disk of two mebibytes."""
    folder = kept.directory / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"mount: {mounted.stderr.decode().strip()}")
    kept.path = folder / "events.db"
    yield kept
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(small_disk):
    peer = small_disk.start()
    node = small_disk.nodes[-1]
    taken = []
    for number in range(300):
        peer.ask(PUBLISH, {"acknowledge": True}, "com.kept", [number, "x" * 16_000])
        answer = peer.hear_any()
        if answer[0] == ERROR:
            assert answer[4] == "crosstie.error.not_recorded"
            assert "no space left" in answer[5][0]
            break
        taken.append(number)
    else:
        raise AssertionError("the disk is never full")
    assert node.metric("realm_store_failing", realm="realm1") == 1
    status, health = node.health()
    assert status == 200
    assert "realm 'realm1'" in health.lower()
    assert "its event store cannot be written: " in health
    assert "no space left" in health
    # Others go on.
    reader = small_disk.join()
    reader.subscribe("org.elsewhere")
    peer.publish("org.elsewhere", 1)
    reader.hear_any()
    assert numbers(events(peer)) == taken
    remount = ["mount", "-o", "remount,size=64m", str(small_disk.path.parent)]
    subprocess.run(remount, check=True)
    await_true("it writes again", lambda: node.metric("realm_store_failing") == 0, DEADLINE_S)
    assert node.health() == (200, "ok\n")
    # Unwritten events were kept, and are there now.
    assert numbers(events(peer)) == [*taken, len(taken)]
    acknowledged(peer, 999)
    node.kill()
    shutil.copytree(small_disk.path.parent, small_disk.directory / "copy")
    small_disk.path = small_disk.directory / "copy" / "events.db"
    assert numbers(events(small_disk.start())) == [*taken, len(taken), 999]


@pytest.mark.parametrize("is_there", [False, True], ids=["no file", "a file"])
def test_a_read_only_disk(small_disk, is_there):
    if is_there:
        acknowledged(small_disk.start(), 1)
        small_disk.stop()
    remount = ["mount", "-o", "remount,ro", str(small_disk.path.parent)]
    subprocess.run(remount, check=True)
    assert re.search("read-only file ?system", small_disk.refuse().lower())


def test_more_than_may_wait(kept):
    kept.store["event-history"] = [{"uri": "com.kept", "limit": 1_000}]
    peer = kept.start(buffer_bytes_max=65_536)
    node = kept.nodes[-1]
    unacknowledged(peer, 0, "x" * 70_000)
    assert events(peer) == []
    peer.ask(PUBLISH, {"acknowledge": True}, "com.kept", [0, "x" * 70_000])
    error = peer.hear(ERROR)
    assert error[4] == "crosstie.error.not_recorded"
    for number in range(1, 101):
        unacknowledged(peer, number, "x" * 30_000)
    found = numbers(events(peer))
    assert found[:2] == [1, 2]
    assert found == sorted(found)
    assert node.metric("events_not_recorded_total") == 2 + 100 - len(found) > 2
    assert node.metric("realm_store_waiting_bytes") == 0
