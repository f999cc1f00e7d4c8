"""A Dramatiq application for `dramatiq dramatiq_tasks`, with one actor."""

from __future__ import annotations

import os
import time
from pathlib import Path

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from record import note

dramatiq.set_broker(RabbitmqBroker(url=os.environ["DRAMATIQ_TEST_URL"], max_priority=10))


@dramatiq.actor(queue_name=os.environ["DRAMATIQ_TEST_QUEUE"], actor_name="hold")
def hold(path: str, gate: str) -> None:
    """Run until a file is there."""
    note(path, f"began {os.getppid()}")
    while not Path(gate).exists():
        time.sleep(0.02)
    note(path, f"done {os.getppid()}")
