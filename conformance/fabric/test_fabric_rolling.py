"""Servers of NATS that are restarted one after the other, as for an upgrade, while all goes on."""

from __future__ import annotations

import contextlib
import threading

from rig.nats import await_routes
from rig.plain import ClosedError
from rig.session import ERROR, EVENT, REGISTERED
from rig.waiting import await_true

from fabric.stage import Session, await_neighbours, node_config

KINDS = (
    ("com.example.a", {}),
    ("com.example.b", {}),
    ("com.example.", {"match": "prefix"}),
    ("com..b", {"match": "wildcard"}),
)


class Numbers:
    """A publisher's numbers, on two topics in turn, to subscriptions of every kind elsewhere."""

    def __init__(self, publisher: Session, subscriber: Session):
        self.publisher, self.subscriber = publisher, subscriber
        for topic, options in KINDS:
            subscriber.subscribe(topic, **options)
        self.said = 0
        self.last: dict[int, int] = {}
        self.wrong: list[object] = []
        self.is_over = threading.Event()
        for run in (self._say, self._hear):
            threading.Thread(target=run, daemon=True).start()

    def _say(self) -> None:
        while not self.is_over.wait(0.001):
            self.publisher.tell(f"com.example.{'ab'[self.said % 2]}", self.said)
            self.said += 1

    def _hear(self) -> None:
        with contextlib.suppress(ClosedError, OSError):
            while True:
                message = self.subscriber.peer.hear_any()
                if message[0] != EVENT:
                    self.wrong.append(message)
                    continue
                subscription, (number,) = message[1], message[4]
                # Nothing twice, and nothing behind a later one, over all subscriptions.
                if number <= self.last.get(subscription, -1) or number < max(
                    self.last.values(), default=0
                ):
                    self.wrong.append((message, dict(self.last)))
                self.last[subscription] = number

    def go_on(self) -> None:
        """Wait until what is said from now on is heard under every subscription."""
        said = self.said

        def is_heard() -> bool:
            heard = list(self.last.values())
            return len(heard) == len(KINDS) and min(heard) > said

        await_true("events come", is_heard)


def test_a_rolling_restart(nats, start, load, session) -> None:
    servers = nats(3)
    urls = [server.url for server in servers]
    found = [start(node_config(urls)) for _ in range(3)]
    await_neighbours(found)
    driven = [load(found[0], found[1]), load(found[1], found[2])]
    numbers = Numbers(session(found[2]), session(found[0]))
    for each in driven:
        each.goes_on()
    for server in servers:
        server.stop()
        for node in found:
            await_true("attached", lambda node=node: node.metric("fabric_attached") == 1)
        await_neighbours(found)
        for each in driven:
            each.goes_on()
        numbers.go_on()
        server.start()
        for other in servers:
            await_routes(other, servers)
    numbers.is_over.set()
    assert numbers.wrong == []
    for each in driven:
        each.end()


def test_three_nodes_race_for_procedures(nats, nodes, session) -> None:
    racers = [session(node) for node in nodes(3, nats(3))]
    caller = racers[0]
    for number in range(60):
        procedure = f"com.race{number}"
        for each in racers:
            each.tell_register(procedure)
        answers = [each.peer.hear_any() for each in racers]
        kinds = [answer[0] for answer in answers]
        assert sorted(kinds) == [ERROR, ERROR, REGISTERED], number
        winner = racers[kinds.index(REGISTERED)]
        refusals = {answer[4] for answer in answers if answer[0] == ERROR}
        assert refusals == {"wamp.error.procedure_already_exists"}
        # And it is the one that is called, from anywhere.
        if winner is not caller:
            caller.call(procedure, number)
            winner.answer(winner.invocation(), number)
            assert caller.result()[3] == [number]


def test_events_without_subscribers_elsewhere_are_not_sent(nats, nodes, session) -> None:
    here, there, _ = nodes(3, nats(3))
    publisher, near, far = session(here), session(here), session(there)
    near.subscribe("com.", match="prefix")
    far.subscribe("com.marker")
    before = there.metric("fabric_frames_total", direction="received", kind="event")
    for number in range(500):
        publisher.publish("com.other", number)
    publisher.publish("com.marker", 1)
    assert far.event()[4] == [1]
    after = there.metric("fabric_frames_total", direction="received", kind="event")
    assert after == before + 1
