"""A member of the realm that breaks every rule, beside sessions that keep them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from rig.session import REGISTERED, SUBSCRIBED
from rig.waiting import await_true

from fabric.hostile import (
    MATCH,
    NODE,
    PAIR,
    PROCEDURE,
    SAID,
    SERVER,
    Member,
    frame,
    left_behind,
    offer,
)
from fabric.stage import await_neighbours, node_config

REGISTRATIONS_MAX = 1_000
NEIGHBOURS_MAX = 1_024
GROWTH_BYTES_MAX = 64 << 20
# What a node holds of one other node's testaments, and what each takes beside its bytes.
ENTRUSTED_BYTES_MAX = 16 << 20
TESTAMENT_BYTES = 256
# Of 50,000 bytes each, within the 256 KiB of one session.
KEPT = 5


@pytest.fixture
def stage(nats, start, session):
    """Start two nodes, and sessions on both that call and publish."""
    (server,) = nats()
    limits = {"limits": {"realm_registrations_max": REGISTRATIONS_MAX}}
    found = [start(node_config([server.url], limits)) for _ in range(2)]
    await_neighbours(found)
    return Stage(server, found, session)


class Stage:
    """Two nodes, with a caller and a publisher on the one, and who hears them on the other."""

    def __init__(self, server, found, session):
        self.server = server
        self.here, self.there = found
        self.caller, self.callee = session(self.here), session(self.there)
        self.callee.register("com.echo")
        self.callee.subscribe("com.news")
        self.number = 0

    def goes_on(self) -> None:
        """Have calls and events cross, each once and in order."""
        for _ in range(20):
            self.number += 1
            self.caller.tell("com.news", self.number)
            self.caller.call("com.echo", self.number)
            assert self.callee.event()[4] == [self.number]
            invocation = self.callee.invocation()
            assert invocation[4] == [self.number]
            self.callee.answer(invocation, self.number)
            assert self.caller.result()[3] == [self.number]

    def refused(self, cause: str) -> float:
        """Return how many frames both nodes have refused for that."""
        nodes = (self.here, self.there)
        return sum(node.metric("fabric_frames_refused_total", cause=cause) for node in nodes)

    def resident_bytes(self) -> int:
        """Return what the node takes that is attacked most."""
        nodes = (self.here, self.there)
        files = [Path(f"/proc/{node.process.pid}/statm") for node in nodes]
        return max(int(file.read_text().split()[1]) for file in files) * 4096


def test_malformed_messages_are_refused_and_counted(stage) -> None:
    with stage.server.client() as client:
        member = Member(client, 7)
        node, side = member.pair()
        wrong = {MATCH: b"\x09", PROCEDURE: b"com.x", PAIR: side}
        for number in range(200):
            # Each ends the pair, which the member begins anew without being asked to.
            member.say(node, "offer", wrong, sequence=1)
            member.say(node, "call", {PAIR: side, MATCH: b"\0"}, sequence=number)
            member.say(node, "result", {PAIR: side}, sequence=number, rest=b"[[[[")
            client.publish("W1.realm1.e.com.news", frame("event", 7, sequence=number + 1))
            client.publish("W1.realm1.c", b"\x01\xff" * number)
            client.publish("W1.realm1.c", frame("heartbeat", 7, {NODE: b"\xff"}))
        client.flush()
        for cause in ("event", "field", "frame", "kind"):
            await_true(f"{cause} is counted", lambda c=cause: stage.refused(c) > 0)
    stage.goes_on()


def test_forged_sequences_reset_the_pair_of_the_forger_alone(stage) -> None:
    with stage.server.client() as client:
        member = Member(client, 7)
        node, side = member.pair()
        both = (stage.here, stage.there)
        await_true("it is open", lambda: 2 in [each.metric("fabric_pairs") for each in both])
        member.say(node, "offer", offer(side, b"com.gap"), sequence=5)
        client.flush()
        gaps = lambda: sum(  # noqa: E731
            each.metric("fabric_pair_resets_total", cause="gap") for each in both
        )
        await_true("it is reset", lambda: gaps() == 1)
    stage.goes_on()
    assert gaps() == 1


def test_a_giant_directory_is_bounded(stage) -> None:
    before = stage.resident_bytes()
    with stage.server.client() as client:
        member = Member(client, 7)
        node, side = member.pair()
        for number in range(5 * REGISTRATIONS_MAX):
            procedure = b"com.giant." + b"x" * 500 + str(number).encode()
            member.say(node, "offer", offer(side, procedure), sequence=number + 1)
        client.flush()
        nodes = (stage.here, stage.there)
        await_true(
            "what is too much is refused",
            lambda: (
                max(n.metric("fabric_registrations_refused_total") for n in nodes)
                == 4 * REGISTRATIONS_MAX
            ),
        )
        assert max(n.metric("fabric_registrations") for n in nodes) <= REGISTRATIONS_MAX + 1
        stage.goes_on()
        member.tell("leave", {})
        client.flush()
        await_true(
            "it is forgotten",
            lambda: max(n.metric("fabric_registrations") for n in nodes) <= 1,
        )
    assert stage.resident_bytes() - before < GROWTH_BYTES_MAX


def test_a_flood_of_members_is_bounded(stage, session) -> None:
    before = stage.resident_bytes()
    with stage.server.client() as client:
        for _ in range(2):
            for number in range(3 * NEIGHBOURS_MAX):
                fields = {NODE: b"x" * 5_000, SERVER: b"s%d" % number}
                client.publish("W1.realm1.c", frame("hello", 1_000 + number, fields))
            client.flush()
        await_true(
            "too many are refused", lambda: stage.refused("neighbours_max") > 2 * NEIGHBOURS_MAX
        )
        stage.goes_on()
        assert stage.here.metric("fabric_attachments_total") == 1
    # They say nothing more, and are waited for no longer.
    session(stage.here).subscribe("com.new")
    assert stage.resident_bytes() - before < GROWTH_BYTES_MAX


def test_a_live_node_that_does_not_answer_is_given_up(stage, session) -> None:
    waiting = session(stage.here), session(stage.there)
    with stage.server.client() as client:
        member = Member(client, 7)
        node, side = member.pair()
        # It keeps up the pair, in which nothing was said.
        said = struct.pack(">QQQ", node, side, 0)
        for each in waiting:
            each.tell_subscribe("com.new")
            each.tell_register(f"com.new{each.id}")

        def is_mute() -> bool:
            member.tell("heartbeat", {NODE: b"hostile", SERVER: b"nowhere", SAID: said})
            client.flush()
            nodes = (stage.here, stage.there)
            return all(node.metric("fabric_neighbours", state="suspected") == 1 for node in nodes)

        await_true("it is mute", is_mute)
        for each in waiting:
            answers = {each.peer.hear_any()[0] for _ in range(2)}
            assert answers == {SUBSCRIBED, REGISTERED}
        resets = [
            node.metric("fabric_pair_resets_total", cause="mute")
            for node in (stage.here, stage.there)
        ]
        assert sum(resets) >= 1
    stage.goes_on()


def test_testaments_beyond_the_bounds_are_refused_counted_and_missing(stage, session) -> None:
    watcher = session(stage.there)
    watcher.subscribe("com.last")
    nodes = (stage.here, stage.there)
    text = "x" * 500_000
    message = left_behind(1, 1, "com.last", 1, text)["message"]
    room = ENTRUSTED_BYTES_MAX // (TESTAMENT_BYTES + len(message))
    entrusted = 2 * room
    total = lambda name: sum(node.metric(f"fabric_{name}") for node in nodes)  # noqa: E731
    growths = []
    with stage.server.client() as client:
        member = Member(client, 7)
        node, side = member.pair()
        sequence = 0

        def say(said: dict) -> None:
            nonlocal sequence
            sequence += 1
            member.ask(node, side, sequence, "crosstie.node.testaments", said)

        with member.beating(stage.server, node, side):
            for turn in range(1, 3):
                # It begins anew: what it had entrusted is forgotten.
                say({"holders": [node], "anew": 1})
                for number in range(entrusted):
                    say(left_behind(1 << 40, turn << 32 | number, "com.last", number, text))
                # One that is there already is there once.
                for _ in range(3):
                    say(left_behind(1 << 40, turn << 32, "com.last", 0, text))
                client.flush()
                refused = turn * (entrusted - room)
                await_true(
                    "what is too much is refused",
                    lambda refused=refused: total("testaments_refused_total") == refused,
                )
                assert total("testaments") == room
                stage.goes_on()
                growths.append(stage.resident_bytes())
            # Another node's sessions have theirs, each within its own bound.
            add = ("wamp.session.add_testament", "com.kept", ["x" * 50_000])
            for _ in range(KEPT):
                stage.caller.call(*add)
                stage.caller.result()
            assert stage.caller.refused(*add) == "crosstie.error.testaments_bytes_max"
            await_true("they are held", lambda: total("testaments") == room + KEPT)
            # Very many of one session, as small as can be: none is looked for among the others.
            say({"holders": [node], "anew": 1})
            for number in range(5_000):
                say(left_behind(1, 1 << 50 | number, "com.small"))
            say({"holders": [node], "anew": 1})
            for number in range(entrusted):
                say(left_behind(1 << 40, 3 << 32 | number, "com.last", number, text))
            client.flush()
            await_true(
                "they are refused again",
                lambda: total("testaments_refused_total") == 3 * (entrusted - room),
            )
        # It ends, and its last words are those that found room, in their order.
        member.tell("leave", {})
        client.flush()
        for number in range(room):
            assert watcher.event()[4][0] == number
    stage.goes_on()
    stage.caller.publish("com.last", "end")
    assert watcher.event()[4] == ["end"]
    stage.caller.call("wamp.session.flush_testaments")
    assert stage.caller.result()[3] == [KEPT]
    await_true("nothing is held", lambda: total("testaments") == 0)
    assert max(growths) - growths[0] < GROWTH_BYTES_MAX
