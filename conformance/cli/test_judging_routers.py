"""`crosstie conformance` of other routers: one that ends, one whose answers vary."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig.router import binary

# The roles that the scripted router announces.
ROLES = {"broker": {"features": {"publisher_exclusion": True}}, "dealer": {}}

SCENARIOS = """\
feature Of this test
section basic/publish_subscribe

== a subscription
A: join
A> SUBSCRIBE 1 {} #u.t
A< SUBSCRIBED 1 *id

== a message that ends the session
A: join
A> SUBSCRIBE 1 {} #u.last
either
A< ABORT *dict wamp.error.protocol_violation *
or crossbar: the connection is closed without ABORT
A< closed
end

== another subscription
A: join
A> SUBSCRIBE 1 {} #u.t
A< SUBSCRIBED 1 *id
"""


class Peer:
    """A router of RawSocket and JSON that answers as it is told to; None ends it."""

    def __init__(self, answer: Callable[[list], list | None]) -> None:
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"rs://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        """Serve one client after the other."""
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            # Scenarios here have one session at a time.
            with stream:
                if not self.serve(stream):
                    self.listener.close()
                    return

    def serve(self, stream: socket.socket) -> bool:
        """Answer one client; whether the router is still there then."""
        reader = stream.makefile("rb")
        handshake = reader.read(4)
        if len(handshake) < 4:
            return True
        stream.sendall(bytes([0x7F, handshake[1], 0, 0]))
        while head := reader.read(4):
            message = json.loads(reader.read(int.from_bytes(head)))
            answer = self.reply(message)
            if answer is None:
                return False
            body = json.dumps(answer).encode()
            stream.sendall(len(body).to_bytes(4) + body)
            if message[0] == 6:
                break
        return True

    def reply(self, message: list) -> list | None:
        """Return the answer to a message."""
        match message[0]:
            case 1:
                return [2, 1234, {"agent": "Scripted-1", "roles": ROLES}]
            case 6:
                return [6, {}, "wamp.close.goodbye_and_out"]
            case _:
                return self.answer(message)


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    peers: list[Peer] = []

    def start(answer: Callable[[list], list | None]) -> Peer:
        peers.append(Peer(answer))
        return peers[-1]

    yield start
    for one in peers:
        one.listener.close()


def conformance(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), "conformance", *map(str, arguments), "--patience", "30s"]
    return subprocess.run(command, text=True, capture_output=True, timeout=120)


def scenarios(tmp_path: Path) -> tuple[str, Path]:
    (tmp_path / "mine.txt").write_text(SCENARIOS)
    return ("--scenarios", tmp_path)


def verdicts(judgement: dict) -> list[str]:
    """Return the verdict of every scenario, in order."""
    return [each["verdict"] for feature in judgement["features"] for each in feature["scenarios"]]


def test_a_router_that_ends_is_named_once_and_the_rest_is_undecided(tmp_path, peer):
    def answer(message: list) -> list | None:
        return None if message[3].endswith(".last") else [33, message[1], 7]

    router = peer(answer)
    ran = conformance(router.url, *scenarios(tmp_path), "--json")
    assert ran.returncode == 1, ran.stderr
    judgement = json.loads(ran.stdout)
    assert verdicts(judgement) == ["passes", "fails", "undecided"]
    assert judgement["gone_since"] == "a message that ends the session"
    ended = judgement["features"][0]["scenarios"][1]
    assert ended["why"] == ["the router ended: it accepts no connection any more"]
    assert ended["transcript"]

    ran = conformance(peer(answer).url, *scenarios(tmp_path))
    assert ran.stdout.count("the router is gone") == 1
    assert "without ABORT" not in ran.stdout
    assert "another subscription" not in ran.stdout
    assert "1 pass, 1 fail" in ran.stdout
    assert "1 undecided" in ran.stdout


def test_a_router_that_ended_between_two_scenarios_fails_neither(tmp_path, peer):
    def answer(message: list) -> list:
        if message[3].endswith(".last"):
            # A listener that closes lets the session that is open end in good order.
            router.listener.shutdown(socket.SHUT_RDWR)
            router.listener.close()
            return [3, {}, "wamp.error.protocol_violation"]
        return [33, message[1], 7]

    router = peer(answer)
    ran = conformance(router.url, *scenarios(tmp_path), "--json", "--plays", 1)
    judgement = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert verdicts(judgement) == ["passes", "passes", "undecided"]
    assert judgement["gone_since"] == "another subscription"


def test_verdicts_that_vary_are_unstable(tmp_path, peer):
    subscribed = 0

    def answer(message: list) -> list | None:
        nonlocal subscribed
        if message[3].endswith(".last"):
            return [3, {}, "wamp.error.protocol_violation"]
        subscribed += 1
        # One answer of several is wrong, as of a router whose threads race.
        is_right = subscribed != 2
        return [33, message[1], 7] if is_right else [8, 32, message[1], {}, "wamp.error.late"]

    router = peer(answer)
    ran = conformance(router.url, *scenarios(tmp_path))
    assert ran.returncode == 1
    assert "mine.txt:7: unstable: a subscription" in ran.stdout
    assert "passes at first, fails in play 2" in ran.stdout
    assert "2 pass, 0 fail, 1 unstable" in ran.stdout
    # The scenario that varied was played twice, the other subscription three times.
    assert subscribed == 2 + 3


def test_our_own_features_are_not_held_against_another_router(peer):
    router = peer(lambda message: [8, message[0], message[1], {}, "wamp.error.no_such_thing"])
    only = [
        word
        for name in ("forward_for", "sticky", "least_busy", "acknowledged")
        for word in ("--only", name)
    ]
    ran = conformance(router.url, *only, "--set", "links=yes", "--json")
    assert ran.returncode == 0, ran.stdout
    judgement = json.loads(ran.stdout)
    assert all(feature["is_own"] for feature in judgement["features"])
    assert set(verdicts(judgement)) == {"not-announced"}
    assert not any(judgement["counts"].values())
    assert judgement["own_counts"]["not_announced"] == 20
    ran = conformance(router.url, *only, "--set", "links=yes")
    assert "Crosstie's own" in ran.stdout
    assert "docs/rlinks.md#forward_for" in ran.stdout


def test_places_that_are_cited_are_places_of_the_specification():
    listed = conformance("--list").stdout
    places = [line.rsplit("(", 1)[1].rstrip(")") for line in listed.splitlines() if line[0] != " "]
    own = sorted(place for place in places if place.startswith("docs/"))
    assert own == [
        "docs/calls.md#selection-of-the-callee",
        "docs/calls.md#selection-of-the-callee",
        "docs/events.md#acknowledged-delivery",
        "docs/rlinks.md#forward_for",
    ]
    root = Path(__file__).resolve().parents[2]
    for place in own:
        page, anchor = place.split("#")
        headings = [
            line.lstrip("# ").replace("`", "").lower().replace(" ", "-")
            for line in (root / page).read_text().splitlines()
            if line.startswith("#")
        ]
        assert anchor in headings, place
    assert all(place.split("/")[0] in ("basic", "advanced", "docs") for place in places)
