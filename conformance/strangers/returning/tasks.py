"""A Celery application as its documentation shows it: the worker's, and the publisher's."""

from __future__ import annotations

import itertools
import os
import sys
import threading

from celery import Celery
from celery.signals import worker_ready

app = Celery("tasks", broker=os.environ["BROKER"])
app.conf.update(task_default_queue=os.environ["QUEUE"], worker_hijack_root_logger=False)
app.conf.broker_transport_options = {"confirm_publish": "CONFIRM" in os.environ}


def say(what: str) -> None:
    """Write a line where Celery's log does not take it."""
    print(what, file=sys.__stdout__, flush=True)


@app.task(name="ping")
def ping(token: str) -> None:
    """Say that the task has come."""
    say(f"answer Celery, worker {token}")


@worker_ready.connect
def ready(**_: object) -> None:
    """Say that the worker consumes."""
    say("there")


def publish(token: str) -> None:
    """Publish a task with Celery's own retry."""
    ping.apply_async((token,), retry=True, retry_policy={"max_retries": None})
    say(f"published {token}")


def publish_lines() -> None:
    """Publish what standard input has."""
    say("there")
    for line in sys.stdin:
        publish(line.strip())


def publish_stream() -> None:
    """Publish one task after the other until standard input has a line."""
    enough = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), enough.set()), daemon=True).start()
    for number in itertools.count():
        if enough.wait(0.002):
            return
        publish(str(number))


if __name__ == "__main__":
    {"lines": publish_lines, "stream": publish_stream}[sys.argv[1]]()
