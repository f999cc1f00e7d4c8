"""Numbered calls and events between nodes, judged: one answer each, nothing out of order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from rig.nats import NatsServer
from rig.plain import ClosedError
from rig.router import Router
from rig.session import CALL, ERROR, EVENT, GOODBYE, INVOCATION, PUBLISH, RESULT, YIELD
from rig.waiting import DEADLINE_S, await_true

from fabric.stage import Session, await_neighbours

TOLD = (
    "wamp.error.network_failure",
    "wamp.error.no_available_callee",
    "wamp.error.no_such_procedure",
)
LAST = 0x7FFF_FFFF


class Load:
    """A caller and publisher on one node, a callee and subscriber on another: numbers cross."""

    def __init__(self, here: Session, there: Session, *, is_stopped: bool = False):
        """Begin; with `is_stopped` the callee's node is stopped in good order meanwhile."""
        self.is_stopped = is_stopped
        self.told = (*TOLD, "wamp.error.canceled") if is_stopped else TOLD
        self.here, self.there = here, there
        self.procedure, self.topic = f"com.echo{there.id}", f"com.news{there.id}"
        self.there.register(self.procedure)
        self.there.subscribe(self.topic)
        self.made = 0
        self.answered: dict[int, object] = {}
        self.failed: dict[int, str] = {}
        self.heard: list[int] = []
        self.invoked: list[int] = []
        self.wrong: list[object] = []
        self.is_over = threading.Event()
        threads = (self._drive, self._hear_answers, self._serve)
        self.threads = [threading.Thread(target=thread, daemon=True) for thread in threads]
        for thread in self.threads:
            thread.start()

    def _drive(self) -> None:
        while not self.is_over.wait(0.002):
            self.made += 1
            self.here.peer.say(CALL, self.made, {}, self.procedure, [self.made])
            self.here.peer.say(PUBLISH, 1_000_000 + self.made, {}, self.topic, [self.made])

    def _hear_answers(self) -> None:
        while True:
            message = self.here.peer.hear_any()
            if message[0] == RESULT:
                request, result = message[1], message[3]
                if request in self.answered or request in self.failed or result != [request]:
                    self.wrong.append(message)
                self.answered[request] = result
            elif message[0] == ERROR and message[2] == LAST:
                return
            elif message[0] == ERROR:
                request = message[2]
                if (
                    request in self.answered
                    or request in self.failed
                    or message[4] not in self.told
                ):
                    self.wrong.append(message)
                self.failed[request] = message[4]
            else:
                self.wrong.append(message)

    def _serve(self) -> None:
        with contextlib.suppress(ClosedError, OSError):
            self._serve_on()

    def _serve_on(self) -> None:
        while True:
            message = self.there.peer.hear_any()
            if message[0] == INVOCATION:
                self.invoked.append(message[4][0])
                self.there.peer.say(YIELD, message[1], {}, message[4])
            elif message[0] == EVENT:
                self.heard.append(message[4][0])
            elif message[0] == GOODBYE:
                if not self.is_stopped:
                    self.wrong.append(message)
                return

    def goes_on(self) -> None:
        """Wait until calls made from now on are answered with results, and events heard."""
        calls, events = self.made, self.made
        await_true("results come", lambda: max(self.answered, default=0) > calls)
        await_true("events come", lambda: max(self.heard, default=0) > events)

    def end(self) -> None:
        """End it, and judge."""
        self.is_over.set()
        self.threads[0].join(DEADLINE_S)
        await_true(
            "each call is answered", lambda: len(self.answered) + len(self.failed) >= self.made
        )
        # A duplicate would come before this.
        self.here.peer.say(CALL, LAST, {}, "com.none")
        self.threads[1].join(DEADLINE_S)
        assert not any(thread.is_alive() for thread in self.threads[:2])
        assert self.wrong == [], self.wrong[:10]
        assert set(self.answered) | set(self.failed) == set(range(1, self.made + 1))
        assert self.heard == sorted(set(self.heard))
        assert self.invoked == sorted(set(self.invoked))
        assert set(self.answered) <= set(self.invoked)


def server_of(node: Router, servers: list[NatsServer]) -> int:
    """Return which server a node that knows several has begun with; that is chance."""
    on = node.await_log(lambda line: "on NATS server" in line.text).text
    (index,) = (index for index, server in enumerate(servers) if f"'{server.name}'" in on)
    return index


def moves_to_another_server(
    moves: Router, others: list[Router], load: Callable[..., Load], end: Callable[[], None]
) -> None:
    """Hold that a node whose server goes is soon on another; those of other servers go on."""
    found = [moves, *others]
    await_neighbours(found)
    driven = [load(found[0], found[1]), load(found[1], found[2])]
    for each in driven:
        each.goes_on()
    end()
    await_true("it moves", lambda: moves.metric("fabric_attachments_total") >= 2)
    await_true("it is there", lambda: moves.metric("fabric_attached") == 1)
    await_neighbours(found)
    for each in driven:
        each.goes_on()
    assert driven[1].failed == {}
    for each in driven:
        each.end()
