"""Dramatiq: priorities, delays, retries and dead letters, on RabbitMQ and on Crosstie."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import dramatiq
import pytest
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.common import dq_name, xq_name
from record import PATIENCE_S, Record, await_true
from rig.broker import Broker

FOLDER = Path(__file__).parent
# Variables of dramatiq_tasks.py.
URL = "DRAMATIQ_TEST_URL"
QUEUE = "DRAMATIQ_TEST_QUEUE"


@pytest.fixture
def dramatiq_broker(broker: Broker, queue: str) -> Iterator[RabbitmqBroker]:
    """Dramatiq's side; the queues for delays and dead letters go with the test's own."""
    speaking = RabbitmqBroker(url=broker.url(), max_priority=10, confirm_delivery=True)
    dramatiq.set_broker(speaking)
    yield speaking
    for name in (dq_name(queue), xq_name(queue)):
        speaking.channel.queue_delete(name)
    speaking.close()


@pytest.fixture
def worker(dramatiq_broker: RabbitmqBroker, monkeypatch) -> Iterator[dramatiq.Worker]:
    """A worker that has one message at a time; the test starts it."""
    monkeypatch.setattr("dramatiq.worker.QUEUE_PREFETCH", 1)
    made = dramatiq.Worker(dramatiq_broker, worker_threads=1, worker_timeout=100)
    yield made
    made.stop()


@pytest.fixture
def done() -> list:
    """Return the actors' records, in order."""
    return []


@pytest.fixture
def start_processes(broker: Broker, queue: str, tmp_path: Path) -> Iterator[Callable]:
    """Start workers as their users do: a process, and those that it starts."""
    running: list[subprocess.Popen] = []
    more = {URL: broker.url(), QUEUE: queue, "PYTHONPATH": str(FOLDER)}

    def start(name: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dramatiq", "dramatiq_tasks"]
        with (tmp_path / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [*command, "--processes", "1", "--threads", "1"],
                env={**os.environ, **more},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running.append(started)
        return started

    yield start
    for each in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


def await_done(done: list, count: int) -> list:
    """Return what was done once it is so much."""
    await_true(f"{count} are done", lambda: len(done) >= count)
    return done


def test_priorities(dramatiq_broker, worker, queue: str, done: list) -> None:
    @dramatiq.actor(queue_name=queue)
    def act(priority: int, number: int) -> None:
        done.append((priority, number))

    for number in range(30):
        message = act.message_with_options(args=(number % 10, number), broker_priority=number % 10)
        dramatiq_broker.enqueue(message)
    worker.start()
    # The highest first, and within a priority the oldest.
    assert await_done(done, 30) == sorted(done, key=lambda each: (-each[0], each[1]))


def test_a_delayed_message_lets_others_pass(worker, queue: str, done: list) -> None:
    """It waits in a worker, from a queue of its own, and comes back by the first."""
    at_once = threading.Event()

    @dramatiq.actor(queue_name=queue)
    def act(word: str) -> None:
        if word == "later":
            at_once.wait(PATIENCE_S)
        done.append(word)
        at_once.set()

    act.send_with_options(args=("later",), delay=300)
    act.send("now")
    worker.start()
    assert await_done(done, 2) == ["now", "later"]


def test_retries(dramatiq_broker, worker, queue: str, done: list) -> None:
    @dramatiq.actor(queue_name=queue, max_retries=2, min_backoff=1, max_backoff=2)
    def act() -> None:
        done.append("try")
        if len(done) < 3:
            raise ValueError(done)

    act.send()
    worker.start()
    await_done(done, 3)
    dramatiq_broker.join(queue, timeout=int(PATIENCE_S * 1000))
    worker.join()
    assert done == ["try"] * 3


def test_a_message_that_fails_for_good_becomes_a_dead_letter(
    dramatiq_broker, worker, queue: str, done: list
) -> None:
    @dramatiq.actor(queue_name=queue, max_retries=1, min_backoff=1, max_backoff=2)
    def act(word: str) -> None:
        done.append(word)
        raise ValueError(word)

    act.send("bad")
    worker.start()
    letters: list = []

    def is_dead() -> bool:
        letters.append(dramatiq_broker.channel.basic_get(xq_name(queue), auto_ack=True))
        return letters[-1][0] is not None

    await_true("it is a dead letter", is_dead)
    assert done == ["bad", "bad"]
    _, properties, body = letters[-1]
    assert dramatiq.Message.decode(body).args == ("bad",)
    (death,) = properties.headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == (queue, "rejected", 1)


def test_a_message_of_a_killed_worker_comes_again(
    dramatiq_broker, start_processes, queue: str, record: Record, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    @dramatiq.actor(queue_name=queue)
    def hold(path: str, gate: str) -> None:
        """Stand for the one that runs in the processes."""

    hold.send(str(record.path), str(gate))
    first = start_processes("first")
    assert record.await_lines(1) == [f"began {first.pid}"]
    os.killpg(first.pid, signal.SIGKILL)
    second = start_processes("second")
    assert record.await_lines(2)[1:] == [f"began {second.pid}"]
    gate.touch()
    assert record.await_lines(3)[2:] == [f"done {second.pid}"]
