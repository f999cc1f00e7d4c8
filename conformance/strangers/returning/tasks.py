"""A Celery application as its documentation shows it: the worker's, and the publisher's."""

from __future__ import annotations

import os
import sys

from celery import Celery

NAME = "returning.celery"
app = Celery("tasks", broker=os.environ["BROKER"])
app.conf.update(task_default_queue=NAME, worker_hijack_root_logger=False)


@app.task(name="ping")
def ping(token: str) -> None:
    """Say that the task has come."""
    print(f"answer celery {token}", file=sys.__stdout__, flush=True)


def publish() -> None:
    """Publish what standard input has, with Celery's own retry."""
    print("there", flush=True)
    for line in sys.stdin:
        ping.apply_async((line.strip(),), retry=True, retry_policy={"max_retries": None})
        print(f"published {line.strip()}", flush=True)


if __name__ == "__main__":
    publish()
