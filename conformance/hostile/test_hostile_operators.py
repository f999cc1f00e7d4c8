"""What operators see of attackers and of themselves: guessed passwords, policies of many queues."""

from __future__ import annotations

import os
import threading
from collections import deque

from rig import amqp_wire as wire
from rig.amqp_peer import CAPABILITIES, Peer, plain
from rig.node import management
from rig.waiting import await_true

from hostile.stage import Stage
from hostile.test_hostile_amqp import frame, publication

WHOLE = bool(os.environ.get("CROSSTIE_WHOLE"))
LOGINS = 100_000 if WHOLE else 5_000
# Guessers that still wait for their answers.
OPEN = 500
QUEUES = 10_000
ROUNDS = 10 if WHOLE else 3
OF_WORKER = "crossbar.worker.worker1"


def login(user: str) -> bytes:
    """Return all that a client sends to log in with a wrong password."""
    start_ok = frame(
        0,
        "connection.start-ok",
        properties={"product": "guesser", "capabilities": CAPABILITIES},
        mechanism="PLAIN",
        response=plain(user, "wrong"),
        locale="en_US",
    )
    return wire.HEADER + start_ok


def test_a_flood_of_wrong_logins(attacked):
    stage = attacked()
    guessers: deque[Peer] = deque()
    for number in range(LOGINS):
        guesser = Peer.tcp(stage.router.address("amqp"))
        # Half of them guess for one user, and the others for one each.
        guesser.send(login("test" if number % 2 else f"user{number}"))
        guessers.append(guesser)
        if len(guessers) > OPEN:
            guessers.popleft().close()
        if number % (LOGINS // 10) == 0:
            # The right password of that user lets in.
            stage.peer().leave()
            stage.everybody_else_is_served()
    for guesser in guessers:
        guesser.expect("connection.start")
        assert guesser.expect_connection_close()[0] == 403
        guesser.close()

    def failed() -> float:
        return stage.metric("amqp_logins_failed_total")

    # A guesser that has left before its turn may not be counted.
    await_true("logins have failed", lambda: failed() >= LOGINS / 2)
    assert failed() <= LOGINS
    stage.everybody_else_is_served()
    stage.grew_at_most(64)
    stage.nothing_is_held()


def declare_many(stage: Stage) -> None:
    """Declare the queues, in parts."""
    peer = stage.peer()
    for first in range(0, QUEUES, 1_000):
        names = [f"many.{number}" for number in range(first, first + 1_000)]
        peer.send(b"".join(frame(1, "queue.declare", queue=name) for name in names))
        for _ in names:
            peer.expect("queue.declare-ok")
    peer.leave()


class Publisher:
    """A client that publishes to one queue after the other, and waits for each confirm."""

    def __init__(self, stage: Stage) -> None:
        """Begin."""
        self.confirmed = 0
        self.error: BaseException | None = None
        self._peer = stage.peer()
        self._peer.call("confirm.select")
        self._peer.expect("confirm.select-ok")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """End; return the number of confirmed messages."""
        self._ending.set()
        self._thread.join()
        assert self.error is None, self.error
        self._peer.leave()
        return self.confirmed

    def _go_on(self) -> None:
        try:
            while not self._ending.is_set():
                queue = f"many.{self.confirmed * 7 % QUEUES}"
                self._peer.send(publication("", queue, body=b"x"))
                self._peer.expect("basic.ack")
                self.confirmed += 1
        except BaseException as error:
            self.error = error


def test_a_policy_that_comes_and_goes_over_many_queues(attacked):
    stage = attacked()
    declare_many(stage)
    publishers = [Publisher(stage) for _ in range(4)]
    entry = {"kind": "policy", "vhost": "/", "name": "long"}
    body = {"pattern": "^many", "definition": {"max-length": 1_000_000}, "apply-to": "queues"}
    with management(stage.router.directory) as operator:

        def policies() -> set[str | None]:
            found = []
            while part := operator.call(f"{OF_WORKER}.get_amqp_queues", "/", len(found)):
                found += [row["policy"] for row in part if row["name"].startswith("many")]
                if len(part) < 5_000:
                    break
            assert len(found) == QUEUES
            return set(found)

        for _ in range(ROUNDS):
            before = [publisher.confirmed for publisher in publishers]
            operator.call(f"{OF_WORKER}.put_amqp_entry", entry, body)
            await_true("each queue has the policy", lambda: policies() == {"long"})
            operator.call(f"{OF_WORKER}.delete_amqp_entry", entry)
            await_true("no queue has the policy", lambda: policies() == {None})
            stage.everybody_else_is_served()
            pairs = list(zip(publishers, before, strict=True))
            await_true(
                "each publisher goes on",
                lambda pairs=pairs: all(each.error or each.confirmed > was for each, was in pairs),
            )
        confirmed = sum(publisher.end() for publisher in publishers)
        (vhost,) = [
            row for row in operator.call(f"{OF_WORKER}.get_amqp_vhosts") if row["name"] == "/"
        ]
        ready = vhost["messages_ready"]
    # The witness has at most one message of its own.
    assert confirmed <= ready <= confirmed + 1
    stage.grew_at_most(128)
