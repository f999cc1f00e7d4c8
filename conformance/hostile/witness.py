"""Well-behaved sessions of every kind, each doing one small thing again and again beside an attack.

Each of them must continue: nothing is lost, every answer comes. How long it takes is
the bench's question (`crosstie bench hostile`).
"""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

from rig.amqp_peer import Peer
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import CALL, ERROR, EVENT, INVOCATION, PUBLISH, RESULT, YIELD
from rig.waiting import await_true

# Far beyond what anything takes beside an attack on a loaded machine, in a debug build.
PATIENCE_S = 40.0
PAUSE_S = 0.01


class Act:
    """A thread that does one thing after the other until it is told to end."""

    def __init__(self, name: str, steps: Callable[[], Iterator[None]]):
        self.name = name
        self.done = 0
        self.error: BaseException | None = None
        self._steps = steps
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Let it end what it is at."""
        self._ending.set()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} still waits"

    def _go_on(self) -> None:
        steps = self._steps()
        try:
            while not self._ending.is_set():
                next(steps)
                self.done += 1
                time.sleep(PAUSE_S)
        except BaseException as error:
            self.error = error
        finally:
            steps.close()


class Witness:
    """All of them; each has done its thing once when this is made."""

    def __init__(self, router: Router):
        self._router = router
        self._acts = [
            Act("call", self._calls),
            Act("timeout", self._timeouts),
            Act("event", self._events),
            Act("join", self._joins),
            Act("health", self._pages),
            Act("message", self._messages),
            Act("connect", self._connects),
        ]
        self._await_another()

    def everybody_is_served(self) -> None:
        """No session was lost, and each repeats its operation."""
        self._await_another()

    def end(self) -> None:
        """End all of them; no session may have been lost."""
        for act in self._acts:
            act.end()
        self._nobody_is_lost()

    def _await_another(self) -> None:
        # The one under way may have begun before whatever happened.
        wanted = {act: act.done + 2 for act in self._acts}

        def is_done() -> bool:
            self._nobody_is_lost()
            return all(act.done >= count for act, count in wanted.items())

        missing = "each of the witness's sessions is served"
        await_true(missing, is_done, PATIENCE_S)

    def _nobody_is_lost(self) -> None:
        lost = [f"{act.name}: {act.error!r}" for act in self._acts if act.error]
        assert not lost, f"the witness lost {lost}"

    def _join(self) -> RawSocket:
        session = RawSocket.tcp(self._router.address("tcp"))
        session.socket.settimeout(PATIENCE_S)
        return session.shake_hands("msgpack").join()

    def _calls(self) -> Iterator[None]:
        with self._join() as caller, self._join() as callee:
            callee.register("com.witness.call")
            while True:
                request = caller.ask(CALL, {}, "com.witness.call", ["ping"])
                invocation = callee.hear(INVOCATION)
                callee.say(YIELD, invocation[1], {}, ["pong"])
                assert caller.hear(RESULT)[1:] == [request, {}, ["pong"]]
                yield

    def _timeouts(self) -> Iterator[None]:
        with self._join() as caller, self._join() as callee:
            callee.register("com.witness.timeout")
            while True:
                caller.ask(CALL, {"timeout": 50}, "com.witness.timeout")
                callee.hear(INVOCATION)
                assert caller.hear(ERROR)[4] == "wamp.error.timeout"
                yield

    def _events(self) -> Iterator[None]:
        with self._join() as publisher, self._join() as subscriber:
            subscriber.subscribe("com.witness.event")
            number = 0
            while True:
                number += 1
                publisher.ask(PUBLISH, {}, "com.witness.event", [number])
                assert subscriber.hear(EVENT)[4] == [number]
                yield

    def _joins(self) -> Iterator[None]:
        while True:
            with self._join() as session:
                session.round_trip()
            yield

    def _pages(self) -> Iterator[None]:
        host, port = self._router.address("tcp")
        url = f"http://{host}:{port}/health"
        while True:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                assert answer.status == 200
            yield

    def _connect(self) -> Peer:
        peer = Peer.tcp(self._router.address("amqp"))
        peer.socket.settimeout(PATIENCE_S)
        peer.open()
        peer.channel()
        return peer

    def _messages(self) -> Iterator[None]:
        with self._connect() as publisher, self._connect() as consumer:
            publisher.call("confirm.select")
            publisher.expect("confirm.select-ok")
            consumer.call("queue.declare", queue="witness", exclusive=True)
            consumer.expect("queue.declare-ok")
            consumer.call("basic.consume", queue="witness", tag="w", no_ack=True)
            consumer.expect("basic.consume-ok")
            number = 0
            while True:
                number += 1
                body = str(number).encode()
                publisher.publish("", "witness", body)
                publisher.expect("basic.ack")
                assert consumer.expect("basic.deliver").body == body
                yield

    def _connects(self) -> Iterator[None]:
        while True:
            with self._connect() as peer:
                peer.leave()
            yield
