"""A Celery application: the tests make one to send tasks; a worker has its own to run them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from celery import Celery, Task, shared_task
from record import note

# JSON: what `make_app` takes. It is set where a worker runs.
SETTINGS = "CELERY_TEST_SETTINGS"
# A worker that was handed tasks while it waited for something else sleeps with its answers (a
# larger prefetch, acknowledgements) until its next timer, some two seconds, whichever the broker.
# A timer as often as this in a heartbeat keeps the tests quick.
WAKEFUL = 600


def make_app(broker_url: str, **settings: object) -> Celery:
    """Return an application that gives back results over the broker."""
    made = Celery("frameworks", broker=broker_url, backend="rpc://", set_as_current=True)
    made.conf.update(broker_heartbeat_checkrate=WAKEFUL, **settings)
    return made


@shared_task
def say(path: str, words: str) -> None:
    """Write a line."""
    note(path, words)


@shared_task(bind=True, max_retries=10)
def stumble(self: Task, path: str, times: int) -> str:
    """Fail so many times, each time with another try to come."""
    note(path, f"try {self.request.retries}")
    if self.request.retries < times:
        raise self.retry(countdown=0)
    return "at last"


@shared_task(bind=True, acks_late=True)
def hold(self: Task, path: str, gate: str) -> None:
    """Run until a file is there; the worker is this process' parent."""
    again = "again" if self.request.delivery_info["redelivered"] else "first"
    note(path, f"{again} {os.getppid()}")
    while not Path(gate).exists():
        time.sleep(0.02)
    note(path, f"done {os.getppid()}")


@shared_task
def add(left: int, right: int) -> int:
    """Return the sum."""
    return left + right


if SETTINGS in os.environ:
    app = make_app(**json.loads(os.environ[SETTINGS]))
