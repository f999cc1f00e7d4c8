"""Celery: what its users rely on, by real workers, on RabbitMQ and on Crosstie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import kombu
import pytest
from celery import Celery, group
from celery_tasks import add, hold, make_app, say, stumble
from celery_worker import Worker
from record import PATIENCE_S, Record, await_true
from rig.broker import Broker

DAY_S = 86_400
# One thing after the other, in one child process.
ALONE = ("--concurrency", "1")


@pytest.fixture
def settings(request, broker: Broker, queue: str) -> dict:
    """Return the common settings of the application and its workers."""
    more = getattr(request, "param", {})
    return {"broker_url": broker.url(), "task_default_queue": queue, **more}


@pytest.fixture
def app(settings: dict) -> Iterator[Celery]:
    """The application that sends."""
    with make_app(**settings) as made:
        yield made


@pytest.fixture
def start_worker(settings: dict, tmp_path: Path) -> Callable[..., Worker]:
    """Return a worker that `with` starts and ends."""

    def start(*arguments: str, queues: list[str] | None = None, name: str = "worker") -> Worker:
        chosen = queues or [settings["task_default_queue"]]
        return Worker(tmp_path / f"{name}.log", chosen, *arguments, **settings)

    return start


def test_an_immediate_task_passes_by_those_that_wait_for_their_time(
    app: Celery, start_worker, record: Record, connection: kombu.Connection, queue: str
) -> None:
    """A worker asks for one more with each task that it keeps; kombu must know how to ask."""
    with start_worker("--pool", "threads", "--concurrency", "2"):
        for number in range(100):
            say.apply_async((str(record.path), f"later {number}"), countdown=DAY_S)
        say.delay(str(record.path), "now")
        assert record.await_lines(1) == ["now"]
        with connection.channel() as channel:
            # All of them wait in the worker.
            await_true(
                "the queue is empty",
                lambda: channel.queue_declare(queue, passive=True).message_count == 0,
            )


def test_each_of_several_queues_gets_its_turn(
    app: Celery, start_worker, record: Record, new_name
) -> None:
    """The broker shares a worker's prefetch in turn among its queues, long or short."""
    queues = {new_name("long"): 300, new_name("longer"): 300, new_name("short"): 20}
    for name, tasks in queues.items():
        app.amqp.queues.select_add(name)
        for _ in range(tasks):
            say.apply_async((str(record.path), name.split("-")[0]), queue=name)
    with start_worker(*ALONE, queues=list(queues)):
        order = record.await_lines(620)
    assert sorted(order) == ["long"] * 300 + ["longer"] * 300 + ["short"] * 20
    # In strict turn it is the 60th of 620; RabbitMQ's turns are not strict.
    assert max(i for i, name in enumerate(order) if name == "short") < 200


@pytest.mark.parametrize("settings", [{"task_queue_max_priority": 10}], indirect=True)
def test_priorities(app: Celery, start_worker, record: Record) -> None:
    for number in range(30):
        say.apply_async((str(record.path), f"{number % 10} {number}"), priority=number % 10)
    with start_worker(*ALONE, "--prefetch-multiplier", "1"):
        order = record.await_lines(30)
    numbers = [tuple(map(int, line.split())) for line in order]
    # The highest first, and within a priority the oldest.
    assert numbers == sorted(numbers, key=lambda each: (-each[0], each[1]))


def test_retries(app: Celery, start_worker, record: Record) -> None:
    with start_worker(*ALONE):
        answer = stumble.delay(str(record.path), 3).get(timeout=PATIENCE_S)
    assert answer == "at last"
    assert record.lines == [f"try {number}" for number in range(4)]


def test_a_task_of_a_killed_worker_runs_again(
    app: Celery, start_worker, record: Record, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    hold.delay(str(record.path), str(gate))
    with start_worker(*ALONE, name="killed") as worker:
        first = worker.process.pid
        assert record.await_lines(1) == [f"first {first}"]
    with start_worker(*ALONE, name="other") as worker:
        second = worker.process.pid
        assert record.await_lines(2)[1:] == [f"again {second}"]
        gate.touch()
        assert record.await_lines(3)[2:] == [f"done {second}"]


def test_results_of_a_group_and_remote_control(app: Celery, start_worker, queue: str) -> None:
    """Results come over the broker; so do questions to workers, by a fanout."""
    with start_worker(*ALONE, name=queue):
        job = group(add.s(number, number) for number in range(20)).apply_async()
        assert job.get(timeout=PATIENCE_S) == [2 * number for number in range(20)]
        (answer,) = app.control.ping(limit=1, timeout=PATIENCE_S)
        ((name, said),) = answer.items()
        assert name.startswith(queue)
        assert said == {"ok": "pong"}
